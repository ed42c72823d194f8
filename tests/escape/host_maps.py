# level: guard
# kernel: landlock_scope
def attempt():
    """Where everything lies in the host's memory."""
    return len(open(f"/proc/{HOST}/maps").read())

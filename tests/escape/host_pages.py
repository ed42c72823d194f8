# level: guard
# kernel: landlock_scope
def attempt():
    """Which pages of the host's memory are in use."""
    return len(open(f"/proc/{HOST}/smaps").read())

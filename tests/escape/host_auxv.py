# level: guard
# kernel: landlock_scope
def attempt():
    """Where the host's program was loaded."""
    return len(open(f"/proc/{HOST}/auxv", "rb").read())

# level: guard
# kernel: landlock_scope
def attempt():
    """What the host is doing just now, with addresses."""
    return open(f"/proc/{HOST}/syscall").read()

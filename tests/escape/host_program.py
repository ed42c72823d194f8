# level: guard
# kernel: landlock_scope
def attempt():
    """Which program the host is."""
    return os.readlink(f"/proc/{HOST}/exe")

# level: guard
def attempt():
    """Which program the host is."""
    return os.readlink(f"/proc/{HOST}/exe")

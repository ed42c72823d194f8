# level: sandbox
# kernel: seccomp
def attempt():
    """A clock (to a time that there is not)."""
    return reached("clock_settime", 0, struct.pack("qq", 0, -1))

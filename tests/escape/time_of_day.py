# level: sandbox
# kernel: seccomp
def attempt():
    """The time (one that there is not)."""
    return reached("settimeofday", struct.pack("qq", 0, -1), None)

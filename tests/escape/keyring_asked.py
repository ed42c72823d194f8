# level: sandbox
# kernel: seccomp
def attempt():
    """Which keys the user has."""
    return call("keyctl", 0, -4, 1)

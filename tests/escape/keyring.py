# level: sandbox
# kernel: seccomp
def attempt():
    """The user's keys."""
    return call("add_key", b"user", b"escape", b"x", 1, -1)

# level: sandbox
# kernel: seccomp
def attempt():
    """A key of the user's (one that there is not)."""
    return reached("request_key", b"user", b"no such key", None, 0)

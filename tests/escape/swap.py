# level: sandbox
# kernel: seccomp
# root: only
def attempt():
    """A file to put memory into (one that there is not)."""
    return reached("swapon", b"/no/such/file", 0)

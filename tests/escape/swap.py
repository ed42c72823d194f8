# level: sandbox
# kernel: seccomp
# root: only
def attempt():
    """A file to put memory into (one that there is not)."""
    return any_reached(("swapon", b"/no/such/file", 0), ("swapoff", b"/no/such/file"))

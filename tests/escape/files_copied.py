# level: sandbox
# kernel: seccomp
# root: only
def attempt():
    """All files once more as a tree of the script's own."""
    return call("open_tree", -100, b"/", 1)

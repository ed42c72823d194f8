# level: sandbox
# kernel: seccomp
# root: only
def attempt():
    """Another root directory (one that there is not)."""
    return reached("pivot_root", b"/no/such/folder", b"/no/such/folder")

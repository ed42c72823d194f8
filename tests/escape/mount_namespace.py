# level: guard
# kernel: capabilities
# root: only
def attempt():
    """Root's power over mounts."""
    CLONE_NEWNS = 0x20000
    def inside():
        call("unshare", CLONE_NEWNS)
        return "unshared"
    return in_child(inside)

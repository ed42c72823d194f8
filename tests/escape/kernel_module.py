# level: sandbox
# kernel: seccomp
# root: only
def attempt():
    """A part of the kernel (one that is none)."""
    return reached("init_module", b"x", 1, b"")

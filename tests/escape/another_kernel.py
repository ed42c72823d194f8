# level: sandbox
# kernel: seccomp
# root: only
def attempt():
    """Another kernel (of more parts than any has)."""
    return reached("kexec_load", 0, 1000, None, 0)

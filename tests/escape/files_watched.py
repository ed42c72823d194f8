# level: sandbox
# kernel: seccomp
def attempt():
    """What others do with files."""
    return reached("fanotify_init", 0x200, 0)

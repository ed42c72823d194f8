# level: sandbox
# kernel: seccomp
def attempt():
    """Advice about the memory of the script's own child."""
    return reached("process_madvise", -1, None, 0, 20, 0)

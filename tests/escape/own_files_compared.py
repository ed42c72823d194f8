# level: sandbox
# kernel: seccomp
def attempt():
    """Whether two of the script's own descriptors are one file, as the kernel sees it."""
    KCMP_FILE = 0
    return call("kcmp", os.getpid(), os.getpid(), KCMP_FILE, 1, 1) + 1

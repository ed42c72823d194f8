# level: sandbox
# kernel: seccomp
def attempt():
    """A namespace by its descriptor (the script's own, which nobody can enter twice)."""
    return reached("setns", os.open("/proc/self/ns/user", os.O_RDONLY), 0)

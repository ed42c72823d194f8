# level: guard
# kernel: capabilities
# root: only
def attempt():
    """The memory of the machine, the host's among it."""
    for path in ("/proc/kcore", "/dev/mem"):
        if os.path.exists(path):
            return os.open(path, os.O_RDONLY)
    raise Skip("no file shows it")

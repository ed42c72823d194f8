# level: sandbox
# kernel: seccomp
# root: only
def attempt():
    """How much the kernel has to say."""
    return call("syslog", 10, None, 0)

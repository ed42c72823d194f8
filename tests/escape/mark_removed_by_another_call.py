# level: sandbox
# kernel: seccomp
def attempt():
    """The same with the newer call."""
    return call("prlimit64", 0, 15, lower(), None) + 1

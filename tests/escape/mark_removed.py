# level: sandbox
# kernel: seccomp
def attempt():
    """The mark by which the processes of a run are found."""
    return call("setrlimit", 15, lower()) + 1

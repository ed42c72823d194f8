# level: sandbox
# kernel: seccomp
def attempt():
    """A namespace in which the script is root."""
    return in_child(lambda: call("unshare", 0x10000000) + 1)

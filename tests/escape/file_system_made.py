# level: sandbox
# kernel: seccomp
# root: only
def attempt():
    """A file system that is mounted nowhere."""
    return call("fsopen", b"tmpfs", 0)

# level: sandbox
# kernel: seccomp
# root: only
def attempt():
    """The name of the machine (the one that it has)."""
    name = socket.gethostname().encode()
    return call("sethostname", name, len(name)) + 1

# level: sandbox
# kernel: seccomp
def attempt():
    """A limit of the host's (the one that it has)."""
    import resource
    resource.prlimit(HOST, resource.RLIMIT_CORE, resource.prlimit(HOST, resource.RLIMIT_CORE))
    return "set"

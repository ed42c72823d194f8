# level: sandbox
# kernel: open_files
# limit: "open_files":50
def attempt():
    """A limit, lifted."""
    import resource
    resource.setrlimit(resource.RLIMIT_NOFILE, (60, 60))
    return len([os.open("/dev/null", os.O_RDONLY) for _ in range(55)])

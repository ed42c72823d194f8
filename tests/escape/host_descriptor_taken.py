# level: guard
# kernel: landlock_scope
def attempt():
    """A descriptor of the host's as one of the script's own."""
    fd = call("pidfd_getfd", call("pidfd_open", HOST, 0), UNNAMED, 0)
    return found(os.pread(fd, 1000, 0))

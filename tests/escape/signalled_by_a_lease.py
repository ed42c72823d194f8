# level: guard
# kernel: landlock_scope
# signal: yes
def attempt():
    """A signal that a file sends when somebody opens it."""
    import fcntl
    open("leased", "w").close()
    fd = os.open("leased", os.O_RDONLY)
    fcntl.fcntl(fd, F_SETSIG, SIGNAL)
    fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    fcntl.fcntl(fd, fcntl.F_SETOWN, VICTIM)
    try:
        os.open("leased", os.O_WRONLY | os.O_NONBLOCK)
    except BlockingIOError:
        pass
    return arrived()

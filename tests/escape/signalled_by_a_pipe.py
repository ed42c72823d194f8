# level: guard
# kernel: landlock_scope
# signal: yes
def attempt():
    """A signal that a pipe sends when something is in it."""
    import fcntl
    ours, theirs = os.pipe()
    fcntl.fcntl(ours, fcntl.F_SETOWN, VICTIM)
    fcntl.fcntl(ours, F_SETSIG, SIGNAL)
    fcntl.fcntl(ours, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
    os.write(theirs, b"x")
    return arrived()

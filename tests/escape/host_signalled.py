# level: guard
# kernel: landlock_scope
def attempt():
    """A signal to the host, of the harmless kind."""
    os.kill(HOST, signal.SIGCONT)
    return "signalled"

# level: guard
# kernel: landlock_scope
def attempt():
    """A signal to another run of the same engine."""
    os.kill(SIBLING, signal.SIGCONT)
    return "signalled"

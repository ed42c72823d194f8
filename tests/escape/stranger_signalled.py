# level: guard
# kernel: landlock_scope
def attempt():
    """A signal to another process of the same user."""
    os.kill(STRANGER, signal.SIGCONT)
    return "signalled"

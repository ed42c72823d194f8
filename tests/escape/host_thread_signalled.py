# level: guard
# kernel: landlock_scope
def attempt():
    """A signal to one of the host's threads, of the harmless kind."""
    call("tgkill", HOST, int(os.listdir(f"/proc/{HOST}/task")[-1]), signal.SIGCONT)
    return "signalled"

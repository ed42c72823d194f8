# level: guard
# kernel: landlock_scope
def attempt():
    """A signal by the descriptor of a process."""
    call("pidfd_send_signal", call("pidfd_open", HOST, 0), signal.SIGCONT, 0, 0)
    return "signalled"

# level: guard
# kernel: landlock_scope
def attempt():
    """A question to everybody: signal 0 to each process that may be signalled; whether the host is among them."""
    return [pid for pid in (HOST, STRANGER) if libc.kill(pid, 0) == 0] or None

# level: sandbox
# kernel: seccomp
def attempt():
    """A descriptor of the script's own child."""
    pid = os.fork()
    if pid == 0:
        signal.pause()
    try:
        return call("pidfd_getfd", call("pidfd_open", pid, 0), 1, 0)
    finally:
        os.kill(pid, 9)

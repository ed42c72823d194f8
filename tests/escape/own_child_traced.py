# level: sandbox
# kernel: seccomp
def attempt():
    """A debugger on the script's own child."""
    pid = os.fork()
    if pid == 0:
        signal.pause()
    try:
        return call("ptrace", 0x4206, pid, 0, 0) + 1
    finally:
        os.kill(pid, 9)

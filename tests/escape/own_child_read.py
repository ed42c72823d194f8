# level: sandbox
# kernel: seccomp
def attempt():
    """The memory of the script's own child."""
    pid = os.fork()
    if pid == 0:
        signal.pause()
    try:
        return read_memory(pid, ctypes.addressof(BUFFER))
    finally:
        os.kill(pid, 9)

# level: sandbox
# kernel: seccomp
def attempt():
    """The memory of the script's own child, changed."""
    pid = os.fork()
    if pid == 0:
        signal.pause()
    try:
        local, remote = vectors(b"sixteen bytes of", ctypes.addressof(BUFFER))
        return call("process_vm_writev", pid, ctypes.byref(local), 1, ctypes.byref(remote), 1, 0)
    finally:
        os.kill(pid, 9)

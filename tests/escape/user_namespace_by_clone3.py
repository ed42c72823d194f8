# level: sandbox
# kernel: seccomp
def attempt():
    """The same with the newer call."""
    args = (ctypes.c_uint64 * 11)(0x10000000, 0, 0, 0, 17)
    pid = call("clone3", ctypes.byref(args), 88)
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    return pid

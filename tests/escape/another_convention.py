# level: sandbox
# kernel: seccomp
# machine: x86_64
def attempt():
    """System calls in the manner of programs with short addresses."""
    X32 = 0x40000000
    def inside():
        if libc.syscall(ctypes.c_long(X32 | 39)) != os.getpid():
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        return "called"
    return in_child(inside)

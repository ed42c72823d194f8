# level: sandbox
# kernel: seccomp
# root: only
def attempt():
    """A program for the kernel."""
    attributes = (ctypes.c_uint32 * 18)(1, 4, 4, 1)
    return reached("bpf", 0, ctypes.byref(attributes), 72)

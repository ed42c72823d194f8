# level: sandbox
# kernel: seccomp
# root: only
def attempt():
    """What the processor does."""
    attributes = (ctypes.c_uint32 * 32)(1, 128)
    return reached("perf_event_open", ctypes.byref(attributes), 0, -1, -1, 0)

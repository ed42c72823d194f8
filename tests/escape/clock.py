# level: sandbox
# kernel: seccomp
def attempt():
    """The clock (asked only)."""
    return call("adjtimex", ctypes.create_string_buffer(512)) + 1

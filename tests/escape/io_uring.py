# level: sandbox
# kernel: seccomp
def attempt():
    """A ring that opens sockets by itself."""
    params = ctypes.create_string_buffer(256)
    return reached("io_uring_setup", 4, params)

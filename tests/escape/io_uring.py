# level: sandbox
# kernel: seccomp
def attempt():
    """A ring that opens sockets by itself, or one from elsewhere."""
    params = ctypes.create_string_buffer(256)
    return any_reached(
        ("io_uring_setup", 4, params),
        ("io_uring_enter", -1, 0, 0, 0, None, 0),
        ("io_uring_register", -1, 0, None, 0),
    )

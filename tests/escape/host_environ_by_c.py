# level: guard
# kernel: landlock_scope
def attempt():
    """The same without a word of Python's own."""
    fd = libc.open(f"/proc/{HOST}/environ".encode(), os.O_RDONLY)
    if fd == -1:
        raise OSError(ctypes.get_errno(), "open")
    data = ctypes.create_string_buffer(1 << 17)
    libc.read(fd, data, len(data))
    return found(data.raw)

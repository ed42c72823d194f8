# level: sandbox
# kernel: seccomp
# root: only
def attempt():
    """A file by its number."""
    handle = ctypes.create_string_buffer(136)
    struct.pack_into("I", handle, 0, 128)
    mount = ctypes.c_int()
    call("name_to_handle_at", -100, OUT.encode(), handle, ctypes.byref(mount), 0)
    return call("open_by_handle_at", os.open(OUT, os.O_RDONLY), handle, 0)

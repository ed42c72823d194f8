# level: guard
# kernel: landlock_scope
def attempt():
    """Where a page of the host's memory lies (asked, not moved)."""
    page, status = ctypes.c_void_p(HOST_ADDRESS & -4096), ctypes.c_int(-1000)
    return call("move_pages", HOST, 1, ctypes.byref(page), None, ctypes.byref(status), 0) + 1

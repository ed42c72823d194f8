# level: guard
# kernel: landlock_scope
def attempt():
    """An address in one of the host's threads."""
    head, length = ctypes.c_void_p(), ctypes.c_size_t()
    call("get_robust_list", HOST, ctypes.byref(head), ctypes.byref(length))
    return length.value

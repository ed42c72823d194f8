# level: guard
# kernel: landlock_scope
def attempt():
    """Another process's memory changed."""
    was = read_memory(STRANGER, STRANGER_ADDRESS)
    local, remote = vectors(was, STRANGER_ADDRESS)
    call("process_vm_writev", STRANGER, ctypes.byref(local), 1, ctypes.byref(remote), 1, 0)
    return "changed"

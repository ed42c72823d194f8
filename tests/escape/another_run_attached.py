# level: guard
# kernel: landlock_scope
def attempt():
    """Another run of the same engine under a debugger."""
    call("ptrace", 0x4206, SIBLING, 0, 0)
    libc.ptrace(17, SIBLING, 0, 0)
    return "seized"

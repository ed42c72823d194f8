# level: guard
# kernel: landlock_scope
def attempt():
    """The host under a debugger."""
    PTRACE_SEIZE, PTRACE_DETACH = 0x4206, 17
    call("ptrace", PTRACE_SEIZE, HOST, 0, 0)
    libc.ptrace(PTRACE_DETACH, HOST, 0, 0)
    return "seized"

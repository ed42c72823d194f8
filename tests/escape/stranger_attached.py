# level: guard
# kernel: landlock_scope
def attempt():
    """Another process of the same user under a debugger."""
    PTRACE_ATTACH, PTRACE_DETACH = 16, 17
    call("ptrace", PTRACE_ATTACH, STRANGER, 0, 0)
    os.waitpid(STRANGER, 0x40000000)
    libc.ptrace(PTRACE_DETACH, STRANGER, 0, 0)
    return "attached"

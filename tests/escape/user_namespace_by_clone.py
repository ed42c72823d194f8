# level: sandbox
# kernel: seccomp
def attempt():
    """The same with the call that makes processes."""
    import subprocess
    SIGCHLD, CLONE_NEWUSER = 17, 0x10000000
    pid = call("clone", CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0)
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    return pid

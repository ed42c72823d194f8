# level: sandbox
# kernel: seccomp
# root: only
def attempt():
    """A file system on top of another."""
    def inside():
        call("unshare", 0x20000)
        libc.mount(b"none", b"/", None, 0x44000, None)
        return call("mount", b"tmpfs", OUT.encode(), b"tmpfs", 0, 0) + 1
    return in_child(inside)

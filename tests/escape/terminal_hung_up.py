# level: sandbox
# kernel: seccomp
# root: only
def attempt():
    """The end of a terminal (where there is none)."""
    def inside():
        os.setsid()
        return call("vhangup") + 1
    return in_child(inside)

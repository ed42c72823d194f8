# level: guard
# kernel: capabilities
# root: only
# machine: x86_64
def attempt():
    """The machine's ports, by which a program talks to devices."""
    def inside():
        return call("iopl", 3) + 1
    return in_child(inside)

# level: guard
# kernel: capabilities
# root: only
# machine: x86_64
def attempt():
    """The machine's ports, by which a program talks to devices."""
    def inside():
        return any_reached(("iopl", 3), ("ioperm", 0x80, 1, 1))
    return in_child(inside)

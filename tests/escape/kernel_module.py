# level: guard
# kernel: capabilities
# root: only
def attempt():
    """A part of the kernel (one that is none)."""
    return any_reached(
        ("init_module", b"x", 1, b""),
        ("finit_module", -1, b"", 0),
        ("delete_module", b"no such module", os.O_NONBLOCK),
    )

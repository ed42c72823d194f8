# level: sandbox
# kernel: seccomp
def attempt():
    """The clock (asked only), in both ways."""
    return any_reached(
        ("adjtimex", ctypes.create_string_buffer(512)),
        ("clock_adjtime", 0, ctypes.create_string_buffer(512)),
    )

# level: sandbox
# kernel: seccomp
def attempt():
    """How much the users may store (of a file that is no disk)."""
    Q_GETFMT, USERS = 0x800004, 0
    return any_reached(
        ("quotactl", Q_GETFMT << 8 | USERS, b"/no/such/disk", 0, BUFFER),
        ("quotactl_fd", -1, Q_GETFMT << 8 | USERS, 0, BUFFER),
    )

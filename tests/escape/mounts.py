# level: sandbox
# kernel: seccomp
# root: only
def attempt():
    """What else there is about mounts (of things that there are not)."""
    nowhere = b"/no/such/folder"
    return any_reached(
        ("mount", nowhere, nowhere, b"no such type", 0, None),
        ("umount2", nowhere, 0),
        ("move_mount", -100, nowhere, -100, nowhere, 0),
        ("fsconfig", -1, 0, None, None, 0),
        ("fsmount", -1, 0, 0),
        ("fspick", -100, nowhere, 0),
        ("mount_setattr", -100, nowhere, 0, ctypes.create_string_buffer(32), 32),
    )

# level: guard
# kernel: landlock_scope
def attempt():
    """The files that the host has mapped."""
    return len(os.listdir(f"/proc/{HOST}/map_files"))

# level: guard
# kernel: landlock_scope
def attempt():
    """The host's file system by way of the host."""
    return os.listdir(f"/proc/{HOST}/root")

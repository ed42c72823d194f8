# level: guard
# kernel: landlock_scope
def attempt():
    """The host's namespaces, to be entered."""
    return os.readlink(f"/proc/{HOST}/ns/net")

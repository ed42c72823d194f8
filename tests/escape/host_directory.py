# level: guard
# kernel: landlock_scope
def attempt():
    """Where the host works."""
    return os.readlink(f"/proc/{HOST}/cwd")

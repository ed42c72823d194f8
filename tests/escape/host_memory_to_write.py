# level: guard
# kernel: landlock_scope
def attempt():
    """The host's memory, opened to be changed."""
    return os.open(f"/proc/{HOST}/mem", os.O_RDWR)

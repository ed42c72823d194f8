# level: guard
# kernel: landlock_scope
def attempt():
    """The memory of another run of the same engine."""
    return os.open(f"/proc/{SIBLING}/mem", os.O_RDWR)

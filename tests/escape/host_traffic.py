# level: guard
# kernel: landlock_scope
def attempt():
    """How much the host reads and writes."""
    return open(f"/proc/{HOST}/io").read()

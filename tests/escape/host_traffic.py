# level: guard
def attempt():
    """How much the host reads and writes."""
    return open(f"/proc/{HOST}/io").read()

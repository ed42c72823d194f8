# level: guard
# kernel: landlock_scope
def attempt():
    """The secrets that the host was started with."""
    return found(open(f"/proc/{HOST}/environ", "rb").read())

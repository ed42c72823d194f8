# level: guard
# kernel: landlock_scope
def attempt():
    """The same by another name."""
    return found(open(f"/proc/self/../{HOST}/./environ", "rb").read())

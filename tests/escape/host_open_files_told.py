# level: guard
# kernel: landlock_scope
def attempt():
    """What is told of a file that the host has open."""
    return open(f"/proc/{HOST}/fdinfo/{UNNAMED}").read()

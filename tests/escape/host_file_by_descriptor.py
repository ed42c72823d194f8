# level: guard
# kernel: landlock_scope
def attempt():
    """A file that the host has open and nobody can open by name."""
    return found(open(f"/proc/{HOST}/fd/{UNNAMED}", "rb").read())

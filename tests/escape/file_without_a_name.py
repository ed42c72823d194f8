# level: sandbox
# kernel: landlock_files
def attempt():
    """A file outside that has no name."""
    return made_without_a_name(OUT)

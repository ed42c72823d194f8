# level: sandbox
# kernel: landlock_files
# root: only
def attempt():
    """A file among the settings of the system."""
    return made_without_a_name("/etc")

# level: sandbox
# kernel: landlock_files
def attempt():
    """A file in the folder of everybody's temporary files."""
    return made_without_a_name("/tmp")

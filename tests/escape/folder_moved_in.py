# level: sandbox
# kernel: landlock_files
def attempt():
    """A folder from outside moved to where it can be changed."""
    os.rename(f"{OUT}/folder", "folder")
    return "done"

# level: sandbox
# kernel: landlock_files
def attempt():
    """A file from outside moved to where it can be changed."""
    os.rename(f"{OUT}/file", "file")
    return "done"

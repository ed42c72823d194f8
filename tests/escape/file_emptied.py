# level: sandbox
# kernel: landlock_files landlock_truncate
def attempt():
    """A file outside, cut."""
    os.truncate(f"{OUT}/file", 0)
    return "done"

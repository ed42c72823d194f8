# level: sandbox
# kernel: landlock_files landlock_truncate
def attempt():
    """A file outside, cut while it is opened to be read."""
    os.open(f"{OUT}/file", os.O_RDONLY | os.O_TRUNC)
    return "done"

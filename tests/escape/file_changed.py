# level: sandbox
# kernel: landlock_files
def attempt():
    """A file outside, changed."""
    open(f"{OUT}/file", "r+").write("changed")
    return "done"

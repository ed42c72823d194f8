# level: sandbox
# kernel: landlock_files
def attempt():
    """A file outside, gone."""
    os.unlink(f"{OUT}/file")
    return "done"

# level: sandbox
# kernel: truncate
def attempt():
    """A file outside, cut."""
    os.truncate(f"{OUT}/file", 0)
    return "done"

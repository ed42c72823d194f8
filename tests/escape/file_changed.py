# level: sandbox
def attempt():
    """A file outside, changed."""
    open(f"{OUT}/file", "r+").write("changed")
    return "done"

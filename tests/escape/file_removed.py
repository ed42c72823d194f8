# level: sandbox
def attempt():
    """A file outside, gone."""
    os.unlink(f"{OUT}/file")
    return "done"

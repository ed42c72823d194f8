# level: sandbox
def attempt():
    """A file outside under another name."""
    os.rename(f"{OUT}/file", f"{OUT}/renamed")
    return "done"

# level: sandbox
def attempt():
    """A link outside."""
    os.symlink("x", f"{OUT}/link")
    return "done"

# level: sandbox
def attempt():
    """A new file outside."""
    open(f"{OUT}/new", "x").close()
    return "done"

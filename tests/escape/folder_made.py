# level: sandbox
def attempt():
    """A new folder outside."""
    os.mkdir(f"{OUT}/new")
    return "done"

# level: sandbox
def attempt():
    """A file outside, made longer."""
    open(f"{OUT}/file", "a").write("more")
    return "done"

# level: sandbox
# kernel: landlock_files
def attempt():
    """A new file outside."""
    open(f"{OUT}/new", "x").close()
    return "done"

# level: sandbox
# kernel: landlock_files
def attempt():
    """A new folder outside."""
    os.mkdir(f"{OUT}/new")
    return "done"

# level: sandbox
# kernel: landlock_files
def attempt():
    """A link outside."""
    os.symlink("x", f"{OUT}/link")
    return "done"

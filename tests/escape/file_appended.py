# level: sandbox
# kernel: landlock_files
def attempt():
    """A file outside, made longer."""
    open(f"{OUT}/file", "a").write("more")
    return "done"

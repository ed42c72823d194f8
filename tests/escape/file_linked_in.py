# level: sandbox
# kernel: landlock_files
def attempt():
    """A file from outside linked to where it can be changed."""
    os.link(f"{OUT}/file", "linked")
    open("linked", "a").write("more")
    return "done"

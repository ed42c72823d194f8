# level: sandbox
# kernel: landlock_files
def attempt():
    """A file outside by way of /proc."""
    open(f"/proc/self/root{OUT}/new", "x").close()
    return "done"

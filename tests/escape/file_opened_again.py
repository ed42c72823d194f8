# level: sandbox
# kernel: landlock_files
def attempt():
    """A file that was opened to be read, opened again to be written."""
    fd = os.open(f"{OUT}/file", os.O_RDONLY)
    open(f"/proc/self/fd/{fd}", "a").write("more")
    return "done"

# level: sandbox
# kernel: landlock_files
def attempt():
    """A fifo outside."""
    os.mkfifo(f"{OUT}/fifo")
    return "done"

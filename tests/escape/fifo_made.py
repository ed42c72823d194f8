# level: sandbox
def attempt():
    """A fifo outside."""
    os.mkfifo(f"{OUT}/fifo")
    return "done"

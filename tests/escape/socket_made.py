# level: sandbox
# kernel: landlock_files
def attempt():
    """A socket outside."""
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(f"{OUT}/socket")
    return "done"

# level: guard
# kernel: landlock_scope
def attempt():
    """A socket of the host's that has no file."""
    with socket.socket(socket.AF_UNIX) as client:
        client.connect("\0" + os.environ["ABSTRACT"])
    return "connected"

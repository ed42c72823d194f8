# level: sandbox
# kernel: file_mb
# limit: "file_mb":2
def attempt():
    """A file larger than is allowed."""
    import tempfile
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    with tempfile.TemporaryFile() as file:
        file.write(bytes(3 << 20))
        file.flush()
        return file.tell()

# level: guard
# kernel: landlock_scope
def attempt():
    """The same by a process that has left session and group."""
    ours, theirs = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            try:
                os.write(theirs, open(f"/proc/{HOST}/environ", "rb").read()[:60000] or b"nothing")
            except OSError as error:
                os.write(theirs, repr(error).encode())
        os._exit(0)
    os.close(theirs)
    text = b"".join(iter(lambda: os.read(ours, 65536), b""))
    return found(text)

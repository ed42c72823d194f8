# level: sandbox
# kernel: landlock_files
def attempt():
    """A file outside through an open folder."""
    fd = os.open("new", os.O_WRONLY | os.O_CREAT, dir_fd=os.open(OUT, os.O_PATH))
    os.write(fd, b"x")
    return "done"

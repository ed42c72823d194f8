# level: sandbox
# kernel: landlock_files
def attempt():
    """A file where another run has its own."""
    stage = open(f"/proc/{SIBLING}/cmdline").read().rstrip("\0").split("\0")[-1]
    path = f"{os.path.dirname(stage)}/planted.{os.getpid()}"
    open(path, "x").close()
    os.unlink(path)
    return "done"

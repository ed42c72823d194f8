# level: sandbox
# kernel: landlock_files
def attempt():
    """A file outside by a process that has left session and group."""
    def inside():
        os.setsid()
        open(f"{OUT}/new", "x").close()
        return "made"
    in_child(inside)
    return "done"

# level: sandbox
# kernel: landlock_files
def attempt():
    """A file outside through a link of the script's."""
    os.symlink(OUT, "way")
    open("way/new", "x").close()
    return "done"

# level: sandbox
# kernel: landlock_files
def attempt():
    """A file outside under another name."""
    os.rename(f"{OUT}/file", f"{OUT}/renamed")
    return "done"

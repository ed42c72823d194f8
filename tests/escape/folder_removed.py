# level: sandbox
# kernel: landlock_files
def attempt():
    """A folder outside, gone."""
    os.rmdir(f"{OUT}/folder")
    return "done"

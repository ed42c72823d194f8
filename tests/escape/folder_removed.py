# level: sandbox
def attempt():
    """A folder outside, gone."""
    os.rmdir(f"{OUT}/folder")
    return "done"

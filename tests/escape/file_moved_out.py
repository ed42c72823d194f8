# level: sandbox
def attempt():
    """A file of the script's moved outside."""
    open("mine", "w").close()
    os.rename("mine", f"{OUT}/mine")
    return "done"

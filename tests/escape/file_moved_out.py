# level: sandbox
# kernel: landlock_files
def attempt():
    """A file of the script's moved outside."""
    open("mine", "w").close()
    os.rename("mine", f"{OUT}/mine")
    return "done"

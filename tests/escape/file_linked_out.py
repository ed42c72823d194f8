# level: sandbox
# kernel: landlock_files
def attempt():
    """A file of the script's under another name outside."""
    open("mine", "w").close()
    os.link("mine", f"{OUT}/mine")
    return "done"

# level: sandbox
# kernel: landlock_files
def attempt():
    """A file outside in exchange for one of the script's."""
    open("mine", "w").close()
    RENAME_EXCHANGE = 2
    call("renameat2", -100, b"mine", -100, f"{OUT}/file".encode(), RENAME_EXCHANGE)
    return "done"

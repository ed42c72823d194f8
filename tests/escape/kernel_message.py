# level: sandbox
# kernel: landlock_files
# root: only
def attempt():
    """The kernel's messages, opened to be added to."""
    return opened_to_write("/dev/kmsg")

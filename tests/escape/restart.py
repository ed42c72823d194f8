# level: sandbox
# kernel: seccomp
# root: only
def attempt():
    """A new start of the machine (without the words that it takes)."""
    return reached("reboot", 0, 0, 0, None)

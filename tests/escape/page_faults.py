# level: sandbox
# kernel: seccomp
def attempt():
    """Page faults of the script's own."""
    return reached("userfaultfd", 1)

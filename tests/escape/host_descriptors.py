# level: guard
# kernel: landlock_scope
def attempt():
    """What the host has open. (How many files that are can be counted: /proc shows the numbers to the same user.)"""
    return [os.readlink(f"/proc/{HOST}/fd/{fd}") for fd in os.listdir(f"/proc/{HOST}/fd")[:3]]

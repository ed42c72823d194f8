# level: sandbox
# kernel: seccomp
# root: only
def attempt():
    """The book of all processes (switched off, as it is)."""
    return call("acct", 0) + 1

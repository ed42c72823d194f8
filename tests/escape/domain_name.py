# level: sandbox
# kernel: seccomp
# root: only
def attempt():
    """The name of the machine's domain (of more letters than any has)."""
    return reached("setdomainname", b"x", 1000)

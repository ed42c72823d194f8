# level: guard
# kernel: landlock_scope
def attempt():
    """Whether a descriptor of the host's is one that the script knows."""
    call("kcmp", HOST, HOST, 0, 0, 0)
    return "compared"

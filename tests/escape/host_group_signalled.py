# level: guard
# kernel: landlock_scope
def attempt():
    """Whether the host's group may be signalled."""
    os.killpg(os.getpgid(HOST), 0)
    return "signalled"

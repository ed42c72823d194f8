# level: guard
# kernel: landlock_scope
# signal: yes
def attempt():
    """A signal by a process that has left session and group."""
    def inside():
        os.setsid()
        os.kill(VICTIM, SIGNAL)
        return arrived()
    return in_child(inside)

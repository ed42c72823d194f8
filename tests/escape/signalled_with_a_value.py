# level: guard
# kernel: landlock_scope
# signal: yes
def attempt():
    """A signal that carries a number."""
    SI_QUEUE = -1
    info = struct.pack("iiiiiiQ", SIGNAL, 0, SI_QUEUE, 0, os.getpid(), UID, 7).ljust(128, b"\0")
    call("rt_sigqueueinfo", VICTIM, SIGNAL, info)
    return arrived()

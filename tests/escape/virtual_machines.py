# level: sandbox
# kernel: no_network
def attempt():
    """A way to the machine that this one runs in."""
    return family(40, socket.SOCK_STREAM)

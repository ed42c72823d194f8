# level: sandbox
# kernel: no_network
def attempt():
    """Two connected sockets of the internet, which the kernel does not make, but is asked for."""
    return reached("socketpair", socket.AF_INET, socket.SOCK_STREAM, 0, struct.pack("ii", 0, 0))

# level: sandbox
# kernel: no_network
def attempt():
    """What the kernel tells of the network."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as client:
        return client.fileno()

# level: sandbox
# kernel: no_network
# root: only
def attempt():
    """All packets of the machine."""
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) as client:
        return client.fileno()

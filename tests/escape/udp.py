# level: sandbox
# kernel: no_network
def attempt():
    """Packets."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as packets:
        return packets.sendto(b"x", ("127.0.0.1", 9))

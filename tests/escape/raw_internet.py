# level: sandbox
# kernel: no_network
# root: only
def attempt():
    """Packets of any kind."""
    return family(socket.AF_INET, socket.SOCK_RAW, 1)

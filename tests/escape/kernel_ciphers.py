# level: sandbox
# kernel: no_network
def attempt():
    """The kernel's own ciphers."""
    return family(38, socket.SOCK_SEQPACKET)

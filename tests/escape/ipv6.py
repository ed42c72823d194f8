# level: sandbox
# kernel: no_network
def attempt():
    """The other internet."""
    if not socket.has_ipv6 or not os.path.exists("/proc/net/if_inet6"):
        raise Skip("no IPv6 here")
    with socket.socket(socket.AF_INET6) as client:
        return client.fileno()

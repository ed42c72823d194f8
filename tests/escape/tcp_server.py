# level: sandbox
# kernel: no_network
def attempt():
    """A server."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()

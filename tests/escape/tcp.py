# level: sandbox
# kernel: no_network
def attempt():
    """A connection to a server of the host's."""
    with socket.create_connection(("127.0.0.1", int(os.environ["PORT"])), 10) as client:
        return client.getpeername()

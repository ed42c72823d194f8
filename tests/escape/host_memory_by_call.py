# level: guard
# kernel: landlock_scope
def attempt():
    """The host's memory without a file."""
    return read_memory(HOST, HOST_ADDRESS)

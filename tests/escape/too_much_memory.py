# level: sandbox
# kernel: memory_mb
# limit: "memory_mb":300
def attempt():
    """More memory than is given."""
    return len(bytearray(600 << 20)) and "taken"

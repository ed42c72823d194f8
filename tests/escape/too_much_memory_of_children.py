# level: sandbox
# kernel: memory_mb
# limit: "memory_mb":300
def attempt():
    """More memory than is given, in a child."""
    return in_child(lambda: len(bytearray(600 << 20)) and "taken")

# level: guard
# kernel: landlock_scope
def attempt():
    """The token of another run of the same engine."""
    return found(open(f"/proc/{SIBLING}/environ", "rb").read(), b"PTC_RPC_TOKEN=")

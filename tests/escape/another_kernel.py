# level: sandbox
# kernel: seccomp
# root: only
def attempt():
    """Another kernel (of more parts than any has, or of no file)."""
    return any_reached(("kexec_load", 0, 1000, None, 0), ("kexec_file_load", -1, -1, 1, b"", 0))

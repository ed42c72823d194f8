# level: sandbox
# kernel: seccomp
# root: only
def attempt():
    """Another root directory."""
    return in_child(lambda: os.chroot(OUT) or "changed")

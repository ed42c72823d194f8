# level: sandbox
# kernel: landlock_files
# root: only
def attempt():
    """A device in the script's own folder, of either kind."""
    import stat
    if not host_has(27):
        raise Skip("this root makes no devices")
    made = []
    for kind, number in ((stat.S_IFCHR, os.makedev(1, 3)), (stat.S_IFBLK, os.makedev(7, 0))):
        try:
            os.mknod("device", kind | 0o600, number)
            os.unlink("device")
            made.append(number)
        except PermissionError:
            pass
    return made or None

# level: sandbox
# kernel: landlock_files
# root: only
def attempt():
    """A device in the script's own folder."""
    import stat
    try:
        os.mknod("device", stat.S_IFCHR | 0o600, os.makedev(1, 3))
    except OSError as error:
        if error.errno == errno.EPERM and not host_has(27):
            raise Skip("this root makes no devices")
        raise
    return "done"

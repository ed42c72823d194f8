# level: sandbox
# kernel: landlock_files
# root: only
def attempt():
    """A setting of the kernel, opened to be changed."""
    return opened_to_write("/proc/sys/kernel/core_pattern")

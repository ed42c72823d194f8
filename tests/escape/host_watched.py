# level: guard
# kernel: landlock_scope
def attempt():
    """A counter on the host."""
    software, disabled_user_only = 1, 0b1100001
    attributes = struct.pack("IIQQQQQ", software, 64, 0, 0, 0, 0, disabled_user_only).ljust(64, b"\0")
    try:
        return call("perf_event_open", attributes, HOST, -1, -1, 0)
    except OSError as error:
        if error.errno == errno.EACCES and UID and int(open("/proc/sys/kernel/perf_event_paranoid").read()) > 2:
            raise Skip("not for ordinary users")
        raise

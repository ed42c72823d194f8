# level: guard
# kernel: capabilities
# root: only
def attempt():
    """The powers over the kernel's parts and the machine's memory, where no file shows it."""
    CAP_SYS_MODULE, CAP_SYS_RAWIO = 16, 17
    if not host_has(CAP_SYS_MODULE) and not host_has(CAP_SYS_RAWIO):
        raise Skip("this root does not have them")
    return "held" if powers("self") >> CAP_SYS_MODULE & 3 else None

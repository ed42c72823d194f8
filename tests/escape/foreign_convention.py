# level: sandbox
# kernel: seccomp
# machine: x86_64
def attempt():
    """System calls in the manner of 32-bit programs."""
    import mmap
    # mov eax, 20 (getpid); int 0x80; ret
    code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    code.write(b"\xb8\x14\x00\x00\x00\xcd\x80\xc3")
    address = ctypes.addressof(ctypes.c_char.from_buffer(code))
    def inside():
        pid = ctypes.CFUNCTYPE(ctypes.c_int)(address)()
        if pid != os.getpid():
            raise Skip("this kernel does not know them")
        return "called"
    return in_child(inside)

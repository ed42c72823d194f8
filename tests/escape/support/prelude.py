# What stands before every attempt: the world around it, and system calls by name.
import ctypes, errno, os, signal, socket, struct, sys

libc = ctypes.CDLL(None, use_errno=True)
HOST, UID = os.getppid(), os.getuid()
STRANGER, SIBLING, UNNAMED = (int(os.environ[name]) for name in ("STRANGER", "SIBLING", "UNNAMED"))
VICTIM, SIGNAL = int(os.environ["VICTIM"]), int(os.environ["SIGNAL"])
HOST_ADDRESS, STRANGER_ADDRESS = (int(os.environ[name]) for name in ("HOST_ADDRESS", "STRANGER_ADDRESS"))
OUT = os.environ["OUT"]
F_SETSIG = 10
BUFFER = ctypes.create_string_buffer(b"sixteen bytes of", 16)

NAMES = """
ptrace 101 117|process_vm_readv 310 270|process_vm_writev 311 271|pidfd_open 434 434|pidfd_send_signal 424 424
pidfd_getfd 438 438|kcmp 312 272|unshare 272 97|clone 56 220|clone3 435 435|mount 165 40|add_key 248 217|bpf 321 280
perf_event_open 298 241|userfaultfd 323 282|name_to_handle_at 303 264|open_by_handle_at 304 265|adjtimex 159 171
sethostname 170 161|init_module 175 105|acct 163 89|io_uring_setup 425 425|tgkill 234 131|rt_sigqueueinfo 129 138
get_robust_list 274 100|move_pages 279 239|process_madvise 440 440|renameat2 316 276|kexec_load 246 104|reboot 169 142
settimeofday 164 170|clock_settime 227 112|setdomainname 171 162|syslog 103 116|setns 308 268|fsopen 430 430
open_tree 428 428|pivot_root 155 41|fanotify_init 300 262|keyctl 250 219|swapon 167 224|iopl 172 -1|socketpair 53 199|setrlimit 160 164
prlimit64 302 261
io_uring_enter 426 426|io_uring_register 427 427|umount2 166 39|move_mount 429 429|fsconfig 431 431|fsmount 432 432
fspick 433 433|mount_setattr 442 442|request_key 249 218|quotactl 179 60|quotactl_fd 443 443|clock_adjtime 305 266
vhangup 153 58|swapoff 168 225|finit_module 313 273|delete_module 176 106|kexec_file_load 320 294|ioperm 173 -1
"""
MACHINE = os.uname().machine
NUMBERS = {
    line.split()[0]: int(line.split()[1 if MACHINE == "x86_64" else 2])
    for line in NAMES.replace("|", "\n").split("\n")
    if line.strip()
}


class Skip(Exception):
    """This cannot be attempted here."""


def call(name, *arguments):
    """The system call `name`; raises what it answers."""
    words = [ctypes.c_long(word) if isinstance(word, int) else word for word in arguments]
    result = libc.syscall(ctypes.c_long(NUMBERS[name]), *words)
    if result == -1:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def reached(name, *arguments):
    """Whether the kernel has looked at the call: any answer but the ones that turn it away."""
    try:
        call(name, *arguments)
    except OSError as error:
        if error.errno in (errno.EPERM, errno.EACCES, errno.ENOSYS):
            raise
    return "reached"


def arrived():
    """Whether the victim, which takes no signals, has one waiting for it. No other attempt sends this one."""
    waiting = [int(line.split()[1], 16) for line in open(f"/proc/{VICTIM}/status") if line[:6] in ("SigPnd", "ShdPnd")]
    return "arrived" if any(signals >> SIGNAL - 1 & 1 for signals in waiting) else None


def made_without_a_name(folder):
    """A file in `folder` that goes when it is closed."""
    if not os.access(folder, os.W_OK):
        raise Skip(f"{folder} is not the user's to write")
    try:
        return os.open(folder, os.O_TMPFILE | os.O_WRONLY, 0o600)
    except OSError as error:
        if error.errno in (errno.EOPNOTSUPP, errno.EISDIR, errno.EROFS):
            raise Skip(f"{folder} knows no such files")
        raise


def opened_to_write(path):
    """A descriptor of `path`, to which nothing is written."""
    try:
        return os.open(path, os.O_WRONLY)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.EROFS):
            raise Skip(f"{path}: {error}")
        raise


def family(number, kind, protocol=0):
    """A socket of this family, if the kernel knows it."""
    try:
        with socket.socket(number, kind, protocol) as made:
            return made.fileno()
    except OSError as error:
        if error.errno in (errno.EAFNOSUPPORT, errno.EPROTONOSUPPORT, errno.ESOCKTNOSUPPORT):
            raise Skip("this kernel has no such sockets")
        raise


def program(variable):
    """The path of a program that root has prepared for the test."""
    path = os.environ.get(variable)
    if not path or os.statvfs(path).f_flag & os.ST_NOSUID:
        raise Skip("there is no such program, or not where it gives anything")
    return path


def lower():
    """The limit that marks a run, one less, as struct rlimit."""
    import resource
    soft, hard = (1 << 40 if limit < 0 else limit - 1 for limit in resource.getrlimit(15))
    return struct.pack("QQ", soft, hard)


def powers(process):
    """The capabilities of a process, as a set of bits."""
    for line in open(f"/proc/{process}/status"):
        if line.startswith("CapEff:"):
            return int(line.split()[1], 16)


def host_has(capability):
    return powers(HOST) >> capability & 1


def any_reached(*calls):
    """The names of those of `calls` that the kernel has looked at; raises what stops the last one if none was."""
    names, refusal = [], OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    for name, *arguments in calls:
        try:
            names.append(reached(name, *arguments) and name)
        except OSError as error:
            if error.errno != errno.ENOSYS:
                refusal = error
    if names:
        return names
    raise refusal


def vectors(data, address):
    """A piece of our memory and one of another process's, as struct iovec."""
    class Vector(ctypes.Structure):
        _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]

    ctypes.memmove(BUFFER, data, min(len(data), 16))
    return Vector(ctypes.addressof(BUFFER), 16), Vector(address, 16)


def read_memory(pid, address):
    local, remote = vectors(b"", address)
    call("process_vm_readv", pid, ctypes.byref(local), 1, ctypes.byref(remote), 1, 0)
    return BUFFER.raw


def found(data, secret=b"ESCAPE_CANARY="):
    return secret.decode() if secret in data else None


def in_child(attempt):
    """What `attempt` returns in a forked child, which may die of it."""
    ours, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            said = "=" + repr(attempt())
        except Skip as skip:
            said = "~" + str(skip)
        except BaseException as error:
            said = "!" + repr(error)
        os.write(theirs, said.encode())
        os._exit(0)
    os.close(theirs)
    said = os.read(ours, 4096).decode()
    status = os.waitpid(pid, 0)[1]
    if said[:1] == "~":
        raise Skip(said[1:])
    if said[:1] != "=" or said[1:] == "None":
        raise RuntimeError(said[1:] or f"the child ended with status {status}")
    return said[1:]

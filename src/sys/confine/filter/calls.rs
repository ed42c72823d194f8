//! The system calls that a sandbox has an opinion on, by name and number.
//!
//! The numbers of both processors stand here and are not taken from the C library's header, so that the filter of either
//! can be built and examined on the other. That they are those of the library is tested.

/// One system call.
#[derive(Debug, Clone, Copy)]
pub(super) struct Call {
    #[cfg_attr(not(test), allow(dead_code))]
    pub(super) name: &'static str,
    x86_64: u32,
    /// `None`: this processor has no such call.
    aarch64: Option<u32>,
}

impl Call {
    const fn new(name: &'static str, x86_64: u32, aarch64: u32) -> Call {
        Call {
            name,
            x86_64,
            aarch64: Some(aarch64),
        }
    }

    const fn x86_only(name: &'static str, x86_64: u32) -> Call {
        Call {
            name,
            x86_64,
            aarch64: None,
        }
    }
}

/// A processor that filters are built for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Machine {
    // One of them is only ever built by tests.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
    X86_64,
    #[cfg_attr(not(target_arch = "aarch64"), allow(dead_code))]
    Aarch64,
}

impl Machine {
    /// The one that this program was built for.
    pub(super) fn own() -> Option<Machine> {
        #[cfg(all(target_arch = "x86_64", target_pointer_width = "64"))]
        return Some(Machine::X86_64);
        #[cfg(all(
            target_arch = "aarch64",
            target_pointer_width = "64",
            target_endian = "little"
        ))]
        return Some(Machine::Aarch64);
        #[allow(unreachable_code)]
        None
    }

    /// `AUDIT_ARCH_*` of `linux/audit.h`: the ELF machine, 64 bits, little-endian.
    pub(super) fn audit_arch(self) -> u32 {
        const IS_64_BIT: u32 = 0x8000_0000;
        const IS_LITTLE_ENDIAN: u32 = 0x4000_0000;
        let elf_machine = match self {
            Machine::X86_64 => 62,
            Machine::Aarch64 => 183,
        };
        elf_machine | IS_64_BIT | IS_LITTLE_ENDIAN
    }

    pub(super) fn number(self, call: &Call) -> Option<u32> {
        match self {
            Machine::X86_64 => Some(call.x86_64),
            Machine::Aarch64 => call.aarch64,
        }
    }
}

pub(super) const SOCKET: Call = Call::new("socket", 41, 198);
pub(super) const SOCKETPAIR: Call = Call::new("socketpair", 53, 199);
pub(super) const CLONE: Call = Call::new("clone", 56, 220);
pub(super) const CLONE3: Call = Call::new("clone3", 435, 435);
pub(super) const IOCTL: Call = Call::new("ioctl", 16, 29);

/// Refused whatever the arguments are.
pub(super) const REFUSED: [Call; 51] = [
    // Opens sockets and files by itself, past every rule about the calls for that.
    Call::new("io_uring_setup", 425, 425),
    Call::new("io_uring_enter", 426, 426),
    Call::new("io_uring_register", 427, 427),
    // Namespaces; `clone` has a rule of its own.
    Call::new("unshare", 272, 97),
    Call::new("setns", 308, 268),
    // Mounts.
    Call::new("mount", 165, 40),
    Call::new("umount2", 166, 39),
    Call::new("pivot_root", 155, 41),
    Call::new("chroot", 161, 51),
    Call::new("open_tree", 428, 428),
    Call::new("move_mount", 429, 429),
    Call::new("fsopen", 430, 430),
    Call::new("fsconfig", 431, 431),
    Call::new("fsmount", 432, 432),
    Call::new("fspick", 433, 433),
    Call::new("mount_setattr", 442, 442),
    // Keyrings.
    Call::new("add_key", 248, 217),
    Call::new("request_key", 249, 218),
    Call::new("keyctl", 250, 219),
    // Kernel surface that scripts have no use for.
    Call::new("bpf", 321, 280),
    Call::new("perf_event_open", 298, 241),
    Call::new("userfaultfd", 323, 282),
    // Other processes, and files past their paths.
    Call::new("ptrace", 101, 117),
    Call::new("process_vm_readv", 310, 270),
    Call::new("process_vm_writev", 311, 271),
    Call::new("process_madvise", 440, 440),
    Call::new("kcmp", 312, 272),
    Call::new("pidfd_getfd", 438, 438),
    Call::new("open_by_handle_at", 304, 265),
    // The machine itself.
    Call::new("kexec_load", 246, 104),
    Call::new("kexec_file_load", 320, 294),
    Call::new("init_module", 175, 105),
    Call::new("finit_module", 313, 273),
    Call::new("delete_module", 176, 106),
    Call::new("reboot", 169, 142),
    Call::new("swapon", 167, 224),
    Call::new("swapoff", 168, 225),
    Call::new("acct", 163, 89),
    Call::new("quotactl", 179, 60),
    Call::new("quotactl_fd", 443, 443),
    Call::x86_only("iopl", 172),
    Call::x86_only("ioperm", 173),
    // Clocks.
    Call::new("clock_settime", 227, 112),
    Call::new("clock_adjtime", 305, 266),
    Call::new("settimeofday", 164, 170),
    Call::new("adjtimex", 159, 171),
    // What else concerns everybody on the machine.
    Call::new("sethostname", 170, 161),
    Call::new("setdomainname", 171, 162),
    Call::new("syslog", 103, 116),
    Call::new("vhangup", 153, 58),
    Call::new("fanotify_init", 300, 262),
];

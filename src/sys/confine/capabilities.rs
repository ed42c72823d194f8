//! Privileges that a script has no use for: those by which root looks into foreign processes.

use crate::sys::spawn::{check_raw, Errno};

/// CAP_SYS_PTRACE, CAP_SYS_ADMIN and CAP_PERFMON of `linux/capability.h`. The last is enough for `mm_access`.
const DANGEROUS: [u32; 3] = [19, 21, 38];

/// `_LINUX_CAPABILITY_VERSION_3`: 64 bits in two halves.
const VERSION_3: u32 = 0x2008_0522;

#[repr(C)]
struct Header {
    version: u32,
    /// 0: the calling thread.
    pid: i32,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Half {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

/// No program that is executed from now on gives more than what the process has (prctl(2)).
pub(super) fn no_new_privs() -> Result<(), Errno> {
    // SAFETY: integers only.
    check_raw(unsafe { libc::syscall(libc::SYS_prctl, libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) })
}

/// Drops the dangerous capabilities from every set. Nothing to drop is fine.
pub(super) fn drop_dangerous() -> Result<(), Errno> {
    let header = Header {
        version: VERSION_3,
        pid: 0,
    };
    let mut sets = [Half {
        effective: 0,
        permitted: 0,
        inheritable: 0,
    }; 2];
    // SAFETY: version 3 means two halves, which is what `sets` has room for.
    check_raw(unsafe { libc::syscall(libc::SYS_capget, &header, sets.as_mut_ptr()) })?;
    let mut held = 0;
    let mut index = 0;
    // No iterator here: the child must not run into a panic path.
    while index < DANGEROUS.len() {
        let capability = DANGEROUS[index];
        let (half, bit) = ((capability / 32) as usize, 1 << (capability % 32));
        held |= (sets[half].permitted | sets[half].effective | sets[half].inheritable) & bit;
        sets[half].effective &= !bit;
        sets[half].permitted &= !bit;
        sets[half].inheritable &= !bit;
        // The bounding set is out of reach for whoever lacks CAP_SETPCAP. With no_new_privs it gives nothing anyway.
        // SAFETY: integers only.
        unsafe { libc::syscall(libc::SYS_prctl, libc::PR_CAPBSET_DROP, capability, 0, 0, 0) };
        index += 1;
    }
    if held == 0 {
        return Ok(());
    }
    // SAFETY: as for capget; the kernel reads only.
    // Ambient capabilities follow the permitted and inheritable ones by themselves (capabilities(7)).
    check_raw(unsafe { libc::syscall(libc::SYS_capset, &header, sets.as_ptr()) })
}

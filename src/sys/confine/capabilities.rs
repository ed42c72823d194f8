//! Privileges that a script has no use for: for `guard` those by which root looks into foreign processes, for `sandbox`
//! all that are about more than files.

use crate::sys::spawn::{check_raw, Errno};

/// A set of capabilities, a bit for each number of `linux/capability.h`.
pub(super) type Set = u64;

const fn set(numbers: &[u32]) -> Set {
    let mut set = 0;
    let mut index = 0;
    while index < numbers.len() {
        set |= 1 << numbers[index];
        index += 1;
    }
    set
}

/// By which root reads the memory of processes: CAP_SYS_PTRACE, CAP_SYS_ADMIN and CAP_PERFMON, the last of which is
/// enough for `mm_access`; and past every process that of the machine: CAP_SYS_RAWIO (`/proc/kcore`, `/dev/mem`) and
/// CAP_SYS_MODULE.
pub(super) const DANGEROUS: Set = set(&[16, 17, 19, 21, 38]);

/// What a root that works on files needs: CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_FOWNER, CAP_FSETID, CAP_KILL, CAP_SETGID,
/// CAP_SETUID and CAP_NET_BIND_SERVICE. A sandbox keeps these and no other, also none that a later kernel brings:
/// CAP_SYS_RESOURCE would lift the limits, CAP_MKNOD make a device of a disk, CAP_NET_ADMIN change the network.
pub(super) const OF_A_SANDBOX: Set = set(&[0, 1, 3, 4, 5, 6, 7, 10]);

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

/// Drops `dropped` from every set. Nothing to drop is fine.
pub(super) fn drop_all_of(dropped: Set) -> Result<(), Errno> {
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
    drop_from_bounding_set(dropped);
    let [low, high] = &mut sets;
    let held = take_from(low, dropped as u32) | take_from(high, (dropped >> 32) as u32);
    if held == 0 {
        return Ok(());
    }
    // SAFETY: as for capget; the kernel reads only.
    // Ambient capabilities follow the permitted and inheritable ones by themselves (capabilities(7)).
    check_raw(unsafe { libc::syscall(libc::SYS_capset, &header, sets.as_ptr()) })
}

/// What of `dropped` was there.
fn take_from(half: &mut Half, dropped: u32) -> u32 {
    let held = (half.permitted | half.effective | half.inheritable) & dropped;
    half.effective &= !dropped;
    half.permitted &= !dropped;
    half.inheritable &= !dropped;
    held
}

/// The bounding set is out of reach for whoever lacks CAP_SETPCAP. With no_new_privs it gives nothing anyway.
fn drop_from_bounding_set(dropped: Set) {
    let mut capability = 0;
    // No iterator here: the child must not run into a panic path.
    while capability < Set::BITS {
        if dropped >> capability & 1 == 1 {
            // SAFETY: integers only; a number that the kernel does not know is refused.
            let dropped = unsafe {
                libc::syscall(libc::SYS_prctl, libc::PR_CAPBSET_DROP, capability, 0, 0, 0)
            };
            if dropped == -1 {
                return;
            }
        }
        capability += 1;
    }
}

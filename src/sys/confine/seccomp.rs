//! Putting a filter for system calls into force.

use super::filter::{self, Instruction};
use super::{Missing, NO_NETWORK, SECCOMP};
use crate::sys::feature::{denied, Feature};
use crate::sys::spawn::{check_raw, Errno};

/// `SECCOMP_SET_MODE_FILTER`
const SET_MODE_FILTER: u32 = 1;
/// `SECCOMP_FILTER_FLAG_SPEC_ALLOW`: before Linux 5.16 a filter else costs every later call a slower processor.
const SPEC_ALLOW: u32 = 1 << 2;

/// A filter that a child can put on itself; or nothing, where there is none to be had.
#[derive(Debug, Default)]
pub(super) struct Filter {
    program: Vec<Instruction>,
    /// What it achieves.
    pub(super) gives: Vec<&'static str>,
}

impl Filter {
    /// The filter for this processor, and what is missing where there is none.
    pub(super) fn prepare(network: bool) -> (Filter, Vec<Missing>) {
        let mut gives = vec![SECCOMP];
        if !network {
            gives.push(NO_NETWORK);
        }
        let why = match (filter::build(network), is_available()) {
            (Some(program), true) => return (Filter { program, gives }, Vec::new()),
            (None, _) => "there is no filter for this kind of processor",
            (_, false) => "this kernel has no seccomp filters, or they are switched off",
        };
        let consequence = |name| match name {
            NO_NETWORK => "the script can use the network",
            _ => "the script can make every system call",
        };
        let missing = |name| Missing::new(name, format!("{why}: {}", consequence(name)));
        (Filter::default(), gives.into_iter().map(missing).collect())
    }

    pub(super) fn plan(&self) -> Program {
        Program {
            // A longer one is never built; the kernel takes 4096 instructions.
            length: self.program.len() as u16,
            instructions: self.program.as_ptr(),
        }
    }
}

/// Whether the kernel would look at a filter: it complains that none is there.
fn is_available() -> bool {
    let nothing = std::ptr::null::<Program>();
    // SAFETY: the kernel fails to read the structure and changes nothing.
    let refused =
        check_raw(unsafe { libc::syscall(libc::SYS_seccomp, SET_MODE_FILTER, 0, nothing) });
    !denied(Feature::Seccomp) && refused == Err(libc::EFAULT)
}

/// `struct sock_fprog`, which points into a [`Filter`].
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(super) struct Program {
    length: u16,
    instructions: *const Instruction,
}

impl Program {
    pub(super) fn exists(&self) -> bool {
        self.length > 0
    }

    /// From here on, in the child, for itself and for all that it becomes and makes. Needs no_new_privs.
    pub(super) fn install(&self) -> Result<(), Errno> {
        // SAFETY: the plan's filter outlives the launch; the kernel copies what `self` describes.
        let set = |flags: u32| unsafe {
            libc::syscall(
                libc::SYS_seccomp,
                SET_MODE_FILTER,
                flags,
                self as *const Program,
            )
        };
        match check_raw(set(SPEC_ALLOW)) {
            // Linux before 4.17 does not know the flag.
            Err(libc::EINVAL) => check_raw(set(0)),
            done => done,
        }
    }
}

//! The leash: what ends a child's group when the host dies, however it dies, without a helper process.
//!
//! A pipe whose write end only the host holds. On Linux the read end is set to send SIGKILL to the child's group when
//! something happens on it (`F_SETSIG`, `O_ASYNC`, and the child takes ownership for its group), and the only thing
//! that ever happens is that the write end closes. Then the kernel itself does the killing. The child keeps no
//! descriptor of it, so a script can neither close nor defuse it.
//!
//! Elsewhere the child inherits the read end as descriptor [`DESCRIPTOR`] and must watch it itself: end of file
//! means that the host is gone.
//!
//! What it does not cover: processes that left the group, and a host that forked without exec while the leash
//! existed (the copy of the write end lives on). A child that watches itself does not while it is stopped, or in one
//! long call of a C function.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use crate::sys::fd;

/// The number under which a child inherits a leash that it has to watch itself.
pub(crate) const DESCRIPTOR: RawFd = 3;

/// The host's end, for one child. Dropping it kills what is left of the child's group (where the kernel does that).
#[derive(Debug)]
pub(crate) struct Leash {
    // Fields are dropped in this order: the write end must go while the armed read end is still there.
    _write: OwnedFd,
    read: OwnedFd,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    /// Closing the write end signals the group. A dying host closes its descriptors one by one, from either end
    /// of the table; with the read end on both sides of the write end, it is open when that goes.
    #[cfg_attr(any(not(target_os = "linux"), ptc_portable), allow(dead_code))]
    Signal { _read_above: OwnedFd },
    /// The child watches.
    Inherited,
}

impl Leash {
    /// A leash for one child, to be put into its [`crate::sys::spawn::Command`].
    pub(crate) fn new() -> io::Result<Leash> {
        let (read, write) = fd::high_pipe()?;
        if !arm(&read) {
            return Ok(Leash {
                _write: write,
                read,
                kind: Kind::Inherited,
            });
        }
        let write = fd::dup_above(write.as_raw_fd(), read.as_raw_fd() + 1)?;
        let above = fd::dup_above(read.as_raw_fd(), write.as_raw_fd() + 1)?;
        Ok(Leash {
            _write: write,
            read,
            kind: Kind::Signal { _read_above: above },
        })
    }

    /// The descriptor that the child has to watch: it is to be told the number (`PTC_LEASH_FD`). `None` where the
    /// kernel watches.
    pub(crate) fn descriptor_in_child(&self) -> Option<RawFd> {
        self.inherited().map(|_| DESCRIPTOR)
    }

    /// The read end, if the child is to inherit it.
    pub(in crate::sys) fn inherited(&self) -> Option<RawFd> {
        matches!(self.kind, Kind::Inherited).then(|| self.read.as_raw_fd())
    }

    /// The read end, if the child is to take ownership of its signal; else -1.
    pub(in crate::sys) fn to_own(&self) -> RawFd {
        match self.kind {
            Kind::Signal { .. } => self.read.as_raw_fd(),
            Kind::Inherited => -1,
        }
    }
}

/// Makes the read end send SIGKILL to its owner, whom it does not have yet.
#[cfg(all(target_os = "linux", not(ptc_portable)))]
fn arm(read: &OwnedFd) -> bool {
    use crate::sys::feature::{denied, Feature};
    /// `F_SETSIG` of `asm-generic/fcntl.h`; the C library's binding lacks it on some targets.
    const F_SETSIG: libc::c_int = 10;
    if denied(Feature::LeashSignal) {
        return false;
    }
    // SAFETY: integers only, on a descriptor of our own.
    unsafe {
        libc::fcntl(read.as_raw_fd(), F_SETSIG, libc::SIGKILL) == 0
            && libc::fcntl(read.as_raw_fd(), libc::F_SETFL, libc::O_ASYNC) == 0
    }
}

#[cfg(not(all(target_os = "linux", not(ptc_portable))))]
fn arm(_read: &OwnedFd) -> bool {
    false
}

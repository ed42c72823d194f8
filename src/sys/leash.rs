//! The leash: what ends a child's group when the host dies, however it dies, without a helper process.
//!
//! On Linux it is a socket pair, both ends of which only the host holds. Each is set to send SIGKILL to the child's
//! group when something happens on it (`F_SETSIG`, `O_ASYNC`, and the child takes ownership for its group), and the only
//! thing that ever happens is that the other one closes. Then the kernel itself does the killing. The child keeps no
//! descriptor of it, so a script can neither close nor defuse it. Two ends that watch each other need no order: a dying
//! process does close its descriptors in that of their numbers, but what is done with each comes later, in an order that
//! differs from kernel to kernel, and an end that is gone sends no signal any more.
//!
//! Elsewhere it is a pipe. The child inherits the read end as descriptor [`DESCRIPTOR`] and must watch it itself: end of
//! file means that the host is gone.
//!
//! What it does not cover: processes that left the group, and a host that forked without exec while the leash
//! existed (the copies of the ends live on). A child that watches itself does not while it is stopped, or in one
//! long call of a C function.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use crate::sys::fd;

/// The number under which a child inherits a leash that it has to watch itself.
pub(crate) const DESCRIPTOR: RawFd = 3;

/// The host's ends, for one child. Dropping them kills what is left of the child's group (where the kernel does that).
#[derive(Debug)]
pub(crate) struct Leash(Kind);

#[derive(Debug)]
enum Kind {
    /// Whichever end closes first makes the other one signal the group.
    #[cfg_attr(any(not(target_os = "linux"), ptc_portable), allow(dead_code))]
    Signal([OwnedFd; 2]),
    /// The child watches for the end of the pipe.
    Inherited { read: OwnedFd, _write: OwnedFd },
}

impl Leash {
    /// A leash for one child, to be put into its [`crate::sys::spawn::Command`].
    pub(crate) fn new() -> io::Result<Leash> {
        if let Some(ends) = armed_pair()? {
            return Ok(Leash(Kind::Signal(ends)));
        }
        let (read, write) = fd::high_pipe()?;
        Ok(Leash(Kind::Inherited {
            read,
            _write: write,
        }))
    }

    /// The descriptor that the child has to watch: it is to be told the number (`PTC_LEASH_FD`). `None` where the
    /// kernel watches.
    pub(crate) fn descriptor_in_child(&self) -> Option<RawFd> {
        self.inherited().map(|_| DESCRIPTOR)
    }

    /// The read end, if the child is to inherit it.
    pub(in crate::sys) fn inherited(&self) -> Option<RawFd> {
        match &self.0 {
            Kind::Signal(_) => None,
            Kind::Inherited { read, .. } => Some(read.as_raw_fd()),
        }
    }

    /// The ends whose signals the child is to take ownership of; else -1.
    pub(in crate::sys) fn to_own(&self) -> [RawFd; 2] {
        match &self.0 {
            Kind::Signal(ends) => ends.each_ref().map(AsRawFd::as_raw_fd),
            Kind::Inherited { .. } => [-1; 2],
        }
    }
}

/// Two connected ends, each of which sends SIGKILL to its owner, whom it does not have yet. `None` where that cannot be.
#[cfg(all(target_os = "linux", not(ptc_portable)))]
fn armed_pair() -> io::Result<Option<[OwnedFd; 2]>> {
    use crate::sys::feature::{denied, Feature};
    /// `F_SETSIG` of `asm-generic/fcntl.h`; the C library's binding lacks it on some targets.
    const F_SETSIG: libc::c_int = 10;
    if denied(Feature::LeashSignal) {
        return Ok(None);
    }
    let (one, other) = fd::socketpair()?;
    let ends = [fd::moved_high(one)?, fd::moved_high(other)?];
    let arm = |end: &OwnedFd| {
        // SAFETY: integers only, on a descriptor of our own.
        unsafe {
            libc::fcntl(end.as_raw_fd(), F_SETSIG, libc::SIGKILL) == 0
                && libc::fcntl(end.as_raw_fd(), libc::F_SETFL, libc::O_ASYNC) == 0
        }
    };
    Ok(ends.iter().all(arm).then_some(ends))
}

#[cfg(not(all(target_os = "linux", not(ptc_portable))))]
fn armed_pair() -> io::Result<Option<[OwnedFd; 2]>> {
    Ok(None)
}

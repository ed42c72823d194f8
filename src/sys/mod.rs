//! Every system call of the crate.
//!
//! Promises that hold for all of it: a descriptor is close-on-exec from birth and never 0, 1 or 2; a call
//! interrupted by a signal is taken up again with the time that is left; a call that only Linux has is replaced by
//! POSIX means where the kernel lacks it, and left out of the build altogether with `--cfg ptc_portable`.
//! Systems that are not Unix get nothing but [`supported`].

#[cfg(unix)]
mod at;
#[cfg(unix)]
pub(crate) mod child;
#[cfg(unix)]
pub(crate) mod confine;
#[cfg(unix)]
pub(crate) mod dir;
#[cfg(unix)]
mod entries;
#[cfg(unix)]
pub(crate) mod fd;
#[cfg(unix)]
pub(crate) mod feature;
#[cfg(unix)]
pub(crate) mod host;
#[cfg(unix)]
pub(crate) mod interrupt;
#[cfg(unix)]
pub(crate) mod leash;
#[cfg(unix)]
pub(crate) mod poll;
#[cfg(unix)]
pub(crate) mod poller;
pub(crate) mod process_local;
#[cfg(unix)]
pub(crate) mod random;
#[cfg(unix)]
pub(crate) mod scan;
#[cfg(unix)]
pub(crate) mod socket;
#[cfg(unix)]
pub(crate) mod spawn;
#[cfg(unix)]
pub(crate) mod survey;
#[cfg(unix)]
pub(crate) mod thread;
#[cfg(unix)]
pub(crate) mod walk;

/// Whether this system can run scripts at all.
pub(crate) fn supported() -> bool {
    cfg!(unix)
}

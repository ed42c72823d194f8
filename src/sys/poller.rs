//! Readiness of many descriptors, served by many threads at once: whoever serves a tool call reads the request and
//! writes the answer itself, with no relay thread between the kernel and the work.
//!
//! - **One-shot.** An event is given to exactly one waiting thread and disarms its descriptor until [`Poller::rearm`],
//!   so that no two threads serve one connection at a time and a hung-up peer cannot make anybody spin. What is
//!   already there when a descriptor is (re)armed counts: no edge can be missed.
//! - **Stale events.** [`Poller::remove`] is safe while others wait, but an event that was on its way to another
//!   thread may still arrive afterwards, once. Callers look the token up and shrug at one that they do not know;
//!   tokens are therefore never reused.
//! - **No wake is lost**, see [`Poller::wake_one`] and [`Poller::wake_all`].
//!
//! Two implementations with one behaviour: [`epoll`] on Linux, [`portable`] (`poll(2)`) elsewhere and where a
//! sandbox withholds epoll.

#[cfg(all(target_os = "linux", not(ptc_portable)))]
mod epoll;
mod portable;
#[cfg(test)]
mod tests;

use std::io;
use std::os::fd::RawFd;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// What to wait for on a descriptor. Hangups and errors are reported even when neither is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Interest {
    /// Bytes, a connection or the end of the stream.
    pub(crate) read: bool,
    /// Room to write.
    pub(crate) write: bool,
}

impl Interest {
    /// Reading only.
    pub(crate) const READ: Interest = Interest {
        read: true,
        write: false,
    };
}

/// Why [`Poller::wait`] returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ready {
    /// A descriptor is ready; it is disarmed now.
    Event {
        /// The token it was added or last armed with.
        token: u64,
        /// A read would not wait.
        readable: bool,
        /// A write would not wait.
        writable: bool,
        /// The peer has gone or the descriptor is broken: read what is left, then remove it.
        hangup: bool,
    },
    /// [`Poller::wake_one`] or [`Poller::wake_all`].
    Woken,
    /// The deadline has come.
    Timeout,
}

/// Which [`Poller::wake_all`] a thread has seen last. Each thread keeps one, `default()` to begin with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Generation(u64);

/// See the [module](self). Shared by reference between threads.
///
/// Not usable in a forked child, which would take events away from its parent.
#[derive(Debug)]
pub(crate) struct Poller {
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    #[cfg(all(target_os = "linux", not(ptc_portable)))]
    Epoll(epoll::Poller),
    Portable(portable::Poller),
}

/// The same method of whichever implementation there is.
macro_rules! forward {
    ($poller:expr, $inner:ident => $call:expr) => {
        match &$poller.kind {
            #[cfg(all(target_os = "linux", not(ptc_portable)))]
            Kind::Epoll($inner) => $call,
            Kind::Portable($inner) => $call,
        }
    };
}

impl Poller {
    /// The best poller that this system has. Fails when there are no descriptors left.
    pub(crate) fn new() -> io::Result<Self> {
        #[cfg(all(target_os = "linux", not(ptc_portable)))]
        match epoll::Poller::new() {
            Err(error) if super::fd::is_missing(&error) => {}
            made => {
                return made.map(|inner| Poller {
                    kind: Kind::Epoll(inner),
                })
            }
        }
        Poller::portable()
    }

    fn portable() -> io::Result<Self> {
        portable::Poller::new().map(|inner| Poller {
            kind: Kind::Portable(inner),
        })
    }

    /// Watches an open, non-blocking descriptor. `AlreadyExists` if it is watched, `InvalidInput` for the token
    /// `u64::MAX`, which is reserved.
    pub(crate) fn add(&self, fd: RawFd, token: u64, interest: Interest) -> io::Result<()> {
        check_token(token)?;
        forward!(self, inner => inner.add(fd, token, interest))
    }

    /// Arms a watched descriptor again, or changes what an armed one waits for. `NotFound` if it is not watched.
    pub(crate) fn rearm(&self, fd: RawFd, token: u64, interest: Interest) -> io::Result<()> {
        check_token(token)?;
        forward!(self, inner => inner.rearm(fd, token, interest))
    }

    /// Stops watching. To be called before the descriptor is closed: the kernel does not forget a closed descriptor
    /// as long as a forked child of the host holds a copy. `NotFound` if it is not watched.
    pub(crate) fn remove(&self, fd: RawFd) -> io::Result<()> {
        forward!(self, inner => inner.remove(fd))
    }

    /// Waits for one event, a wake or the deadline, whichever is first; with a deadline in the past it looks once.
    ///
    /// `seen` is the calling thread's own and tells which broadcast it knows of.
    pub(crate) fn wait(
        &self,
        seen: &mut Generation,
        deadline: Option<Instant>,
    ) -> io::Result<Ready> {
        forward!(self, inner => inner.wait(seen, deadline))
    }

    /// Makes one `wait` return [`Ready::Woken`]: one that is waiting, else the next one. They add up, so that n calls
    /// wake n waits.
    pub(crate) fn wake_one(&self) {
        forward!(self, inner => inner.wake_one());
    }

    /// Makes every thread return [`Ready::Woken`] from the `wait` it is in or, if it is not in one or is just leaving
    /// with an event, from its next. Thus a thread that looked at shared state before it was changed, and waits only
    /// after this call, is woken too. Calls that a thread has not seen yet count as one.
    pub(crate) fn wake_all(&self) {
        forward!(self, inner => inner.wake_all());
    }

    /// What a thread that has seen every broadcast knows.
    #[cfg(test)]
    fn generation(&self) -> Generation {
        forward!(self, inner => inner.generation())
    }

    /// How many threads are in `wait`, or on the last steps to it.
    #[cfg(test)]
    fn waiting(&self) -> usize {
        forward!(self, inner => inner.waiting())
    }
}

fn check_token(token: u64) -> io::Result<()> {
    if token == u64::MAX {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "the token u64::MAX is the poller's own",
        ));
    }
    Ok(())
}

/// The state behind a mutex is consistent after every statement, so a panic elsewhere does not spoil it.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

//! `poll(2)` against an absolute deadline, and the arithmetic of deadlines.
//!
//! A deadline is an `Option<Instant>`: `None` is "no limit", so that a time too far away to be an `Instant` is no
//! limit either. `Instant` is monotonic: a wall clock that jumps moves no deadline, and on Linux a machine that sleeps
//! does not use its time up.

use std::io;
use std::os::fd::RawFd;
use std::time::{Duration, Instant};

use super::fd::check;

/// The instant `wait` from now, or no limit when the clock cannot express it.
pub(crate) fn deadline_after(wait: Duration) -> Option<Instant> {
    Instant::now().checked_add(wait)
}

/// Whether the deadline has come.
pub(crate) fn has_passed(deadline: Option<Instant>) -> bool {
    deadline.is_some_and(|deadline| Instant::now() >= deadline)
}

/// The time that is left, in the milliseconds of poll and epoll: -1 for no limit, rounded up so that the last
/// fraction is slept and not spun, clamped to what the type holds (the caller looks at the clock again).
pub(super) fn timeout_ms(deadline: Option<Instant>) -> i32 {
    let Some(deadline) = deadline else { return -1 };
    whole_ms(deadline.saturating_duration_since(Instant::now()))
}

fn whole_ms(left: Duration) -> i32 {
    i32::try_from(left.as_nanos().div_ceil(1_000_000)).unwrap_or(i32::MAX)
}

/// One descriptor in a [`poll`] and what was found on it.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub(crate) struct PollFd(libc::pollfd);

impl PollFd {
    /// Waits for something to read (or an end, or an error).
    pub(crate) fn readable(fd: RawFd) -> Self {
        PollFd::new(fd, true, false)
    }

    /// Waits for the named directions; errors and hangups are reported without being asked for. A negative
    /// descriptor is ignored.
    pub(crate) fn new(fd: RawFd, read: bool, write: bool) -> Self {
        let mut events = 0;
        if read {
            events |= libc::POLLIN;
        }
        if write {
            events |= libc::POLLOUT;
        }
        PollFd(libc::pollfd {
            fd,
            events,
            revents: 0,
        })
    }

    /// The descriptor; negative when ignored.
    pub(crate) fn fd(&self) -> RawFd {
        self.0.fd
    }

    /// There is something to read, perhaps the end.
    pub(crate) fn is_readable(&self) -> bool {
        self.has(libc::POLLIN)
    }

    /// There is room to write.
    pub(crate) fn is_writable(&self) -> bool {
        self.has(libc::POLLOUT)
    }

    /// The other side has gone, or the descriptor is broken or not open. There may still be bytes to read.
    pub(crate) fn is_hangup(&self) -> bool {
        self.has(libc::POLLHUP | libc::POLLERR | libc::POLLNVAL)
    }

    /// Anything at all was found: a read would not wait.
    pub(crate) fn is_ready(&self) -> bool {
        self.0.revents != 0
    }

    fn has(&self, events: i16) -> bool {
        self.0.revents & events != 0
    }
}

/// Waits until there is something to read from `fd`, its end included; false when the deadline has come first, or when
/// the kernel cannot tell.
pub(super) fn wait_readable(fd: RawFd, deadline: Option<Instant>) -> bool {
    let mut fds = [PollFd::readable(fd)];
    poll(&mut fds, deadline).is_ok() && fds[0].is_ready()
}

/// Waits until at least one descriptor is ready or the deadline has come (0). Looks once when it already has.
pub(crate) fn poll(fds: &mut [PollFd], deadline: Option<Instant>) -> io::Result<usize> {
    loop {
        let timeout = timeout_ms(deadline);
        // SAFETY: `PollFd` is a transparent pollfd, and pointer and length describe `fds`, borrowed mutably.
        let found = check(unsafe {
            libc::poll(fds.as_mut_ptr().cast(), fds.len() as libc::nfds_t, timeout)
        });
        match found {
            Ok(0) if !has_passed(deadline) => {}
            Ok(count) => return Ok(count as usize),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::fd;
    use std::os::fd::AsRawFd;

    #[test]
    fn timeouts_are_rounded_up_and_clamped() {
        let ms = |nanos| whole_ms(Duration::from_nanos(nanos));
        assert_eq!([ms(0), ms(1), ms(1_000_000), ms(1_000_001)], [0, 1, 1, 2]);
        assert_eq!(whole_ms(Duration::MAX), i32::MAX);
        assert_eq!(timeout_ms(None), -1);
        assert_eq!(timeout_ms(Some(Instant::now())), 0);
        assert!(timeout_ms(deadline_after(Duration::from_secs(3600))) > 0);
        assert_eq!(deadline_after(Duration::MAX), None);
    }

    #[test]
    fn poll_returns_empty_handed_only_after_the_deadline() {
        let (reader, _writer) = fd::pipe().unwrap();
        let deadline = deadline_after(Duration::from_micros(500));
        let mut fds = [PollFd::readable(reader.as_raw_fd())];
        assert_eq!(poll(&mut fds, deadline).unwrap(), 0);
        assert!(has_passed(deadline));
        assert!(!fds[0].is_ready());
    }

    #[test]
    fn a_closed_writer_is_a_hangup() {
        let (reader, writer) = fd::pipe().unwrap();
        drop(writer);
        let mut fds = [PollFd::readable(reader.as_raw_fd())];
        assert_eq!(poll(&mut fds, None).unwrap(), 1);
        assert!(fds[0].is_hangup());
    }

    #[test]
    fn a_signal_handler_does_not_end_the_wait() {
        extern "C" fn nothing(_: libc::c_int) {}
        let mut action: libc::sigaction = {
            // SAFETY: all zero is a valid sigaction: no flags, an empty mask.
            unsafe { std::mem::zeroed() }
        };
        action.sa_sigaction = nothing as extern "C" fn(libc::c_int) as usize;
        // SAFETY: the handler does nothing, so it is async-signal-safe; no other test uses SIGWINCH.
        assert_eq!(
            unsafe { libc::sigaction(libc::SIGWINCH, &action, std::ptr::null_mut()) },
            0
        );
        let (left, right) = fd::socketpair().unwrap();
        // SAFETY: pthread_self has no preconditions.
        let waiter = unsafe { libc::pthread_self() } as usize;
        let sender = std::thread::spawn(move || {
            for _ in 0..200 {
                // SAFETY: the waiter joins this thread before it ends, so its id is valid.
                unsafe { libc::pthread_kill(waiter as libc::pthread_t, libc::SIGWINCH) };
                std::thread::yield_now();
            }
            fd::send(right.as_raw_fd(), b"x").unwrap();
            right
        });
        let mut fds = [PollFd::new(left.as_raw_fd(), true, false)];
        assert_eq!(poll(&mut fds, None).unwrap(), 1);
        assert!(fds[0].is_readable() && !fds[0].is_writable());
        drop(sender.join());
    }
}

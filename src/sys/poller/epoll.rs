//! The poller of Linux: all threads wait in `epoll_wait` on one descriptor, and the kernel wakes one of them an event.
//!
//! Waking goes through one eventfd that is always readable and normally disarmed. To wake is to count and to arm it;
//! the thread that gets its event looks at the counts, and arms it again if there is more to hand on. So a wake costs
//! no write and no read, and a chain of them no herd.
//!
//! A broadcast must reach the threads that are waiting *now*. While one is under way nobody else is let in, since a
//! newcomer could take the event from them; the gate is open again as soon as the last of them has left.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Instant;

use super::{lock, Generation, Interest, Ready};
use crate::sys::fd::{adopt, check};
use crate::sys::poll::{has_passed, timeout_ms};

/// The token of the eventfd.
const WAKE: u64 = u64::MAX;

#[derive(Debug)]
pub(super) struct Poller {
    epoll: OwnedFd,
    bell: OwnedFd,
    wakes: Mutex<Wakes>,
    gate: Condvar,
}

#[derive(Debug, Default)]
struct Wakes {
    /// Broadcasts so far.
    generation: Generation,
    /// Threads between `enter` and `leave`.
    inside: usize,
    /// Those of them that were inside at the last broadcast and have not left since. While there are any, they are
    /// all of `inside`.
    behind: usize,
    /// Threads held at the gate.
    held: usize,
    /// Single wakes that nobody has taken yet.
    tickets: usize,
}

impl Wakes {
    /// Takes a wake that is meant for the calling thread.
    fn take(&mut self, seen: &mut Generation) -> bool {
        if *seen != self.generation {
            *seen = self.generation;
            return true;
        }
        let taken = self.tickets > 0;
        self.tickets -= usize::from(taken);
        taken
    }

    /// Whether a thread inside is still to be woken.
    fn is_pending(&self) -> bool {
        self.inside > 0 && (self.behind > 0 || self.tickets > 0)
    }
}

impl Poller {
    pub(super) fn new() -> io::Result<Self> {
        // SAFETY: takes an integer; the new descriptor is adopted at once.
        let epoll = unsafe { adopt(check(libc::epoll_create1(libc::EPOLL_CLOEXEC))?)? };
        let flags = libc::EFD_CLOEXEC | libc::EFD_NONBLOCK;
        // SAFETY: takes integers; the new descriptor is adopted at once. A count of 1 that nobody reads keeps it
        // readable for ever.
        let bell = unsafe { adopt(check(libc::eventfd(1, flags))?)? };
        let poller = Poller {
            epoll,
            bell,
            wakes: Mutex::default(),
            gate: Condvar::new(),
        };
        let disarmed = libc::EPOLLONESHOT as u32;
        poller.control(libc::EPOLL_CTL_ADD, poller.bell.as_raw_fd(), WAKE, disarmed)?;
        Ok(poller)
    }

    pub(super) fn add(&self, fd: RawFd, token: u64, interest: Interest) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, fd, token, events(interest))
    }

    pub(super) fn rearm(&self, fd: RawFd, token: u64, interest: Interest) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_MOD, fd, token, events(interest))
    }

    pub(super) fn remove(&self, fd: RawFd) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_DEL, fd, 0, 0)
    }

    fn control(&self, operation: i32, fd: RawFd, token: u64, events: u32) -> io::Result<()> {
        let mut event = libc::epoll_event { events, u64: token };
        // SAFETY: `event` outlives the call, which only reads it.
        check(unsafe { libc::epoll_ctl(self.epoll.as_raw_fd(), operation, fd, &mut event) })
            .map(drop)
    }

    pub(super) fn wait(
        &self,
        seen: &mut Generation,
        deadline: Option<Instant>,
    ) -> io::Result<Ready> {
        if let Some(ready) = self.enter(seen) {
            return Ok(ready);
        }
        let known = *seen;
        let ready = self.wait_inside(seen, deadline);
        self.leave(known);
        ready
    }

    /// Counts the thread in, unless it has its answer already.
    fn enter(&self, seen: &mut Generation) -> Option<Ready> {
        let mut wakes = lock(&self.wakes);
        loop {
            if wakes.take(seen) {
                return Some(Ready::Woken);
            }
            if wakes.behind == 0 {
                wakes.inside += 1;
                return None;
            }
            // Short: those inside have been woken and need only get out. So the caller's deadline can wait for them.
            wakes.held += 1;
            wakes = self
                .gate
                .wait(wakes)
                .unwrap_or_else(PoisonError::into_inner);
            wakes.held -= 1;
        }
    }

    fn wait_inside(&self, seen: &mut Generation, deadline: Option<Instant>) -> io::Result<Ready> {
        loop {
            match self.next_event(deadline)? {
                None => return Ok(Ready::Timeout),
                Some(event) if event.u64 != WAKE => return Ok(ready(event)),
                // Not for us when a thread that was just entering has taken the wake without the event.
                Some(_) if lock(&self.wakes).take(seen) => return Ok(Ready::Woken),
                Some(_) => {}
            }
        }
    }

    fn next_event(&self, deadline: Option<Instant>) -> io::Result<Option<libc::epoll_event>> {
        let mut event = libc::epoll_event { events: 0, u64: 0 };
        loop {
            let epoll = self.epoll.as_raw_fd();
            // SAFETY: there is room for the one event that is asked for.
            let found =
                check(unsafe { libc::epoll_wait(epoll, &mut event, 1, timeout_ms(deadline)) });
            match found {
                Ok(0) if has_passed(deadline) => return Ok(None),
                Ok(0) => {}
                Ok(_) => return Ok(Some(event)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Counts the thread out, whatever it returns with, and hands the next wake on: this thread may have consumed
    /// the bell's event on behalf of several.
    fn leave(&self, known: Generation) {
        let mut wakes = lock(&self.wakes);
        wakes.inside -= 1;
        if known != wakes.generation {
            wakes.behind -= 1;
            if wakes.behind == 0 && wakes.held > 0 {
                self.gate.notify_all();
            }
        }
        let pending = wakes.is_pending();
        drop(wakes);
        if pending {
            self.ring();
        }
    }

    #[cfg(test)]
    pub(super) fn generation(&self) -> Generation {
        lock(&self.wakes).generation
    }

    #[cfg(test)]
    pub(super) fn waiting(&self) -> usize {
        lock(&self.wakes).inside
    }

    pub(super) fn wake_one(&self) {
        let mut wakes = lock(&self.wakes);
        wakes.tickets += 1;
        let pending = wakes.is_pending();
        drop(wakes);
        if pending {
            self.ring();
        }
    }

    pub(super) fn wake_all(&self) {
        let mut wakes = lock(&self.wakes);
        wakes.generation.0 += 1;
        wakes.behind = wakes.inside;
        let pending = wakes.is_pending();
        drop(wakes);
        if pending {
            self.ring();
        }
    }

    /// Arms the bell, which makes it ready at once.
    fn ring(&self) {
        let fd = self.bell.as_raw_fd();
        let rung = self.control(libc::EPOLL_CTL_MOD, fd, WAKE, events(Interest::READ));
        // Both descriptors are ours and the bell is registered, so none of the errors of epoll_ctl can occur.
        debug_assert!(rung.is_ok(), "{rung:?}");
    }
}

fn events(interest: Interest) -> u32 {
    let mut events = libc::EPOLLONESHOT;
    if interest.read {
        events |= libc::EPOLLIN;
    }
    if interest.write {
        events |= libc::EPOLLOUT;
    }
    events as u32
}

fn ready(event: libc::epoll_event) -> Ready {
    let has = |flags: i32| event.events & flags as u32 != 0;
    Ready::Event {
        token: event.u64,
        readable: has(libc::EPOLLIN),
        writable: has(libc::EPOLLOUT),
        hangup: has(libc::EPOLLHUP | libc::EPOLLERR),
    }
}

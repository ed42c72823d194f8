//! The poller of POSIX: one thread at a time, the leader, is in `poll(2)` over all armed descriptors; the others, its
//! followers, sleep on a condition variable. A leader that found something leaves with one event and puts the others
//! into a queue; every thread that leaves passes on what is left: an event, a wake or the lead.
//!
//! A change that the leader must know of nudges it out of `poll` through a socketpair. (Not a pipe: a send can do
//! without SIGPIPE.)

use std::collections::{HashMap, VecDeque};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::{lock, Generation, Interest, Ready};
use crate::sys::fd::{self, check};
use crate::sys::poll::{has_passed, poll, PollFd};

#[derive(Debug)]
pub(super) struct Poller {
    state: Mutex<State>,
    followers: Condvar,
    nudge_reader: OwnedFd,
    nudge_writer: OwnedFd,
}

#[derive(Debug, Default)]
struct State {
    watched: HashMap<RawFd, Watch>,
    /// Of the next watch: tells a descriptor from a later one with the same number.
    next_serial: u64,
    /// Found by a leader, not yet taken. Their descriptors are disarmed.
    found: VecDeque<(RawFd, Ready)>,
    has_leader: bool,
    /// A byte for the leader is on its way.
    nudged: bool,
    /// Threads on the condition variable, or woken and not back yet.
    follower_count: usize,
    generation: Generation,
    tickets: usize,
}

#[derive(Debug, Clone, Copy)]
struct Watch {
    token: u64,
    interest: Interest,
    armed: bool,
    serial: u64,
}

type Guard<'a> = MutexGuard<'a, State>;

impl Poller {
    pub(super) fn new() -> io::Result<Self> {
        let (nudge_reader, nudge_writer) = fd::socketpair()?;
        Ok(Poller {
            state: Mutex::default(),
            followers: Condvar::new(),
            nudge_reader,
            nudge_writer,
        })
    }

    pub(super) fn add(&self, fd: RawFd, token: u64, interest: Interest) -> io::Result<()> {
        // SAFETY: fcntl without an argument touches no memory of ours.
        check(unsafe { libc::fcntl(fd, libc::F_GETFD) })?;
        let mut state = lock(&self.state);
        if state.watched.contains_key(&fd) {
            return Err(io::Error::from_raw_os_error(libc::EEXIST));
        }
        state.arm(fd, token, interest);
        self.nudge(&mut state);
        Ok(())
    }

    pub(super) fn rearm(&self, fd: RawFd, token: u64, interest: Interest) -> io::Result<()> {
        let mut state = lock(&self.state);
        if !state.watched.contains_key(&fd) {
            return Err(not_watched());
        }
        // An event that nobody has taken would be a second one; what it told of will be found again.
        state.found.retain(|(found, _)| *found != fd);
        state.arm(fd, token, interest);
        self.nudge(&mut state);
        Ok(())
    }

    pub(super) fn remove(&self, fd: RawFd) -> io::Result<()> {
        let mut state = lock(&self.state);
        state.watched.remove(&fd).ok_or_else(not_watched)?;
        state.found.retain(|(found, _)| *found != fd);
        // A descriptor that is being polled stays open in the kernel whoever closes it.
        self.nudge(&mut state);
        Ok(())
    }

    pub(super) fn wait(
        &self,
        seen: &mut Generation,
        deadline: Option<Instant>,
    ) -> io::Result<Ready> {
        let mut state = lock(&self.state);
        // Whether the descriptors were looked at: even a deadline in the past is worth one look.
        let mut looked = false;
        let ready = loop {
            if let Some(ready) = state.take(seen) {
                break Ok(ready);
            }
            if looked && has_passed(deadline) {
                break Ok(Ready::Timeout);
            }
            if state.has_leader {
                state = self.follow(state, deadline);
                looked = true;
                continue;
            }
            match self.lead(state, deadline) {
                (after, Ok(())) => state = after,
                (after, Err(error)) => {
                    state = after;
                    break Err(error);
                }
            }
            looked = true;
        };
        self.pass_on(&mut state);
        ready
    }

    /// Sleeps until somebody passes something on or the deadline has come.
    fn follow<'a>(&self, mut state: Guard<'a>, deadline: Option<Instant>) -> Guard<'a> {
        state.follower_count += 1;
        let mut state = match deadline {
            None => self
                .followers
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner),
            Some(deadline) => {
                let left = deadline.saturating_duration_since(Instant::now());
                let woken = self.followers.wait_timeout(state, left);
                woken.unwrap_or_else(PoisonError::into_inner).0
            }
        };
        state.follower_count -= 1;
        state
    }

    /// Polls once, with the lock released, and queues what was found.
    fn lead<'a>(
        &'a self,
        mut state: Guard<'a>,
        deadline: Option<Instant>,
    ) -> (Guard<'a>, io::Result<()>) {
        state.has_leader = true;
        let (mut fds, serials) = state.poll_set(self.nudge_reader.as_raw_fd());
        drop(state);
        let polled = poll(&mut fds, deadline);
        let mut state = lock(&self.state);
        state.has_leader = false;
        if let Err(error) = polled {
            return (state, Err(error));
        }
        if fds[0].is_ready() {
            // At most one byte is under way.
            let _ = fd::recv(self.nudge_reader.as_raw_fd(), &mut [0; 8]);
            state.nudged = false;
        }
        for (found, serial) in fds[1..].iter().zip(serials) {
            state.collect(found, serial);
        }
        (state, Ok(()))
    }

    /// Wakes one more thread if there is something for it: an event, a wake, or the lead that nobody has. That thread
    /// does the same when it leaves.
    fn pass_on(&self, state: &mut State) {
        let is_pending = !state.found.is_empty() || state.tickets > 0;
        if state.follower_count > 0 && (is_pending || !state.has_leader) {
            self.followers.notify_one();
        } else if is_pending {
            self.nudge(state);
        }
    }

    #[cfg(test)]
    pub(super) fn generation(&self) -> Generation {
        lock(&self.state).generation
    }

    #[cfg(test)]
    pub(super) fn waiting(&self) -> usize {
        let state = lock(&self.state);
        state.follower_count + usize::from(state.has_leader)
    }

    pub(super) fn wake_one(&self) {
        let mut state = lock(&self.state);
        state.tickets += 1;
        self.pass_on(&mut state);
    }

    pub(super) fn wake_all(&self) {
        let mut state = lock(&self.state);
        state.generation.0 += 1;
        self.followers.notify_all();
        self.nudge(&mut state);
    }

    /// Makes the leader, if there is one, come back and look at the state.
    fn nudge(&self, state: &mut State) {
        if state.has_leader && !state.nudged {
            // An empty socket with both ends open takes a byte.
            let sent = fd::send(self.nudge_writer.as_raw_fd(), &[1]);
            state.nudged = sent.is_ok();
        }
    }
}

impl State {
    fn arm(&mut self, fd: RawFd, token: u64, interest: Interest) {
        let serial = self.next_serial;
        self.next_serial += 1;
        let watch = Watch {
            token,
            interest,
            armed: true,
            serial,
        };
        self.watched.insert(fd, watch);
    }

    /// What there is for the calling thread.
    fn take(&mut self, seen: &mut Generation) -> Option<Ready> {
        if *seen != self.generation {
            *seen = self.generation;
            return Some(Ready::Woken);
        }
        if self.tickets > 0 {
            self.tickets -= 1;
            return Some(Ready::Woken);
        }
        self.found.pop_front().map(|(_, ready)| ready)
    }

    /// The nudge descriptor and all armed ones, with the serials of the latter.
    fn poll_set(&self, nudge: RawFd) -> (Vec<PollFd>, Vec<u64>) {
        let mut fds = vec![PollFd::readable(nudge)];
        let mut serials = Vec::new();
        for (&fd, watch) in self.watched.iter().filter(|(_, watch)| watch.armed) {
            fds.push(PollFd::new(fd, watch.interest.read, watch.interest.write));
            serials.push(watch.serial);
        }
        (fds, serials)
    }

    /// Queues an event, unless its descriptor was removed or armed anew while the leader polled.
    fn collect(&mut self, found: &PollFd, serial: u64) {
        let Some(watch) = self.watched.get_mut(&found.fd()) else {
            return;
        };
        if !found.is_ready() || watch.serial != serial || !watch.armed {
            return;
        }
        watch.armed = false;
        let ready = Ready::Event {
            token: watch.token,
            readable: found.is_readable(),
            writable: found.is_writable(),
            hangup: found.is_hangup(),
        };
        self.found.push_back((found.fd(), ready));
    }
}

fn not_watched() -> io::Error {
    io::Error::from_raw_os_error(libc::ENOENT)
}

//! The end of a process as a readable pipe, made by a thread that does nothing but wait for it.
//!
//! For systems without process descriptors. The thread waits from the start, so that it is not late even when the host
//! reaps everything: it is then told that there is nothing to wait for, which is an end too.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;

use super::wait::{self, Found};
use super::ExitStatus;
use crate::sys::fd;
use crate::sys::thread::spawn_blocked;

#[derive(Debug)]
pub(super) struct Waiter {
    event: OwnedFd,
    seen: Arc<Mutex<Option<Found>>>,
    thread: Option<JoinHandle<()>>,
}

impl Waiter {
    /// Starts to wait for `pid`, a child of this process.
    pub(super) fn start(pid: libc::pid_t) -> io::Result<Waiter> {
        let (event, write) = fd::high_pipe()?;
        let seen = Arc::new(Mutex::new(None));
        let result = Arc::clone(&seen);
        let thread = spawn_blocked("ptc-wait", move || {
            let found =
                wait::wait(libc::P_PID, pid as libc::id_t, libc::WNOWAIT).unwrap_or(Found::NotOurs);
            *lock(&result) = Some(found);
            announce(&write);
        })?;
        Ok(Waiter {
            event,
            seen,
            thread: Some(thread),
        })
    }

    /// Readable once the process has ended.
    pub(super) fn event(&self) -> &OwnedFd {
        &self.event
    }

    pub(super) fn status(&self) -> Option<ExitStatus> {
        match *lock(&self.seen) {
            None | Some(Found::Running) => None,
            Some(Found::Ended(status)) => Some(status),
            Some(Found::NotOurs) => Some(ExitStatus::Unknown),
        }
    }

    /// Whether, as far as the thread knows, the process still holds its number.
    pub(super) fn is_unreaped(&self) -> bool {
        *lock(&self.seen) != Some(Found::NotOurs)
    }

    /// Reaps the process, which has ended.
    pub(super) fn finish(mut self, pid: libc::pid_t) -> ExitStatus {
        if let Some(thread) = self.thread.take() {
            // The thread catches nothing because nothing in it panics; it has ended or is about to.
            let _ = thread.join();
        }
        if self.is_unreaped() {
            let _ = wait::wait(libc::P_PID, pid as libc::id_t, libc::WNOHANG);
        }
        self.status().unwrap_or(ExitStatus::Unknown)
    }
}

/// A byte, so that the pipe is readable and not merely hung up. The thread has SIGPIPE blocked, as all signals.
fn announce(write: &OwnedFd) {
    // SAFETY: one byte of a literal.
    unsafe { libc::write(write.as_raw_fd(), b"x".as_ptr().cast(), 1) };
}

fn lock(seen: &Mutex<Option<Found>>) -> MutexGuard<'_, Option<Found>> {
    seen.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

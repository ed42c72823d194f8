//! The handle of a run: what the host waits with, pulls events from and cancels by.

use super::outcome::Outcome;
use super::{CallsGo, Inner, StopCause};
use crate::error::{Code, Error, Result};
use crate::event::Event;
use crate::sys;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// One execution of one script. Clones are handles to the same run; the last one that goes cancels a run that is still
/// going. Every method may be called from any thread.
#[derive(Debug, Clone)]
pub struct Run(Arc<Guard>);

/// Cancels the run when the last handle is dropped.
#[derive(Debug)]
struct Guard {
    inner: Arc<Inner>,
    pid: i32,
}

impl Drop for Guard {
    fn drop(&mut self) {
        if self.pid == sys::host::pid() {
            self.inner
                .stop(StopCause::Cancelled(Some("the run was dropped".into())));
            self.inner.pulled.close_fd();
        }
    }
}

impl Run {
    pub(crate) fn new(inner: Arc<Inner>) -> Self {
        Run(Arc::new(Guard {
            inner,
            pid: sys::host::pid(),
        }))
    }

    /// Waits for the end, at most `timeout` (`None`: without limit). `Ok(None)`: it is still running.
    ///
    /// With a host that lends its threads (`threads` = 0) this is where callbacks run; such a wait returns after a
    /// callback that is under way has returned.
    ///
    /// # Errors
    /// [`Code::State`] inside a callback of this run, or in a forked child of the process that started it.
    pub fn wait(&self, timeout: Option<Duration>) -> Result<Option<Arc<Outcome>>> {
        self.own()?.wait(deadline(timeout))
    }

    /// As [`Run::wait`] without a limit.
    pub(crate) fn wait_to_the_end(&self) -> Result<Arc<Outcome>> {
        loop {
            if let Some(outcome) = self.wait(None)? {
                return Ok(outcome);
            }
        }
    }

    /// The next event of a run whose host pulls (no dispatch callback), waiting for it at most `timeout`. `Ok(None)`:
    /// none in that time, or the last one was given out. A call that is pulled is deferred.
    ///
    /// # Errors
    /// [`Code::State`] where calls are pushed to a dispatch callback, or in a forked child.
    pub fn next_event(&self, timeout: Option<Duration>) -> Result<Option<Event>> {
        let inner = self.own()?;
        if inner.wiring.calls_go != CallsGo::ToQueue {
            let message = "events are not pulled here: the host has a dispatch callback; give on_event to be told of events";
            return Err(Error::new(Code::State, message));
        }
        let event = inner.pulled.pull(deadline(timeout));
        if inner.pulled.has_made_room() {
            inner.wake.wake();
        }
        Ok(event)
    }

    /// A descriptor that is readable while an event waits or the run has ended: one end of a non-blocking socket pair
    /// that belongs to the run. Its bytes mean nothing and may be read.
    ///
    /// # Errors
    /// [`Code::Io`] when there are no descriptors left, [`Code::State`] as [`Run::next_event`].
    pub fn event_fd(&self) -> Result<RawFd> {
        let queue = &self.own()?.pulled;
        queue.fd().map_err(|e| {
            Error::new(
                Code::Io,
                format!("cannot make a descriptor for the run's events: {e}"),
            )
        })
    }

    /// Stops the run: SIGTERM, and SIGKILL after the grace period. Returns at once. Does nothing when the run has ended
    /// or is being stopped already. `reason` replaces the words after the dash in the closing line of the output.
    pub fn cancel(&self, reason: Option<&str>) {
        if let Ok(inner) = self.own() {
            inner.stop(StopCause::Cancelled(reason.map(str::to_string)));
        }
    }

    fn own(&self) -> Result<&Arc<Inner>> {
        own_process(self.0.pid)?;
        Ok(&self.0.inner)
    }
}

/// Refuses a handle that was made by the parent of a forked process: its threads and locks stayed there.
pub(crate) fn own_process(pid: i32) -> Result<()> {
    if pid == sys::host::pid() {
        return Ok(());
    }
    Err(Error::new(
        Code::State,
        "this handle belongs to the parent of this forked process; make a new engine here",
    ))
}

fn deadline(timeout: Option<Duration>) -> Option<Instant> {
    sys::poll::deadline_after(timeout?)
}

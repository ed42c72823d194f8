//! Where threads wait for requests, of one run or of many.
//!
//! Every thread in [`Switchboard::serve_one`] waits on the same set of descriptors and exactly one is woken for each
//! that becomes ready (see [`Poller`]). That thread reads, dispatches and answers, so there is no relay. What could not
//! be begun at once (a second request in one read, a call that waited for its turn) is posted and taken by the next
//! free thread.
//!
//! A panic costs the call or the connection that it came with, never the thread, which may be the host's own.

use super::call::Pending;
use super::connection::{Connection, Liveness};
use super::exchange::Exchange;
use crate::panic;
use crate::sys::poller::{Generation, Interest, Poller, Ready};
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// Something to do for whichever thread is free.
pub(crate) type Task = Box<dyn FnOnce() + Send>;

enum Source {
    Listener(Arc<Exchange>),
    Connection(Arc<Connection>, Arc<Exchange>),
}

enum Posted {
    Call(Arc<Pending>),
    Task(Task),
}

/// What [`Switchboard::serve_one`] came back for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Served {
    /// Something was done; there may be more.
    Something,
    /// Woken, or the deadline has come.
    Nothing,
}

/// See the module.
pub(crate) struct Switchboard {
    poller: Poller,
    sources: Mutex<HashMap<u64, Source>>,
    posted: Mutex<VecDeque<Posted>>,
}

static NEXT_ID: AtomicU64 = AtomicU64::new(1);

impl Switchboard {
    pub(crate) fn new() -> io::Result<Arc<Switchboard>> {
        Ok(Arc::new(Switchboard {
            poller: Poller::new()?,
            sources: Mutex::default(),
            posted: Mutex::default(),
        }))
    }

    /// A number for a listener or connection; never reused, so that a late event cannot meet a newcomer.
    pub(crate) fn next_id() -> u64 {
        NEXT_ID.fetch_add(1, Ordering::Relaxed)
    }

    /// Waits until there is something to do, at most until `deadline`, and does it. `busy` is called just before.
    /// `seen` is the caller's own, default at first.
    pub(crate) fn serve_one(
        &self,
        seen: &mut Generation,
        deadline: Option<Instant>,
        busy: impl Fn(),
    ) -> io::Result<Served> {
        if self.do_posted(&busy) {
            return Ok(Served::Something);
        }
        match self.poller.wait(seen, deadline)? {
            Ready::Event { token, hangup, .. } => {
                busy();
                self.handle(token, hangup);
                // A request that was just read is dispatched by the thread that has read it.
                self.do_posted(&|| ());
                Ok(Served::Something)
            }
            Ready::Woken => Ok(if self.do_posted(&busy) {
                Served::Something
            } else {
                Served::Nothing
            }),
            Ready::Timeout => Ok(Served::Nothing),
        }
    }

    fn handle(&self, id: u64, hangup: bool) {
        let source = match self.sources().get(&id) {
            Some(Source::Listener(exchange)) => Source::Listener(Arc::clone(exchange)),
            Some(Source::Connection(c, e)) => Source::Connection(Arc::clone(c), Arc::clone(e)),
            // Removed between the event and now.
            None => return,
        };
        match source {
            Source::Listener(exchange) => drop(panic::catch(|| exchange.accept())),
            Source::Connection(connection, exchange) => {
                let is_alive = || {
                    connection.receive(&exchange) == Liveness::Open
                        && !hangup
                        && connection.resume() == Liveness::Open
                };
                if !panic::catch(is_alive).unwrap_or(false) {
                    exchange.drop_connection(&connection);
                }
            }
        }
    }

    /// Does the oldest thing that was posted; false when there was none.
    fn do_posted(&self, busy: &impl Fn()) -> bool {
        let (posted, more) = {
            let mut queue = self.posted.lock().unwrap_or_else(PoisonError::into_inner);
            (queue.pop_front(), !queue.is_empty())
        };
        if more {
            self.poller.wake_one();
        }
        if posted.is_some() {
            busy();
        }
        match posted {
            Some(Posted::Call(pending)) => {
                if let Err(panic) = panic::catch(|| pending.exchange.offer(&pending)) {
                    // Refused for a call that has its answer.
                    let _ = pending.call().fail(&panic::complaint(&panic));
                }
            }
            Some(Posted::Task(task)) => drop(panic::catch(task)),
            None => return false,
        }
        true
    }

    /// Queues a call for the next free thread.
    ///
    /// Usually that is the caller itself, which is about to look at the queue; [`Switchboard::do_posted`] wakes
    /// another thread only when more than one thing is there.
    pub(crate) fn post_call(&self, pending: Arc<Pending>) {
        self.push(Posted::Call(pending));
    }

    /// Queues `task` and wakes a thread for it.
    pub(crate) fn post_task(&self, task: Task) {
        self.push(Posted::Task(task));
        self.poller.wake_one();
    }

    fn push(&self, posted: Posted) {
        self.posted
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push_back(posted);
    }

    /// Wakes a thread for what was posted from outside of [`Switchboard::serve_one`].
    pub(crate) fn wake_one(&self) {
        self.poller.wake_one();
    }

    /// Makes every thread that waits come back.
    pub(crate) fn wake_all(&self) {
        self.poller.wake_all();
    }

    /// Takes the listener in, at rest: see [`Switchboard::arm_listener`].
    pub(crate) fn add_listener(&self, exchange: &Arc<Exchange>) -> io::Result<()> {
        let id = exchange.listener_id();
        self.sources()
            .insert(id, Source::Listener(Arc::clone(exchange)));
        let at_rest = Interest {
            read: false,
            write: false,
        };
        self.poller.add(exchange.listener_fd(), id, at_rest)
    }

    pub(crate) fn add_connection(
        &self,
        connection: &Arc<Connection>,
        exchange: &Arc<Exchange>,
    ) -> io::Result<()> {
        let source = Source::Connection(Arc::clone(connection), Arc::clone(exchange));
        self.sources().insert(connection.id(), source);
        self.poller
            .add(connection.raw_fd(), connection.id(), Interest::READ)
    }

    pub(crate) fn arm_listener(&self, exchange: &Exchange) {
        // It fails only for a listener that was removed meanwhile.
        let _ = self.poller.rearm(
            exchange.listener_fd(),
            exchange.listener_id(),
            Interest::READ,
        );
    }

    pub(crate) fn arm_connection(&self, connection: &Connection, interest: Interest) {
        // It fails only for a connection that was removed meanwhile.
        let _ = self
            .poller
            .rearm(connection.raw_fd(), connection.id(), interest);
    }

    pub(crate) fn remove(&self, id: u64, fd: i32) {
        // The source goes after the descriptor, which it keeps open, so that the poller never sees a reused number.
        let _ = self.poller.remove(fd);
        let removed = self.sources().remove(&id);
        drop(removed);
    }

    fn sources(&self) -> std::sync::MutexGuard<'_, HashMap<u64, Source>> {
        self.sources.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Switchboard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Switchboard").finish_non_exhaustive()
    }
}

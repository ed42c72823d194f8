//! One execution of one script: staged, spawned, supervised, settled.
//!
//! | file | what it is for |
//! |---|---|
//! | `mod.rs` | the run's state, shared by all who work on it |
//! | `handle.rs` | what the host has of it: wait, pull events, cancel |
//! | `plan.rs` | configuration and options, resolved for this run |
//! | `stage.rs` | the private directory with script, module and socket |
//! | `launch.rs` | interpreter, environment and working directory; the child is made |
//! | `supervise.rs` | the poll loop: output, exit, deadline, cancel, kill |
//! | `streams.rs` | the script's pipes: read, cleaned, recorded, told |
//! | `output.rs` | what is written, kept and spilled |
//! | `remains.rs` | the facts that are left in the end |
//! | `outcome.rs`, `complaint.rs`, `hint.rs` | the result in words and as JSON |

mod complaint;
mod handle;
mod hint;
mod isolation;
mod launch;
pub(crate) mod outcome;
mod output;
pub(crate) mod plan;
mod remains;
mod stage;
mod streams;
mod supervise;

use crate::error::{Code, Error, Result};
use crate::event::{Event, EventKind, PullQueue, PushQueue};
use crate::host::Callbacks;
use crate::json::ObjectWriter;
use crate::panic;
use crate::rpc::call::Pending;
use crate::rpc::exchange::Observer;
use crate::rpc::ledger::Record;
use crate::rpc::switchboard::{Served, Switchboard};
use crate::sys::poller::Generation;
use crate::sys::{self, fd};
use crate::tools::{BuiltIns, Session};
use outcome::Outcome;
use plan::Plan;
use std::fmt;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};
use streams::Streams;

pub(crate) use handle::own_process;
pub use handle::Run;
pub(crate) use launch::Launcher;

/// How calls and events of a run reach the host.
pub(crate) struct Wiring {
    pub callbacks: Arc<Callbacks>,
    /// Where requests are read. With lent threads it is the run's own, else the engine's.
    pub calls: Arc<Switchboard>,
    /// Where event callbacks are made, if there are any.
    pub pushes: Option<Arc<Switchboard>>,
    /// The board that a waiting thread serves, if it lends itself.
    pub lent: Option<Arc<Switchboard>>,
    /// The tools that the engine serves itself, if it has any.
    pub built_ins: Option<Arc<BuiltIns>>,
    /// Whether the script waits for a slow puller.
    pub is_patient: bool,
    pub calls_go: CallsGo,
}

/// Where a call goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallsGo {
    /// To the dispatch callback.
    ToDispatch,
    /// Into the queue from which the host pulls.
    ToQueue,
    /// Nowhere: nobody has a handle to pull them with.
    Nowhere,
}

/// Why a run is being stopped; the first cause counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StopCause {
    Timeout,
    Cancelled(Option<String>),
    Overrun,
}

/// The run's state, shared by its handles, its supervisor and the servers of its calls.
pub(crate) struct Inner {
    me: Weak<Inner>,
    id: u64,
    plan: Plan,
    wiring: Wiring,
    built_in: Option<Arc<Session>>,
    began: Instant,
    stop: Mutex<Option<StopCause>>,
    /// Wakes the supervisor: written by whoever stops the run, read by the supervisor's poll.
    wake: Wake,
    /// What the script writes, from its start.
    streams: OnceLock<Streams>,
    pulled: PullQueue,
    pushed: PushQueue,
    end: Mutex<Option<Arc<Outcome>>>,
    ended: Condvar,
}

/// A socket pair, since a write to a pipe could raise SIGPIPE in the host.
#[derive(Debug)]
struct Wake {
    waker: OwnedFd,
    sleeper: OwnedFd,
}

impl Wake {
    fn new() -> io::Result<Wake> {
        let (waker, sleeper) = fd::socketpair()?;
        Ok(Wake { waker, sleeper })
    }

    fn wake(&self) {
        // A full buffer wakes just as well.
        let _ = fd::send(self.waker.as_raw_fd(), &[1]);
    }

    fn clear(&self) {
        let mut bytes = [0; 64];
        while matches!(fd::recv(self.sleeper.as_raw_fd(), &mut bytes), Ok(n) if n == bytes.len()) {}
    }

    fn fd(&self) -> RawFd {
        self.sleeper.as_raw_fd()
    }
}

static NEXT_ID: AtomicU64 = AtomicU64::new(1);

impl Inner {
    /// A run that is yet to be handed to [`Inner::execute`].
    pub(crate) fn new(plan: Plan, wiring: Wiring) -> Result<Arc<Inner>> {
        let wake = Wake::new().map_err(|e| {
            Error::new(
                Code::Io,
                format!("cannot make a socket pair for the run: {e}"),
            )
        })?;
        let shared = wiring.built_ins.clone();
        let built_in = shared.map(|shared| Session::new(shared, &plan.options));
        Ok(Arc::new_cyclic(|me| Inner {
            me: Weak::clone(me),
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            plan,
            built_in,
            pulled: match wiring.is_patient && wiring.calls_go == CallsGo::ToQueue {
                true => PullQueue::keeping_all(),
                false => PullQueue::default(),
            },
            wiring,
            began: Instant::now(),
            stop: Mutex::new(None),
            wake,
            streams: OnceLock::new(),
            pushed: PushQueue::default(),
            end: Mutex::new(None),
            ended: Condvar::new(),
        }))
    }

    /// Does it all; to be called once, on a thread of the engine.
    pub(crate) fn execute(self: &Arc<Self>, launcher: &Launcher) {
        let outcome = panic::catch(|| supervise::execute(self, launcher).into_outcome())
            .unwrap_or_else(|panic| supervise::panicked(self, launcher, &panic).into_outcome());
        sys::dir::retry_removals(&launcher.parents, sys::dir::PREFIX);
        let outcome = Arc::new(outcome);
        let told = Event::new(EventKind::End, outcome.end_event());
        {
            // Under one lock: whoever has seen the end can have the outcome, and whoever waits for the outcome does not
            // return before the end is on its way.
            let mut end = self.end();
            *end = Some(outcome);
            self.tell(told);
        }
        self.pulled.end();
        self.ended.notify_all();
        if let Some(lent) = &self.wiring.lent {
            lent.wake_all();
        }
    }

    /// Asks the run to stop, unless it was asked before or has ended.
    pub(crate) fn stop(&self, cause: StopCause) {
        let mut stop = self.stop.lock().unwrap_or_else(PoisonError::into_inner);
        if stop.is_none() {
            *stop = Some(cause);
            drop(stop);
            self.wake.wake();
        }
    }

    fn stop_cause(&self) -> Option<StopCause> {
        self.stop
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Passes an event on to whoever listens.
    fn tell(&self, event: Event) {
        if self.wiring.calls_go == CallsGo::ToQueue {
            self.pulled.push(event.clone());
        }
        let (Some(board), Some(run)) = (&self.wiring.pushes, self.me.upgrade()) else {
            return;
        };
        if self.pushed.push(event) {
            board.post_task(Box::new(move || run.deliver()));
        }
    }

    /// Whether anybody listens to events.
    fn is_listened_to(&self) -> bool {
        self.wiring.pushes.is_some() || self.wiring.calls_go == CallsGo::ToQueue
    }

    /// Hands pushed events to the host until there are none.
    fn deliver(&self) {
        while let Some(event) = self.pushed.next() {
            let on_event = |host: &crate::host::Host| host.on_event.as_ref().map(|f| f(&event));
            // A callback that panicked has lost its event; there is nobody to tell.
            let _ = self.wiring.callbacks.enter(self.id, on_event);
        }
        if let Some(lent) = &self.wiring.lent {
            lent.wake_all();
        }
        // Whoever waits looks at the queue with this lock held: between that look and the sleep nothing may be told.
        drop(self.end());
        self.ended.notify_all();
    }

    pub(crate) fn outcome(&self) -> Option<Arc<Outcome>> {
        self.end().clone()
    }

    /// Whether the run has ended and everything that was to be told has been told.
    fn is_settled(&self) -> bool {
        self.end().is_some() && self.pushed.is_idle()
    }

    /// Waits for the end until `deadline`; lends this thread to callbacks where the host has given no others.
    pub(crate) fn wait(&self, deadline: Option<Instant>) -> Result<Option<Arc<Outcome>>> {
        if self.wiring.callbacks.is_inside_run(self.id) {
            let message =
                "a callback cannot wait for its own run: return from it, the run goes on meanwhile";
            return Err(Error::new(Code::State, message));
        }
        match &self.wiring.lent {
            Some(board) => self.serve_until_end(board, deadline),
            None => Ok(self.sleep_until_end(deadline)),
        }
    }

    fn serve_until_end(
        &self,
        board: &Switchboard,
        deadline: Option<Instant>,
    ) -> Result<Option<Arc<Outcome>>> {
        let mut seen = Generation::default();
        while !self.is_settled() {
            let served = board
                .serve_one(&mut seen, deadline, || ())
                .map_err(|e| Error::new(Code::Io, format!("cannot wait for tool calls: {e}")))?;
            if served == Served::Nothing && sys::poll::has_passed(deadline) {
                return Ok(self.outcome());
            }
        }
        // Other threads may wait here for the same end.
        board.wake_all();
        Ok(self.outcome())
    }

    fn sleep_until_end(&self, deadline: Option<Instant>) -> Option<Arc<Outcome>> {
        let mut end = self.end();
        while end.is_none() {
            end = match deadline {
                None => self.ended.wait(end).unwrap_or_else(PoisonError::into_inner),
                Some(deadline) => {
                    let left = deadline.checked_duration_since(Instant::now())?;
                    self.ended
                        .wait_timeout(end, left)
                        .unwrap_or_else(PoisonError::into_inner)
                        .0
                }
            };
        }
        end.clone()
    }

    /// Waits until the run has ended and its pushed events are delivered; for the engine's close.
    pub(crate) fn wait_settled(&self, deadline: Option<Instant>) -> bool {
        if self.wiring.lent.is_some() {
            // Only a thread that waits would deliver, and after a close nobody is owed events.
            return self.sleep_until_end(deadline).is_some();
        }
        let mut end = self.end();
        while !(end.is_some() && self.pushed.is_idle()) {
            end = match deadline.map(|d| d.saturating_duration_since(Instant::now())) {
                None => self.ended.wait(end).unwrap_or_else(PoisonError::into_inner),
                Some(Duration::ZERO) => return false,
                Some(left) => {
                    self.ended
                        .wait_timeout(end, left)
                        .unwrap_or_else(PoisonError::into_inner)
                        .0
                }
            };
        }
        true
    }

    fn end(&self) -> MutexGuard<'_, Option<Arc<Outcome>>> {
        self.end.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells listeners that a call has begun; false when it has ended meanwhile, and nobody needs to serve it.
    fn announce(&self, pending: &Pending) -> bool {
        if !self.is_listened_to() {
            return true;
        }
        // A listener that is behind gets no more than it has room for, in whatever order that is.
        if let Some(streams) = self.streams.get().filter(|_| !self.pulled.is_full()) {
            streams.catch_up(self);
        }
        pending.tell_begin(|| self.tell(self.begin_of(pending)))
    }

    fn begin_of(&self, pending: &Pending) -> Event {
        let mut data = ObjectWriter::default();
        data.raw("id", pending.id())
            .string("tool", pending.call().tool())
            .string("args_preview", &pending.record.args_preview);
        match self.built_in_for(pending) {
            // There is nothing for the host to answer.
            Some(_) => {
                data.raw("built_in", true);
                Event::new(EventKind::Call, data.finish())
            }
            None => Event::of_call(pending.call().clone(), data.finish()),
        }
    }

    /// Who serves the call if the host does not.
    fn built_in_for(&self, pending: &Pending) -> Option<&Arc<Session>> {
        let rule = self.plan.tools.get(pending.call().tool())?;
        self.built_in.as_ref().filter(|_| rule.built_in)
    }

    /// Waits until the engine's own tools have let go of this run; how many calls are still worked on.
    fn wait_for_built_ins(&self, patience: Duration) -> usize {
        let session = self.built_in.as_ref();
        session.map_or(0, |session| session.wait_until_idle(patience))
    }

    fn dispatch(&self, pending: &Pending) {
        let call = pending.call();
        let dispatched = self
            .wiring
            .callbacks
            .enter(self.id, |host| match &host.dispatch {
                Some(dispatch) => dispatch(call),
                None => drop(call.fail("the host has no dispatch callback")),
            });
        match dispatched {
            Some(Ok(())) => pending.end_offer("dispatch returned without an answer"),
            Some(Err(panic)) => pending.end_offer(&format!("dispatch panicked: {panic}")),
            None => pending.end_offer("the host's engine was closed"),
        }
    }
}

impl Observer for Inner {
    fn offer(&self, pending: &Arc<Pending>) {
        panic::rehearse("offer", &self.plan.code);
        if let Some(session) = self.built_in_for(pending) {
            let _ = pending.call().defer();
            if self.announce(pending) {
                session.begin(pending.call());
            }
            return;
        }
        match self.wiring.calls_go {
            CallsGo::ToDispatch => {
                if self.announce(pending) {
                    self.dispatch(pending);
                }
            }
            CallsGo::ToQueue => {
                // Whoever pulls it may answer at once, so it is deferred before it can be pulled.
                let _ = pending.call().defer();
                self.announce(pending);
            }
            CallsGo::Nowhere => pending.end_offer(
                "nobody serves this call: the host has no dispatch callback; it has to start the run and pull its \
                 events instead of executing it in one step",
            ),
        }
    }

    fn ended(&self, record: &Record) {
        if let Some(session) = &self.built_in {
            session.call_ended(record.id);
        }
        if self.is_listened_to() {
            self.tell(Event::new(EventKind::CallEnd, record.to_json()));
        }
    }

    fn overrun(&self) {
        self.stop(StopCause::Overrun);
    }
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

//! What the host gives an engine: its callbacks, and the threads on which they may run.

use crate::error::{Code, Error, Result};
use crate::event::Event;
use crate::rpc::call::Call;
use std::cell::RefCell;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

type Dispatch = Box<dyn Fn(&Call) + Send + Sync>;
type OnEvent = Box<dyn Fn(&Event) + Send + Sync>;

/// The host's callbacks and how many engine threads may run them at once.
///
/// Without a dispatch callback, calls are pulled with [`Run::next_event`](crate::Run::next_event).
#[derive(Default)]
pub struct Host {
    pub(crate) dispatch: Option<Dispatch>,
    pub(crate) on_event: Option<OnEvent>,
    pub(crate) threads: usize,
    pub(crate) is_patient: bool,
    /// Dropped with the host and never looked at.
    kept: Option<Box<dyn std::any::Any + Send + Sync>>,
}

impl Host {
    /// A host that pulls its calls and events.
    pub fn new() -> Self {
        Host::default()
    }

    /// Calls arrive in `dispatch`, which answers them ([`Call::reply`], [`Call::fail`]) or defers them
    /// ([`Call::defer`]). Returning without any of these, or panicking, fails the call.
    #[must_use]
    pub fn dispatch(mut self, dispatch: impl Fn(&Call) + Send + Sync + 'static) -> Self {
        self.dispatch = Some(Box::new(dispatch));
        self
    }

    /// Events are pushed to `on_event`, in order within a run.
    #[must_use]
    pub fn on_event(mut self, on_event: impl Fn(&Event) + Send + Sync + 'static) -> Self {
        self.on_event = Some(Box::new(on_event));
        self
    }

    /// 0 (the default): callbacks run only on a thread that is inside [`Run::wait`](crate::Run::wait) or
    /// [`Engine::execute`](crate::Engine::execute). n: on at most n threads of the engine, in parallel.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }
}

impl Host {
    /// For a host that pulls: a script waits in front of a full event queue as it would in front of a full pipe, where
    /// otherwise its output goes on and what nobody has pulled in time is not shown.
    pub(crate) fn patient(mut self) -> Self {
        self.is_patient = true;
        self
    }

    /// Keeps `value` alive as long as the host.
    pub(crate) fn keep(mut self, value: impl std::any::Any + Send + Sync) -> Self {
        self.kept = Some(Box::new(value));
        self
    }
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host")
            .field("dispatch", &self.dispatch.is_some())
            .field("on_event", &self.on_event.is_some())
            .field("threads", &self.threads)
            .field("is_patient", &self.is_patient)
            .finish()
    }
}

/// Lets callbacks in while the engine is open and knows who is inside one.
#[derive(Debug)]
pub(crate) struct Callbacks {
    /// Tells engines apart on [`INSIDE`].
    id: u64,
    state: Mutex<GateState>,
    left: Condvar,
}

#[derive(Debug)]
struct GateState {
    /// `None` once the host has been promised that no callback comes any more.
    host: Option<Arc<Host>>,
    inside: usize,
}

thread_local! {
    /// The callbacks that this thread is inside of: (engine, run).
    static INSIDE: RefCell<Vec<(u64, u64)>> = const { RefCell::new(Vec::new()) };
}

static NEXT_ID: AtomicU64 = AtomicU64::new(1);

impl Callbacks {
    pub(crate) fn new(host: Host) -> Self {
        Callbacks {
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            state: Mutex::new(GateState {
                host: Some(Arc::new(host)),
                inside: 0,
            }),
            left: Condvar::new(),
        }
    }

    /// Runs `callback` with the host, with no lock held. `None` when the engine is closed; an error is the message of a
    /// panic.
    pub(crate) fn enter<T>(
        &self,
        run: u64,
        callback: impl FnOnce(&Host) -> T,
    ) -> Option<std::result::Result<T, String>> {
        let host = {
            let mut state = self.state();
            let host = Arc::clone(state.host.as_ref()?);
            state.inside += 1;
            host
        };
        INSIDE.with_borrow_mut(|inside| inside.push((self.id, run)));
        let result = crate::panic::catch(|| callback(&host));
        INSIDE.with_borrow_mut(|inside| inside.pop());
        // Ours goes before the count, so that whoever waits for the count holds the last one.
        drop(host);
        self.state().inside -= 1;
        self.left.notify_all();
        Some(result)
    }

    /// Whether this thread is inside a callback of this engine.
    pub(crate) fn is_inside(&self) -> bool {
        INSIDE.with_borrow(|inside| inside.iter().any(|(engine, _)| *engine == self.id))
    }

    /// Whether this thread is inside a callback of run `run`.
    pub(crate) fn is_inside_run(&self, run: u64) -> bool {
        INSIDE.with_borrow(|inside| inside.contains(&(self.id, run)))
    }

    /// Waits until no thread is inside, then lets nobody in any more and drops the host.
    pub(crate) fn close(&self, deadline: Option<Instant>) -> Result<()> {
        let mut state = self.state();
        while state.inside > 0 {
            let left = deadline.map(|d| d.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                let message = format!(
                    "{} callbacks have not returned yet; close again",
                    state.inside
                );
                return Err(Error::new(Code::State, message));
            }
            state = match left {
                None => self
                    .left
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner),
                Some(left) => {
                    let waited = self.left.wait_timeout(state, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
        let host = state.host.take();
        drop(state);
        // The host's own drop code may do anything, so it runs without our lock.
        drop(host);
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, GateState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

//! What happens in a run, told as it happens: pushed to the host's callback, or pulled by it.

use crate::rpc::call::Call;
use crate::sys::fd;
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Output that waits to be pulled or pushed; beyond it chunks are left out of the events (never out of the result).
const BACKLOG_BYTES: usize = 1 << 20;

/// What an [`Event`] is about; the numbers are those of `enum ptc_event_kind`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub enum EventKind {
    /// The script runs. Data: a JSON object with `pid`, `python`, `mode`, `cwd`.
    Started = 1,
    /// Bytes that the script wrote to stdout, cut anywhere.
    Stdout = 2,
    /// Bytes that the script wrote to stderr, cut anywhere.
    Stderr = 3,
    /// A tool call has begun. Data: a JSON object with `id`, `tool`, `args_preview`, and `"built_in": true` where the engine
    /// answers it itself. What the script wrote before it called has been told before.
    Call = 4,
    /// A call has ended; told once for each, before the answer leaves. A call whose turn had not come when the run ended
    /// has no [`EventKind::Call`]. Data: its entry in the result's `tool_calls`.
    CallEnd = 5,
    /// The run has ended. Data: a JSON object with `status` and `duration_seconds`.
    End = 6,
}

/// One thing that happened in a run.
#[derive(Debug, Clone)]
pub struct Event(Arc<Happened>);

#[derive(Debug)]
struct Happened {
    kind: EventKind,
    /// With a NUL behind it.
    data: Vec<u8>,
    call: Option<Call>,
}

impl Event {
    pub(crate) fn new(kind: EventKind, data: impl Into<Vec<u8>>) -> Self {
        Event::make(kind, data.into(), None)
    }

    pub(crate) fn of_call(call: Call, data: String) -> Self {
        Event::make(EventKind::Call, data.into_bytes(), Some(call))
    }

    fn make(kind: EventKind, mut data: Vec<u8>, call: Option<Call>) -> Self {
        data.reserve_exact(1);
        data.push(0);
        Event(Arc::new(Happened { kind, data, call }))
    }

    /// What it is about.
    pub fn kind(&self) -> EventKind {
        self.0.kind
    }

    /// The bytes of a chunk of output, or a JSON object; see [`EventKind`].
    pub fn data(&self) -> &[u8] {
        &self.0.data[..self.0.data.len() - 1]
    }

    pub(crate) fn data_with_nul(&self) -> &[u8] {
        &self.0.data
    }

    /// The call to be answered, for [`EventKind::Call`]; none where the engine answers it itself (`builtin_tools`).
    pub fn call(&self) -> Option<&Call> {
        self.0.call.as_ref()
    }

    fn is_output(&self) -> bool {
        matches!(self.kind(), EventKind::Stdout | EventKind::Stderr)
    }
}

/// Events in order, bounded in what output they hold.
#[derive(Debug, Default)]
struct Queue {
    /// What is over the bound is kept all the same, since whoever pushes looks at [`Queue::is_full`] first.
    keeps_all: bool,
    events: VecDeque<Event>,
    output_bytes: usize,
    left_out: usize,
}

impl Queue {
    fn push(&mut self, event: Event) {
        let is_too_much = self.output_bytes + event.data().len() > BACKLOG_BYTES;
        if event.is_output() && is_too_much && !self.keeps_all {
            self.left_out += event.data().len();
            return;
        }
        self.note_gap();
        if event.is_output() {
            self.output_bytes += event.data().len();
        }
        self.events.push_back(event);
    }

    /// Says in the stream itself that something is missing there, since the reader was too slow.
    fn note_gap(&mut self) {
        if self.left_out > 0 {
            let text = format!(
                "\n[{} bytes of output not shown: events were not taken in time]\n",
                std::mem::take(&mut self.left_out)
            );
            self.events.push_back(Event::new(EventKind::Stdout, text));
        }
    }

    fn pop(&mut self) -> Option<Event> {
        if self.events.is_empty() {
            self.note_gap();
        }
        let event = self.events.pop_front()?;
        if event.is_output() {
            self.output_bytes = self.output_bytes.saturating_sub(event.data().len());
        }
        Some(event)
    }

    fn is_empty(&self) -> bool {
        self.events.is_empty() && self.left_out == 0
    }

    fn is_full(&self) -> bool {
        self.output_bytes >= BACKLOG_BYTES
    }
}

/// Events that a host pulls, with a descriptor that is readable while there are any.
#[derive(Debug, Default)]
pub(crate) struct PullQueue {
    state: Mutex<PullState>,
    arrived: Condvar,
}

#[derive(Debug, Default)]
struct PullState {
    queue: Queue,
    /// No event will follow.
    ended: bool,
    /// It was full and is not any more, and nobody has been told.
    made_room: bool,
    /// Made when the host first asks for it.
    signal: Option<Signal>,
}

/// A socket pair: the host polls one end, we make it readable through the other.
#[derive(Debug)]
struct Signal {
    ours: OwnedFd,
    hosts: OwnedFd,
}

impl Signal {
    fn new() -> io::Result<Signal> {
        let (ours, hosts) = fd::socketpair()?;
        fd::set_nonblocking(hosts.as_raw_fd())?;
        Ok(Signal { ours, hosts })
    }

    /// The host may have read our byte without taking the event, so a look tells more than a memory of what was sent.
    fn raise(&self) {
        if !fd::peek_nonempty(self.hosts.as_raw_fd()) {
            // It can only fail when the pair is full, which is as readable as it gets.
            let _ = fd::send(self.ours.as_raw_fd(), &[1]);
        }
    }

    fn lower(&self) {
        let mut bytes = [0; 64];
        while matches!(fd::recv(self.hosts.as_raw_fd(), &mut bytes), Ok(n) if n > 0) {}
    }

    /// Readable from now on.
    fn raise_for_good(&self) {
        self.raise();
        let _ = fd::shutdown_write(self.ours.as_raw_fd());
    }
}

impl PullQueue {
    /// A queue that leaves nothing out: whoever pushes output has to wait while it is full.
    pub(crate) fn keeping_all() -> Self {
        let queue = PullQueue::default();
        queue.state().queue.keeps_all = true;
        queue
    }

    /// Whether output has to wait in front of it.
    pub(crate) fn is_full(&self) -> bool {
        let queue = &self.state().queue;
        queue.keeps_all && queue.is_full()
    }

    /// Whether output need no longer wait; true once for each time that it had to.
    pub(crate) fn has_made_room(&self) -> bool {
        std::mem::take(&mut self.state().made_room)
    }

    pub(crate) fn push(&self, event: Event) {
        let mut state = self.state();
        state.queue.push(event);
        if let Some(signal) = &state.signal {
            signal.raise();
        }
        drop(state);
        self.arrived.notify_all();
    }

    /// Nothing follows any more: waiters come back and the descriptor stays readable.
    pub(crate) fn end(&self) {
        let mut state = self.state();
        state.ended = true;
        if let Some(signal) = &state.signal {
            signal.raise_for_good();
        }
        drop(state);
        self.arrived.notify_all();
    }

    /// The next event; waits for it until `deadline` unless the run has ended.
    pub(crate) fn pull(&self, deadline: Option<Instant>) -> Option<Event> {
        let mut state = self.state();
        loop {
            let was_full = state.queue.is_full();
            if let Some(event) = state.queue.pop() {
                state.made_room |= was_full && !state.queue.is_full();
                if let (Some(signal), false) = (&state.signal, state.ended) {
                    if state.queue.is_empty() {
                        signal.lower();
                    } else {
                        signal.raise();
                    }
                }
                return Some(event);
            }
            if state.ended {
                return None;
            }
            state = match deadline {
                None => self
                    .arrived
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner),
                Some(deadline) => {
                    let left = deadline.checked_duration_since(Instant::now())?;
                    let (state, _) = self
                        .arrived
                        .wait_timeout(state, left)
                        .unwrap_or_else(PoisonError::into_inner);
                    state
                }
            };
        }
    }

    /// Nobody can pull any more: closes the descriptor now, not when the run lets go of its last part.
    pub(crate) fn close_fd(&self) {
        self.state().signal = None;
    }

    /// The descriptor, made at the first call.
    pub(crate) fn fd(&self) -> io::Result<RawFd> {
        let mut state = self.state();
        if state.signal.is_none() {
            let signal = Signal::new()?;
            if state.ended {
                signal.raise_for_good();
            } else if !state.queue.is_empty() {
                signal.raise();
            }
            state.signal = Some(signal);
        }
        Ok(state.signal.as_ref().map_or(-1, |s| s.hosts.as_raw_fd()))
    }

    fn state(&self) -> MutexGuard<'_, PullState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Events on their way to the host's callback: one thread at a time delivers, in order.
#[derive(Debug, Default)]
pub(crate) struct PushQueue {
    state: Mutex<PushState>,
}

#[derive(Debug, Default)]
struct PushState {
    queue: Queue,
    delivering: bool,
}

impl PushQueue {
    /// True when a delivery has to be started for it.
    pub(crate) fn push(&self, event: Event) -> bool {
        let mut state = self.state();
        state.queue.push(event);
        !std::mem::replace(&mut state.delivering, true)
    }

    /// The next event to deliver; `None` ends the delivery.
    pub(crate) fn next(&self) -> Option<Event> {
        let mut state = self.state();
        let event = state.queue.pop();
        state.delivering = event.is_some();
        event
    }

    /// Whether everything that was pushed has been delivered.
    pub(crate) fn is_idle(&self) -> bool {
        let state = self.state();
        !state.delivering && state.queue.is_empty()
    }

    fn state(&self) -> MutexGuard<'_, PushState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn text(event: &Event) -> String {
        String::from_utf8_lossy(event.data()).into_owned()
    }

    #[test]
    fn the_descriptor_is_readable_while_there_is_an_event() {
        let queue = PullQueue::default();
        let host_end = queue.fd().unwrap();
        assert!(!fd::peek_nonempty(host_end));
        queue.push(Event::new(EventKind::Stdout, "a"));
        queue.push(Event::new(EventKind::Stdout, "b"));
        assert!(fd::peek_nonempty(host_end));
        // The host reads the byte and takes one event only: the other one must show again.
        assert!(fd::recv(host_end, &mut [0; 8]).unwrap() > 0);
        assert_eq!(text(&queue.pull(Some(Instant::now())).unwrap()), "a");
        assert!(fd::peek_nonempty(host_end));
        assert_eq!(text(&queue.pull(Some(Instant::now())).unwrap()), "b");
        assert!(!fd::peek_nonempty(host_end));
        assert!(queue.pull(Some(Instant::now())).is_none());
        queue.end();
        let mut bytes = [0; 8];
        while fd::recv(host_end, &mut bytes).unwrap() > 0 {}
        assert_eq!(
            fd::recv(host_end, &mut bytes).unwrap(),
            0,
            "end of file stays readable"
        );
        assert!(queue.pull(None).is_none());
    }

    #[test]
    fn a_descriptor_asked_for_late_shows_what_waits() {
        let queue = PullQueue::default();
        queue.push(Event::new(EventKind::Stdout, "a"));
        assert!(fd::peek_nonempty(queue.fd().unwrap()));
        let ended = PullQueue::default();
        ended.end();
        assert!(fd::recv(ended.fd().unwrap(), &mut [0; 8]).is_ok());
    }

    #[test]
    fn a_waiter_is_woken_by_an_event_and_by_the_end() {
        let queue = Arc::new(PullQueue::default());
        let waiter = {
            let queue = Arc::clone(&queue);
            std::thread::spawn(move || {
                let first = queue.pull(Instant::now().checked_add(Duration::from_secs(60)));
                (first.map(|e| text(&e)), queue.pull(None).is_none())
            })
        };
        queue.push(Event::new(EventKind::Stderr, "x"));
        queue.end();
        assert_eq!(waiter.join().unwrap(), (Some("x".to_string()), true));
    }

    #[test]
    fn output_that_nobody_takes_is_bounded_and_named() {
        let queue = PullQueue::default();
        for _ in 0..300 {
            queue.push(Event::new(EventKind::Stdout, vec![b'x'; 10_000]));
        }
        queue.push(Event::new(EventKind::End, "{}"));
        let events: Vec<Event> = std::iter::from_fn(|| queue.pull(Some(Instant::now()))).collect();
        let shown: usize = events.iter().filter(|e| e.data().len() == 10_000).count();
        assert_eq!(shown, BACKLOG_BYTES / 10_000);
        let notice = text(&events[events.len() - 2]);
        assert!(
            notice.contains(&format!("{} bytes", (300 - shown) * 10_000)),
            "{notice}"
        );
        assert_eq!(events.last().unwrap().kind(), EventKind::End);
    }

    #[test]
    fn a_queue_that_keeps_all_says_when_it_is_full_and_when_no_longer() {
        let queue = PullQueue::keeping_all();
        let chunk = || Event::new(EventKind::Stdout, vec![b'x'; BACKLOG_BYTES / 2]);
        queue.push(chunk());
        assert!(!queue.is_full());
        queue.push(chunk());
        queue.push(chunk());
        assert!(queue.is_full());
        let pull = || {
            let pulled = queue.pull(Some(Instant::now())).unwrap();
            (pulled.data().len(), queue.is_full(), queue.has_made_room())
        };
        assert_eq!(pull(), (BACKLOG_BYTES / 2, true, false));
        assert_eq!(pull(), (BACKLOG_BYTES / 2, false, true));
        assert_eq!(pull(), (BACKLOG_BYTES / 2, false, false));
    }

    #[test]
    fn pushes_have_one_deliverer_at_a_time() {
        let queue = PushQueue::default();
        assert!(queue.push(Event::new(EventKind::Stdout, "a")));
        assert!(!queue.push(Event::new(EventKind::Stdout, "b")));
        assert_eq!(text(&queue.next().unwrap()), "a");
        assert!(!queue.is_idle());
        assert_eq!(text(&queue.next().unwrap()), "b");
        assert!(queue.next().is_none());
        assert!(queue.is_idle());
        assert!(queue.push(Event::new(EventKind::Stdout, "c")));
    }
}

//! One run's side of the conversation: who may call what and how often, whose turn it is, what became of each call.
//!
//! Promises: every request gets an answer or its connection ends; a call is counted exactly once; no call is dispatched
//! after [`Exchange::close`].

use super::call::{self, Pending};
use super::connection::Connection;
use super::ledger::{CallState, Ledger, Record};
use super::switchboard::Switchboard;
use super::wire::{self, Request};
use crate::sys::{fd, socket};
use crate::text::Redactor;
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::fmt;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// A script that has collected this many refusals is ended: it is in a loop that nothing else would stop.
pub(crate) const MAX_REFUSALS: u64 = 1000;

/// Connections of one run at a time; our client opens one for each call that is under way.
const MAX_CONNECTIONS: usize = 1024;

/// Characters of a call's arguments in the ledger.
const PREVIEW_CHARS: usize = 80;

/// What one tool may do in a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ToolRule {
    /// False: never entered twice at once.
    pub parallel: bool,
    /// Served by the engine itself; the host does not see it as a call.
    pub built_in: bool,
}

/// The rules of a run.
#[derive(Debug)]
pub(crate) struct Policy {
    pub tools: Arc<BTreeMap<String, ToolRule>>,
    pub max_tool_calls: u64,
    pub max_parallel_calls: usize,
    pub max_message_bytes: usize,
    /// Handed to the host with each call.
    pub context: usize,
    pub redactor: Arc<Redactor>,
}

/// What the run wants to hear of its calls. No lock of this module is held during a call of these, but for the one that
/// orders what is told of this very call.
pub(crate) trait Observer: Send + Sync {
    /// It is this call's turn: show it to the host. Runs on the thread that serves.
    fn offer(&self, call: &Arc<Pending>);
    /// A call has ended, answered or not. Told once a call, before [`Exchange::close`] returns.
    fn ended(&self, record: &Record);
    /// The script was refused [`MAX_REFUSALS`] times.
    fn overrun(&self);
}

/// See the module.
pub(crate) struct Exchange {
    token: String,
    policy: Policy,
    board: Arc<Switchboard>,
    observer: Weak<dyn Observer>,
    listener: OwnedFd,
    listener_id: u64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    closed: bool,
    /// The script has not been announced yet, or accept failed for want of descriptors: then the listener rests until one
    /// is closed or time has passed.
    listener_rests: bool,
    ledger: Ledger,
    in_flight: usize,
    /// Tools under way that must not be entered twice.
    exclusive: HashSet<String>,
    waiting: VecDeque<Arc<Pending>>,
    open: HashMap<u64, Arc<Pending>>,
    connections: HashMap<u64, Arc<Connection>>,
}

impl Exchange {
    /// Takes up the conversation. Callers wait in the listener's queue until [`Exchange::wake_listener`]. `token` must be
    /// unguessable; `listener` must not block.
    pub(crate) fn open(
        listener: OwnedFd,
        token: String,
        policy: Policy,
        board: Arc<Switchboard>,
        observer: Weak<dyn Observer>,
    ) -> io::Result<Arc<Exchange>> {
        let exchange = Arc::new(Exchange {
            token,
            policy,
            listener_id: Switchboard::next_id(),
            board,
            observer,
            listener,
            state: Mutex::new(State {
                listener_rests: true,
                ..State::default()
            }),
        });
        exchange.board.add_listener(&exchange)?;
        Ok(exchange)
    }

    pub(crate) fn max_message_bytes(&self) -> usize {
        self.policy.max_message_bytes
    }

    pub(crate) fn listener_fd(&self) -> RawFd {
        self.listener.as_raw_fd()
    }

    pub(crate) fn listener_id(&self) -> u64 {
        self.listener_id
    }

    /// Compares without telling by its duration how much was right.
    pub(crate) fn is_token(&self, token: &str) -> bool {
        let (ours, theirs) = (self.token.as_bytes(), token.as_bytes());
        let differing = ours.iter().zip(theirs).fold(0, |acc, (a, b)| acc | (a ^ b));
        ours.len() == theirs.len() && differing == 0
    }

    /// Takes every connection that waits. Descriptors running out makes the listener rest instead of spinning.
    pub(crate) fn accept(self: &Arc<Self>) {
        loop {
            match socket::accept(self.listener_fd()) {
                Ok(fd) => self.welcome(fd),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
                Err(e) if is_shortage(&e) => {
                    self.state().listener_rests = true;
                    return;
                }
                // The client was gone before it was accepted.
                Err(_) => {}
            }
            if self.state().closed {
                return;
            }
        }
        self.board.arm_listener(self);
    }

    fn welcome(self: &Arc<Self>, fd: OwnedFd) {
        // The directory is ours alone already; this also stops whoever was handed a descriptor of it.
        if socket::peer_uid(fd.as_raw_fd()).ok() != Some(socket::own_uid()) {
            return;
        }
        let connection = {
            let mut state = self.state();
            if state.closed || state.connections.len() >= MAX_CONNECTIONS {
                drop(state);
                let frame = wire::error_frame(
                    "null",
                    "Too many connections: close those that are not in use",
                );
                let _ = fd::send(fd.as_raw_fd(), &frame);
                return;
            }
            let id = Switchboard::next_id();
            let connection = Arc::new(Connection::new(fd, id, Arc::clone(&self.board)));
            state.connections.insert(id, Arc::clone(&connection));
            connection
        };
        if self.board.add_connection(&connection, self).is_err() {
            self.drop_connection(&connection);
        }
    }

    /// Lets the listener try again; called from time to time while it rests.
    pub(crate) fn wake_listener(self: &Arc<Self>) {
        let rested = std::mem::replace(&mut self.state().listener_rests, false);
        if rested {
            self.board.arm_listener(self);
        }
    }

    pub(crate) fn listener_rests(&self) -> bool {
        self.state().listener_rests
    }

    /// Deals with one request line.
    pub(crate) fn admit(self: &Arc<Self>, connection: &Arc<Connection>, line: Vec<u8>) {
        let size = line.len();
        match wire::parse_request(line) {
            Err(bad) => self.refuse(connection, &bad.id, "", "", size, &bad.message),
            Ok(request) => match self.objection(&request) {
                Some(message) => self.refuse(
                    connection,
                    &request.id,
                    &request.tool,
                    &request.args,
                    size,
                    &message,
                ),
                None => self.take(connection, request, size),
            },
        }
    }

    pub(crate) fn refuse_oversized(
        self: &Arc<Self>,
        connection: &Connection,
        size: usize,
        head: &[u8],
    ) {
        let message = format!(
            "The request is {size} bytes, over the limit of {}. Send less at a time, for example by writing to a file",
            self.policy.max_message_bytes
        );
        self.refuse(connection, &wire::id_in_head(head), "", "", size, &message);
    }

    fn objection(&self, request: &Request) -> Option<String> {
        crate::panic::rehearse("request", request.tool.as_bytes());
        let tools = &self.policy.tools;
        if !tools.contains_key(&request.tool) {
            let names: Vec<&str> = tools.keys().map(String::as_str).collect();
            let available = if names.is_empty() {
                "none".to_string()
            } else {
                names.join(", ")
            };
            return Some(format!(
                "Tool '{}' is not available in execute_code. Available: {available}",
                shorten(&request.tool)
            ));
        }
        let limit = self.policy.max_tool_calls;
        (self.state().ledger.counts().made >= limit).then(|| {
            format!(
                "Tool call limit reached ({limit}). No more tool calls allowed in this execution."
            )
        })
    }

    fn take(self: &Arc<Self>, connection: &Arc<Connection>, request: Request, size: usize) {
        let record = Arc::new(Record::new(
            call::next_id(),
            request.tool.clone(),
            self.preview(&request.args),
            size,
        ));
        let turn = {
            let mut state = self.state();
            if state.closed {
                return;
            }
            // Two servers may both have seen the last free place.
            if state.ledger.counts().made >= self.policy.max_tool_calls {
                drop(state);
                let message = format!(
                    "Tool call limit reached ({}). No more tool calls allowed in this execution.",
                    self.policy.max_tool_calls
                );
                return self.refuse(
                    connection,
                    &request.id,
                    &request.tool,
                    &request.args,
                    size,
                    &message,
                );
            }
            state.ledger.add(Arc::clone(&record));
            connection.count_open();
            let pending = Pending::open(
                request,
                record,
                self.policy.context,
                Arc::clone(connection),
                Arc::clone(self),
            );
            state.open.insert(pending.id(), Arc::clone(&pending));
            state.waiting.push_back(pending);
            self.next_turn(&mut state)
        };
        if let Some(pending) = turn {
            self.board.post_call(pending);
        }
    }

    /// The first waiting call that may begin now, first come first served.
    fn next_turn(&self, state: &mut State) -> Option<Arc<Pending>> {
        if state.in_flight >= self.policy.max_parallel_calls {
            return None;
        }
        let at = state
            .waiting
            .iter()
            .position(|p| !state.exclusive.contains(p.call().tool()))?;
        let pending = state.waiting.remove(at)?;
        state.in_flight += 1;
        if self.is_exclusive(pending.call().tool()) {
            state.exclusive.insert(pending.call().tool().to_string());
        }
        Some(pending)
    }

    fn is_exclusive(&self, tool: &str) -> bool {
        self.policy
            .tools
            .get(tool)
            .is_some_and(|rule| !rule.parallel)
    }

    /// Shows a call whose turn it is to the host, unless it has ended while it waited.
    pub(crate) fn offer(&self, pending: &Arc<Pending>) {
        if !pending.begin_offer() {
            return;
        }
        if let Some(observer) = self.observer.upgrade() {
            observer.offer(pending);
        }
    }

    /// Enters how a call that was claimed has ended; false when its run has ended before.
    pub(crate) fn book(&self, record: &Record, reached: CallState, reply_bytes: usize) -> bool {
        let mut state = self.state();
        if state.closed {
            return false;
        }
        record.close(reached, reply_bytes);
        if reached == CallState::Answered {
            state.ledger.count_answer();
        }
        true
    }

    /// Gives the place of a call that has ended to the next.
    pub(crate) fn release(self: &Arc<Self>, pending: &Pending) {
        let turns = {
            let mut state = self.state();
            self.forget(&mut state, pending);
            self.next_turns(&mut state)
        };
        for next in turns {
            self.board.post_call(next);
            self.board.wake_one();
        }
    }

    fn next_turns(&self, state: &mut State) -> Vec<Arc<Pending>> {
        std::iter::from_fn(|| self.next_turn(state)).collect()
    }

    fn forget(&self, state: &mut State, pending: &Pending) {
        if state.open.remove(&pending.id()).is_none() {
            return;
        }
        let before = state.waiting.len();
        state.waiting.retain(|p| p.id() != pending.id());
        if state.waiting.len() == before {
            state.in_flight -= 1;
            state.exclusive.remove(pending.call().tool());
        }
    }

    /// Tells the run that a call has ended.
    pub(crate) fn ended(&self, record: &Record) {
        if let Some(observer) = self.observer.upgrade() {
            observer.ended(record);
        }
    }

    fn refuse(
        self: &Arc<Self>,
        connection: &Connection,
        wire_id: &str,
        tool: &str,
        args: &str,
        size: usize,
        message: &str,
    ) {
        let frame = wire::error_frame(wire_id, message);
        // A name that is nobody's can be anything.
        let tool = shorten(&self.policy.redactor.redact(tool));
        let record = Record::new(call::next_id(), tool, self.preview(args), size);
        record.close(CallState::Refused, frame.len());
        let refused = {
            let mut state = self.state();
            state.ledger.add(Arc::new(record));
            state.ledger.counts().refused
        };
        // The last of them stays unanswered: the script waits for its end instead of collecting more on the way there.
        if refused < MAX_REFUSALS {
            connection.send(frame);
        } else if let Some(observer) = self.observer.upgrade() {
            observer.overrun();
        }
    }

    /// The start of the arguments, without secrets: they are removed before anything is cut, so that no half of one
    /// remains.
    fn preview(&self, args: &str) -> String {
        let head: String = args
            .chars()
            .take(PREVIEW_CHARS + self.policy.redactor.longest())
            .collect();
        let redactor = &self.policy.redactor;
        let clean = match head.len() == args.len() {
            true => redactor.redact(&head),
            // What was redacted has made room for the end of the head, where a secret may be cut.
            false => redactor.redact_head(&head),
        };
        match clean.char_indices().nth(PREVIEW_CHARS) {
            None if head.len() == args.len() => clean,
            _ => clean.chars().take(PREVIEW_CHARS - 1).chain(['…']).collect(),
        }
    }

    /// Removes a connection; calls that came over it have nobody left to answer to.
    pub(crate) fn drop_connection(self: &Arc<Self>, connection: &Arc<Connection>) {
        self.board.remove(connection.id(), connection.raw_fd());
        connection.close();
        let orphans: Vec<Arc<Pending>> = {
            let mut state = self.state();
            state.connections.remove(&connection.id());
            let of_it = |p: &&Arc<Pending>| p.connection.id() == connection.id();
            state.open.values().filter(of_it).cloned().collect()
        };
        for pending in orphans {
            if pending.abandon() {
                pending.tell_end();
                self.release(&pending);
            }
        }
        self.wake_listener();
    }

    /// Ends the conversation: no call begins any more, open ones are unanswered, connections and listener are shut.
    pub(crate) fn close(self: &Arc<Self>) {
        let (connections, open) = {
            let mut state = self.state();
            if std::mem::replace(&mut state.closed, true) {
                return;
            }
            state.waiting.clear();
            let open: Vec<Arc<Pending>> = state.open.drain().map(|(_, p)| p).collect();
            let connections: Vec<_> = state.connections.drain().map(|(_, c)| c).collect();
            (connections, open)
        };
        self.board.remove(self.listener_id, self.listener_fd());
        let _ = fd::shutdown(self.listener_fd());
        for connection in connections {
            self.board.remove(connection.id(), connection.raw_fd());
            connection.close();
        }
        for pending in open {
            pending.abandon();
            // Also a call that somebody is answering just now: the answer comes too late, and so would its end.
            pending.record.close(CallState::Unanswered, 0);
            pending.tell_end();
        }
    }

    /// Looks at the ledger.
    pub(crate) fn with_ledger<T>(&self, look: impl FnOnce(&Ledger) -> T) -> T {
        look(&self.state().ledger)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Neither token nor arguments belong into a log.
        f.debug_struct("Exchange")
            .field("listener", &self.listener)
            .finish_non_exhaustive()
    }
}

/// A name out of a request, bounded for messages and the ledger.
fn shorten(name: &str) -> String {
    match name.char_indices().nth(100) {
        Some((at, _)) => format!("{}…", &name[..at]),
        None => name.to_string(),
    }
}

fn is_shortage(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM)
    )
}

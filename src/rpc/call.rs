//! A tool call and its one answer.
//!
//! A call is known to the host by a number that is unique in the process and never reused, so that an answer may come
//! at any time and from any thread: whoever claims the number first has answered, everybody after that is told so and
//! changes nothing.

use super::connection::Connection;
use super::exchange::Exchange;
use super::ledger::{CallState, Record};
use super::wire;
use crate::error::{Code, Error, Result};
use crate::json;
use crate::sys::process_local::ProcessLocal;
use crate::text::NulText;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A tool call as the host sees it: what was asked, and the number by which it is answered.
///
/// Cloning is cheap. A call may be answered from any thread, once, now or later; see [`Call::defer`].
#[derive(Debug, Clone)]
pub struct Call(Arc<Asked>);

#[derive(Debug)]
struct Asked {
    id: u64,
    tool: NulText,
    args: NulText,
    context: usize,
}

impl Call {
    /// A call that nobody has made.
    #[cfg(test)]
    pub(crate) fn invented(tool: &str, args: &str) -> Call {
        Call(Arc::new(Asked {
            id: next_id(),
            tool: NulText::new(tool.into()),
            args: NulText::new(args.into()),
            context: 0,
        }))
    }

    /// The number by which the call is answered: unique in this process, never reused.
    pub fn id(&self) -> u64 {
        self.0.id
    }

    /// The name of the tool.
    pub fn tool(&self) -> &str {
        self.0.tool.as_str()
    }

    /// The arguments: a JSON object, as the script sent it.
    pub fn args(&self) -> &str {
        self.0.args.as_str()
    }

    pub(crate) fn tool_with_nul(&self) -> &[u8] {
        self.0.tool.with_nul()
    }

    pub(crate) fn args_with_nul(&self) -> &[u8] {
        self.0.args.with_nul()
    }

    /// The context that the run was started with (0 if none was given).
    pub fn context(&self) -> usize {
        self.0.context
    }

    /// Answers with a JSON value; see [`reply`].
    pub fn reply(&self, json: &str) -> Result<()> {
        reply(self.id(), json)
    }

    /// Answers with a string; see [`reply_text`].
    pub fn reply_text(&self, text: &str) -> Result<()> {
        reply_text(self.id(), text)
    }

    /// Answers with an error; see [`fail`].
    pub fn fail(&self, message: &str) -> Result<()> {
        fail(self.id(), message)
    }

    /// Says that the answer comes later; see [`defer`].
    pub fn defer(&self) -> Result<()> {
        defer(self.id())
    }

    /// Whether an answer would still reach the script; see [`is_wanted`].
    pub fn is_wanted(&self) -> bool {
        is_wanted(self.id())
    }
}

/// Where an open call stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Waiting for its turn; the host has not seen it.
    Queued,
    /// With the host, which has not said anything yet.
    Offered,
    /// The host answers later.
    Deferred,
}

/// What listeners know of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    Nothing,
    Begin,
    End,
}

/// An open call with all that its answer needs.
#[derive(Debug)]
pub(crate) struct Pending {
    call: Call,
    wire_id: String,
    phase: Mutex<Phase>,
    /// Held while something is told of the call, so that its end is told once and nothing after it.
    told: Mutex<Told>,
    pub(crate) record: Arc<Record>,
    pub(crate) connection: Arc<Connection>,
    pub(crate) exchange: Arc<Exchange>,
}

type Registry = Mutex<HashMap<u64, Arc<Pending>>>;

/// The open calls of this process. A forked child starts with none: the calls of its parent are not its to answer.
static OPEN_CALLS: ProcessLocal<Registry> = ProcessLocal::new();

static NEXT_ID: AtomicU64 = AtomicU64::new(1);

/// A number for the next call.
pub(crate) fn next_id() -> u64 {
    NEXT_ID.fetch_add(1, Ordering::Relaxed)
}

fn open_calls() -> MutexGuard<'static, HashMap<u64, Arc<Pending>>> {
    OPEN_CALLS
        .get(Registry::default)
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
}

/// What the host answered.
enum Answer<'a> {
    Json(&'a str),
    Text(&'a str),
    Failure(&'a str),
    /// With the text of a JSON object.
    Detailed(&'a str, &'a str),
}

/// Answers call `id` with the JSON value `json`.
///
/// # Errors
/// [`Code::State`] when the call is unknown, was answered already, or its run has ended. [`Code::InvalidArgument`]
/// when `json` is not valid JSON or larger than `max_message_bytes`; the script then sees a failed call.
pub fn reply(id: u64, json: &str) -> Result<()> {
    answer(id, Answer::Json(json))
}

/// Answers call `id` with a string, which is never parsed: the script gets a `str`.
///
/// # Errors
/// As [`reply`].
pub fn reply_text(id: u64, text: &str) -> Result<()> {
    answer(id, Answer::Text(text))
}

/// Answers call `id` with an error: the script gets `{"error": message}`, or a `ToolError` where the configuration
/// says `"on_tool_error": "raise"`.
///
/// # Errors
/// [`Code::State`] as [`reply`].
pub fn fail(id: u64, message: &str) -> Result<()> {
    answer(id, Answer::Failure(message))
}

/// As [`fail`], with the text of a JSON object whose members help to do better; the script finds them beside `error`.
pub(crate) fn fail_with(id: u64, message: &str, details: Option<&str>) -> Result<()> {
    match details {
        Some(details) => answer(id, Answer::Detailed(message, details)),
        None => fail(id, message),
    }
}

/// Says that call `id` will be answered after dispatch has returned, from any thread.
///
/// # Errors
/// [`Code::State`] when the call is unknown, answered already, or was deferred before.
pub fn defer(id: u64) -> Result<()> {
    let pending = open_calls().get(&id).cloned().ok_or_else(|| gone(id))?;
    let mut phase = pending.phase();
    match *phase {
        Phase::Offered => {
            *phase = Phase::Deferred;
            Ok(())
        }
        Phase::Deferred => Err(Error::new(
            Code::State,
            format!("call {id} is deferred already; answer it with reply or fail"),
        )),
        Phase::Queued => Err(gone(id)),
    }
}

/// Whether an answer to call `id` would still reach the script: false once it was answered or its run has ended.
pub fn is_wanted(id: u64) -> bool {
    open_calls()
        .get(&id)
        .is_some_and(|p| *p.phase() != Phase::Queued)
}

fn answer(id: u64, answer: Answer<'_>) -> Result<()> {
    let pending = claim(id).ok_or_else(|| gone(id))?;
    pending.finish(answer)
}

/// Takes call `id` out of the open ones. Only one caller ever gets it.
fn claim(id: u64) -> Option<Arc<Pending>> {
    let mut open = open_calls();
    if *open.get(&id)?.phase() == Phase::Queued {
        return None;
    }
    open.remove(&id)
}

fn gone(id: u64) -> Error {
    Error::new(
        Code::State,
        format!("call {id} is not open: it was answered already, its run has ended, or there never was one"),
    )
}

impl Pending {
    /// Enters a new call among the open ones, queued.
    pub(crate) fn open(
        request: wire::Request,
        record: Arc<Record>,
        context: usize,
        connection: Arc<Connection>,
        exchange: Arc<Exchange>,
    ) -> Arc<Pending> {
        let id = record.id;
        let pending = Arc::new(Pending {
            call: Call(Arc::new(Asked {
                id,
                tool: NulText::new(request.tool),
                args: NulText::new(request.args),
                context,
            })),
            wire_id: request.id,
            phase: Mutex::new(Phase::Queued),
            told: Mutex::new(Told::Nothing),
            record,
            connection,
            exchange,
        });
        open_calls().insert(id, Arc::clone(&pending));
        pending
    }

    pub(crate) fn call(&self) -> &Call {
        &self.call
    }

    pub(crate) fn id(&self) -> u64 {
        self.call.id()
    }

    /// Marks the call as being with the host; false when it has ended meanwhile.
    pub(crate) fn begin_offer(&self) -> bool {
        let open = open_calls();
        let is_open = open.contains_key(&self.id());
        if is_open {
            *self.phase() = Phase::Offered;
        }
        is_open
    }

    /// Ends a call that dispatch returned from without a word. A deferred or answered one is left alone.
    pub(crate) fn end_offer(&self, complaint: &str) {
        let claimed = {
            let mut open = open_calls();
            let silent = *self.phase() == Phase::Offered;
            if silent {
                open.remove(&self.id())
            } else {
                None
            }
        };
        if let Some(pending) = claimed {
            // Nothing can be wrong with a message, and the call is ours by now.
            let _ = pending.finish(Answer::Failure(complaint));
        }
    }

    /// Ends the call without an answer because its run or its caller is gone. True if it was still open.
    pub(crate) fn abandon(&self) -> bool {
        let was_open = open_calls().remove(&self.id()).is_some();
        if was_open {
            self.record.close(CallState::Unanswered, 0);
        }
        was_open
    }

    /// Tells by `tell` that the call has begun, unless its end was told; whether it was.
    pub(crate) fn tell_begin(&self, tell: impl FnOnce()) -> bool {
        let mut told = self.told();
        let is_news = *told == Told::Nothing;
        if is_news {
            *told = Told::Begin;
            tell();
        }
        is_news
    }

    /// Tells the run that the call has ended, unless it knows.
    pub(crate) fn tell_end(&self) {
        let mut told = self.told();
        if std::mem::replace(&mut *told, Told::End) != Told::End {
            self.exchange.ended(&self.record);
        }
    }

    fn finish(&self, answer: Answer<'_>) -> Result<()> {
        let (outcome, state, frame) = self.frame(answer);
        if !self.exchange.book(&self.record, state, frame.len()) {
            return Err(gone(self.id()));
        }
        // Told first: what the script does with the answer, and the call that takes this one's place, come after it.
        self.tell_end();
        self.exchange.release(self);
        self.connection.send(frame);
        self.connection.count_closed();
        outcome
    }

    fn frame(&self, answer: Answer<'_>) -> (Result<()>, CallState, Vec<u8>) {
        let limit = self.exchange.max_message_bytes();
        let failed = |code, message: String| {
            let frame = wire::error_frame(&self.wire_id, &message);
            (Err(Error::new(code, message)), CallState::Failed, frame)
        };
        let frame = match answer {
            Answer::Failure(message) => {
                let frame = wire::error_frame(&self.wire_id, message);
                return (Ok(()), CallState::Failed, frame);
            }
            Answer::Detailed(message, details) => {
                let frame = wire::detailed_error_frame(&self.wire_id, message, details);
                return (Ok(()), CallState::Failed, frame);
            }
            Answer::Text(text) => wire::result_frame(&self.wire_id, &json::quote(text)),
            Answer::Json(text) => match json::validate(text) {
                Ok(valid) => wire::result_frame(&self.wire_id, valid),
                Err(e) => {
                    let tool = self.call.tool();
                    let message = format!("the host's reply to '{tool}' was not valid JSON: {e}");
                    return failed(Code::InvalidArgument, message);
                }
            },
        };
        if frame.len() > limit {
            let tool = self.call.tool();
            let size = frame.len();
            let message = format!(
                "the result of '{tool}' is {size} bytes, over the limit of {limit}; ask for less at a time, or raise \
                 code_execution.max_message_bytes"
            );
            return failed(Code::InvalidArgument, message);
        }
        (Ok(()), CallState::Answered, frame)
    }

    fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn phase(&self) -> MutexGuard<'_, Phase> {
        self.phase.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

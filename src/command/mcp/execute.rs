//! Calls that are under way: each script is followed by a thread of its own, which serves its tool calls and answers.
//!
//! Whoever takes a call out of the table decides what becomes of its request: its own thread, once the script has ended,
//! answers it, unless a cancellation was entered before. So a request is answered once or, cancelled, never.

use super::progress::Progress;
use super::reply::Reply;
use super::wire::{Id, INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST};
use crate::command::tools::{CommandTools, Serving};
use crate::json::ObjectWriter;
use crate::panic;
use crate::sys::thread::spawn_blocked;
use crate::{Code, Engine, Event, EventKind, Outcome, Run, Status};
use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// What stands for output that is not there: some models' interfaces refuse an empty text.
const NO_OUTPUT: &str = "(The script printed nothing.)";

/// A call that can be started.
pub(super) struct Request {
    pub(super) code: String,
    pub(super) options: String,
    /// Whether the client knows of structured content.
    pub(super) is_structured: bool,
    pub(super) progress: Option<Progress>,
}

pub(super) struct Executor {
    engine: Engine,
    tools: Arc<CommandTools>,
    running: Arc<Running>,
}

/// The requests whose scripts run, and how many threads are not done with theirs.
#[derive(Default)]
struct Running {
    table: Mutex<Table>,
    left: Condvar,
}

#[derive(Default)]
struct Table {
    calls: HashMap<Id, Entry>,
    busy: usize,
}

struct Entry {
    run: Run,
    is_cancelled: bool,
}

/// Counts a thread until it is dropped, which is after everything else of it.
struct Busy(Arc<Running>);

impl Executor {
    pub(super) fn new(engine: Engine, tools: Arc<CommandTools>) -> Self {
        let running = Arc::default();
        Executor {
            engine,
            tools,
            running,
        }
    }

    /// Starts the script; the answer comes when it has ended.
    pub(super) fn start(&self, request: Request, reply: &Reply) -> Result<(), (i32, String)> {
        let id = reply.id();
        if self.running.table().calls.contains_key(id) {
            let message = format!("a request with id {} is under way", id.json());
            return Err((INVALID_REQUEST, message));
        }
        let started = self.engine.start(&request.code, &request.options);
        let run = started.map_err(|e| match e.code() {
            Code::Config | Code::InvalidArgument => (INVALID_PARAMS, e.message().to_string()),
            _ => (INTERNAL_ERROR, e.message().to_string()),
        })?;
        self.running.enter(id, &run);
        let (busy, tools) = (Busy::new(&self.running), Arc::clone(&self.tools));
        let its_reply = reply.clone();
        let follow = move || busy.0.follow(run, request, &tools, its_reply);
        spawn_blocked("ptc-mcp-call", follow)
            .map(drop)
            .map_err(|e| {
                self.running.take(id);
                (INTERNAL_ERROR, format!("no thread for the call: {e}"))
            })
    }

    /// Ends the script of request `id`, which is then not answered. Does nothing when it was answered already.
    pub(super) fn cancel(&self, id: &Id, reason: Option<&str>) {
        if let Some(entry) = self.running.table().calls.get_mut(id) {
            entry.is_cancelled = true;
            entry.run.cancel(reason);
        }
    }

    /// Ends all scripts and waits until nothing of them is left. Their requests are answered if somebody `listens`.
    pub(super) fn end(self, reason: &str, listens: bool) {
        let mut table = self.running.table();
        for entry in table.calls.values_mut() {
            entry.is_cancelled |= !listens;
            entry.run.cancel(Some(reason));
        }
        while table.busy > 0 {
            let waited = self.running.left.wait(table);
            table = waited.unwrap_or_else(PoisonError::into_inner);
        }
        drop(table);
        // Without a limit, and outside of callbacks, there is nothing that could go wrong.
        let _ = self.engine.close(None);
    }
}

impl Running {
    fn enter(&self, id: &Id, run: &Run) {
        let entry = Entry {
            run: run.clone(),
            is_cancelled: false,
        };
        self.table().calls.insert(id.clone(), entry);
    }

    /// Takes request `id` out of the table; false when it was cancelled before.
    fn take(&self, id: &Id) -> bool {
        let entry = self.table().calls.remove(id);
        entry.is_some_and(|entry| !entry.is_cancelled)
    }

    fn is_cancelled(&self, id: &Id) -> bool {
        let table = self.table();
        table.calls.get(id).is_some_and(|entry| entry.is_cancelled)
    }

    /// Sees the script through and answers.
    fn follow(&self, run: Run, request: Request, tools: &Arc<CommandTools>, reply: Reply) {
        let mut progress = request.progress;
        let followed = panic::catch(|| {
            let tell = |event: &Event| match &mut progress {
                Some(progress) if !self.is_cancelled(reply.id()) => progress.tell(event),
                _ => {}
            };
            let ended = attend(&run, tools, tell);
            ended.map(|outcome| result(&outcome, request.is_structured))
        });
        if !self.take(reply.id()) {
            return;
        }
        match followed {
            Ok(Ok(result)) => reply.result(&result),
            Ok(Err(message)) => reply.error(INTERNAL_ERROR, &message),
            Err(panic) => reply.error(INTERNAL_ERROR, &panic::complaint(&panic)),
        }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Busy {
    fn new(running: &Arc<Running>) -> Busy {
        running.table().busy += 1;
        Busy(Arc::clone(running))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.table().busy -= 1;
        self.0.left.notify_all();
    }
}

/// Serves the tool calls of a script until it has ended.
fn attend(
    run: &Run,
    tools: &Arc<CommandTools>,
    mut tell: impl FnMut(&Event),
) -> Result<Arc<Outcome>, String> {
    let in_words = |e: crate::Error| e.message().to_string();
    let mut serving = Serving::new(tools);
    while let Some(event) = run.next_event(None).map_err(in_words)? {
        match event.kind() {
            EventKind::Call => event.call().into_iter().for_each(|c| serving.serve(c)),
            EventKind::CallEnd => serving.stop_unwanted(),
            _ => {}
        }
        tell(&event);
        if event.kind() == EventKind::End {
            break;
        }
    }
    drop(serving);
    let outcome = run.wait(None).map_err(in_words)?;
    outcome.ok_or_else(|| "the run has no end".to_string())
}

/// The result of the call: for the model what it should see, for the client the whole.
fn result(outcome: &Outcome, is_structured: bool) -> String {
    let text = match outcome.output() {
        text if text.trim().is_empty() => NO_OUTPUT,
        text => text,
    };
    let hint = outcome.hint().map(|hint| format!("hint: {hint}"));
    let block = |text: &str| {
        let mut block = ObjectWriter::default();
        block.string("type", "text").string("text", text);
        block.finish()
    };
    let blocks: Vec<String> = [Some(text), hint.as_deref()]
        .into_iter()
        .flatten()
        .map(block)
        .collect();
    let mut result = ObjectWriter::default();
    result.raw("content", format_args!("[{}]", blocks.join(",")));
    if is_structured {
        result.raw("structuredContent", outcome.json());
    }
    result.raw("isError", outcome.status() != Status::Success);
    result.finish()
}

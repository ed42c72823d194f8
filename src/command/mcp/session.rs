//! The conversation: which protocol version it is in, what is answered in it and what is refused.
//!
//! Two phases: before `initialize` nothing but that and `ping` is served; afterwards everything is, by the version that
//! was agreed on. What takes time is handed to the [`Executor`], so that the next message is never kept waiting.

use super::execute::{Executor, Request};
use super::outbox::Outbox;
use super::progress::Progress;
use super::reply::{Desk, Reply};
use super::tool::Offer;
use super::wire::{self, Content, Id, Line, Message, Problem, Read};
use super::wire::{INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND};
use crate::json::{quote, ObjectWriter, Value};
use crate::suggest::did_you_mean;
use std::sync::Arc;

/// The protocol versions that are spoken, oldest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Version {
    /// The first one.
    November2024,
    /// Batches, annotations of tools, messages in progress notifications.
    March2025,
    /// No batches; structured content, output schemas, titles.
    June2025,
}

const VERSIONS: [(Version, &str); 3] = [
    (Version::November2024, "2024-11-05"),
    (Version::March2025, "2025-03-26"),
    (Version::June2025, "2025-06-18"),
];

impl Version {
    /// The version that `wanted` names, else the newest: a client that does not speak that one goes away.
    fn negotiate(wanted: &str) -> Version {
        let found = VERSIONS.iter().find(|(_, name)| *name == wanted);
        found.map_or(Version::June2025, |(version, _)| *version)
    }

    fn name(self) -> &'static str {
        let found = VERSIONS.iter().find(|(version, _)| *version == self);
        found.map_or("", |(_, name)| name)
    }
}

#[derive(Debug, Clone, Copy)]
enum Phase {
    Uninitialised,
    Speaking(Version),
}

const INSTRUCTIONS: &str = "\
execute_code runs a Python script on this machine, in a supervised process with limits on time, calls and output, and returns \
what the script prints. Use it for work that takes several steps with logic between them: the functions that its description \
lists can be imported and called in the script, and their results stay out of the conversation unless they are printed. \
Several scripts may run at once; cancelling a request stops its script and everything that it has started.";

/// A refusal in the terms of the protocol.
type Refused = (i32, String);

pub(super) struct Session {
    phase: Phase,
    outbox: Arc<Outbox>,
    executor: Executor,
    offer: Offer,
}

impl Session {
    pub(super) fn new(outbox: Arc<Outbox>, executor: Executor, offer: Offer) -> Self {
        let phase = Phase::Uninitialised;
        Session {
            phase,
            outbox,
            executor,
            offer,
        }
    }

    /// Deals with one line of the client's.
    pub(super) fn receive(&mut self, line: Line) {
        let alone = Desk::Outbox(Arc::clone(&self.outbox));
        match wire::read(line) {
            Content::Nothing => {}
            Content::One(read) => self.take(read, &alone),
            Content::Batch(reads) => match self.refuse_batch(&reads) {
                Some(why) => alone.complain(&Problem {
                    id: None,
                    code: INVALID_REQUEST,
                    message: why.into(),
                }),
                None => {
                    let batch = Desk::for_batch(&self.outbox);
                    reads.into_iter().for_each(|read| self.take(read, &batch));
                }
            },
        }
    }

    /// Cancels the scripts and waits until nothing of them is left. Their requests are answered if somebody `listens`.
    pub(super) fn end(self, reason: &str, listens: bool) {
        self.executor.end(reason, listens);
    }

    fn refuse_batch(&self, reads: &[Read]) -> Option<&'static str> {
        match self.phase {
            Phase::Speaking(Version::March2025) if reads.is_empty() => Some("an empty batch"),
            Phase::Speaking(Version::March2025) => None,
            Phase::Speaking(_) => {
                Some("there are no batches in this version of the protocol: one message a line")
            }
            Phase::Uninitialised => Some("a session begins with initialize, which is in no batch"),
        }
    }

    fn take(&mut self, read: Read, desk: &Desk) {
        match read {
            Err(problem) => desk.complain(&problem),
            // Nothing is asked of clients, so there is nothing that could be answered.
            Ok(Message::Response) => {}
            Ok(Message::Notification { method, params }) => self.notice(&method, &params),
            Ok(Message::Request { id, method, params }) => {
                let reply = desk.reply(id);
                if let Err((code, message)) = self.serve(&method, &params, &reply, desk) {
                    reply.error(code, &message);
                }
            }
        }
    }

    /// Notifications have no answer, whatever is wrong with them.
    fn notice(&self, method: &str, params: &Value) {
        if method == "notifications/cancelled" {
            let id = params.get("requestId").and_then(Id::of);
            let reason = params.get("reason").and_then(Value::as_str);
            if let Some(id) = id {
                self.executor.cancel(&id, reason);
            }
        }
    }

    fn serve(
        &mut self,
        method: &str,
        params: &Value,
        reply: &Reply,
        desk: &Desk,
    ) -> Result<(), Refused> {
        const METHODS: [&str; 4] = ["initialize", "ping", "tools/list", "tools/call"];
        match (method, self.phase) {
            ("ping", _) => reply.result("{}"),
            ("initialize", Phase::Uninitialised) => self.initialise(params, reply)?,
            ("initialize", Phase::Speaking(_)) => {
                let again = if desk.is_batch() {
                    "initialize is in no batch"
                } else {
                    "this session is initialised already"
                };
                return Err((INVALID_REQUEST, again.into()));
            }
            ("tools/list" | "tools/call", Phase::Uninitialised) => {
                let message = format!("{method} comes after initialize");
                return Err((INVALID_REQUEST, message));
            }
            ("tools/list", Phase::Speaking(version)) => self.list(version, params, reply)?,
            ("tools/call", Phase::Speaking(version)) => self.call(version, params, reply)?,
            _ => {
                let hint = did_you_mean(method, METHODS);
                let message = format!("there is no method {}{hint}", quote(method));
                return Err((METHOD_NOT_FOUND, message));
            }
        }
        Ok(())
    }

    fn initialise(&mut self, params: &Value, reply: &Reply) -> Result<(), Refused> {
        let wanted = text(params, "protocolVersion")?;
        for key in ["capabilities", "clientInfo"] {
            if params
                .get(key)
                .is_some_and(|value| value.as_object().is_none())
            {
                return Err((INVALID_PARAMS, format!("{key}: expected an object")));
            }
        }
        let version = Version::negotiate(wanted);
        self.phase = Phase::Speaking(version);
        let mut server = ObjectWriter::default();
        server.string("name", "ptc");
        if version >= Version::June2025 {
            server.string("title", "Programmatic tool calling");
        }
        server.string("version", env!("CARGO_PKG_VERSION"));
        let mut result = ObjectWriter::default();
        result
            .string("protocolVersion", version.name())
            .raw("capabilities", r#"{"tools":{}}"#)
            .raw("serverInfo", server.finish())
            .string("instructions", INSTRUCTIONS);
        reply.result(&result.finish());
        Ok(())
    }

    fn list(&self, version: Version, params: &Value, reply: &Reply) -> Result<(), Refused> {
        match params.get("cursor") {
            None | Some(Value::Null) => {}
            Some(cursor) => {
                let message = format!("cursor: {cursor} was never given out: there is one page");
                return Err((INVALID_PARAMS, message));
            }
        }
        reply.result(&format!("{{\"tools\":[{}]}}", self.offer.listing(version)));
        Ok(())
    }

    fn call(&self, version: Version, params: &Value, reply: &Reply) -> Result<(), Refused> {
        let name = text(params, "name")?;
        let invalid = |message| (INVALID_PARAMS, message);
        self.offer.check_name(name).map_err(invalid)?;
        let (code, options) = self
            .offer
            .arguments(params.get("arguments"))
            .map_err(invalid)?;
        let request = Request {
            code,
            options,
            is_structured: version >= Version::June2025,
            progress: self.progress(version, params)?,
        };
        self.executor.start(request, reply)
    }

    fn progress(&self, version: Version, params: &Value) -> Result<Option<Progress>, Refused> {
        let token = params
            .get("_meta")
            .and_then(|meta| meta.get("progressToken"));
        let Some(token) = token else {
            return Ok(None);
        };
        // It goes back as it came, like an identifier.
        let token = Id::of(token).ok_or_else(|| {
            let message = "_meta.progressToken: expected a string or a number";
            (INVALID_PARAMS, message.to_string())
        })?;
        let has_messages = version >= Version::March2025;
        Ok(Some(Progress::new(
            token,
            has_messages,
            Arc::clone(&self.outbox),
        )))
    }
}

fn text<'a>(params: &'a Value, key: &str) -> Result<&'a str, Refused> {
    params.get(key).and_then(Value::as_str).ok_or_else(|| {
        let found = params
            .get(key)
            .map_or("nothing".into(), |value| match value.to_string() {
                long if long.len() > 60 => "something else".into(),
                short => short,
            });
        let message = format!("{key}: expected a string, got {found}");
        (INVALID_PARAMS, message)
    })
}

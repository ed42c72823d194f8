//! Progress notifications of one call, for a client that has asked for them with a token.
//!
//! The number rises with every tool call and every piece of output, told or not: calls are told each, output ten times a
//! second at most, so that a chatty script floods nobody.

use super::outbox::Outbox;
use super::wire::{self, Id};
use crate::json::{self, ObjectWriter, Value};
use crate::{text, Event, EventKind};
use std::sync::Arc;
use std::time::{Duration, Instant};

const BETWEEN_OUTPUTS: Duration = Duration::from_millis(100);
/// The longest message, in characters.
const MESSAGE: usize = 200;

#[derive(Debug)]
pub(super) struct Progress {
    token: Id,
    has_messages: bool,
    outbox: Arc<Outbox>,
    so_far: u64,
    output_told: Option<Instant>,
}

impl Progress {
    pub(super) fn new(token: Id, has_messages: bool, outbox: Arc<Outbox>) -> Self {
        Progress {
            token,
            has_messages,
            outbox,
            so_far: 0,
            output_told: None,
        }
    }

    pub(super) fn tell(&mut self, event: &Event) {
        let message = match event.kind() {
            EventKind::Call => called(event.data()),
            EventKind::Stdout | EventKind::Stderr => {
                let recently = |told: Instant| told.elapsed() < BETWEEN_OUTPUTS;
                if self.output_told.is_some_and(recently) {
                    self.so_far += 1;
                    return;
                }
                self.output_told = Some(Instant::now());
                printed(event.data())
            }
            EventKind::Started | EventKind::CallEnd | EventKind::End => return,
        };
        self.so_far += 1;
        let mut params = ObjectWriter::default();
        params
            .raw("progressToken", self.token.json())
            .raw("progress", self.so_far);
        if self.has_messages && !message.is_empty() {
            params.string("message", &clip(&message));
        }
        let line = wire::notification("notifications/progress", &params.finish());
        self.outbox.send(line);
    }
}

/// The tool and the beginning of its arguments.
fn called(data: &[u8]) -> String {
    let data = std::str::from_utf8(data).unwrap_or_default();
    let data = json::parse(data).unwrap_or(Value::Null);
    let member = |key| data.get(key).and_then(Value::as_str).unwrap_or_default();
    format!("{} {}", member("tool"), member("args_preview"))
}

/// The last line that says something.
fn printed(data: &[u8]) -> String {
    let text = text::to_text(data);
    let last = text.lines().rev().find(|line| !line.trim().is_empty());
    last.unwrap_or_default().trim().to_string()
}

fn clip(message: &str) -> String {
    match message.char_indices().nth(MESSAGE) {
        Some((at, _)) => format!("{}…", &message[..at]),
        None => message.to_string(),
    }
}

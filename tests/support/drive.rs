//! What tests of an engine's handles share: hosts, scripts, and what is told of a run.
#![allow(dead_code)] // Every test program takes what it needs of this.

use super::support::{ECHO, PATIENCE};
use super::wire::{Gate, Visitor, Watched, GATE};
use ptc::{Call, Code, Engine, Event, EventKind, Host, Run};
use serde_json::Value;
use std::sync::Arc;

pub fn config(settings: &str) -> String {
    format!(r#"{{"code_execution":{{"max_tool_calls":1000{settings}}},"tools":[{ECHO}]}}"#)
}

pub fn new_engine(host: Host) -> Engine {
    Engine::new(&config(""), host).unwrap()
}

pub fn value_of(call: &Call) -> Value {
    let args: Value = serde_json::from_str(call.args()).expect("arguments are JSON");
    args["value"].clone()
}

pub fn reply_with_value(call: &Call) {
    call.reply(&value_of(call).to_string()).unwrap();
}

/// A script that prints the answers to calls with 0, 1, … `count` - 1.
pub fn calls_in_a_row(count: usize) -> String {
    format!("import hermes_tools\nprint([hermes_tools.echo(value=i) for i in range({count})])")
}

pub fn numbers(count: usize) -> String {
    format!("{:?}\n", (0..count).collect::<Vec<_>>())
}

/// A script that says so at the gate and stays until it is ended.
pub const STAYS: &str = "
gate.sendall(b'up\\n')
while True:
    gate.recv(1)
";

pub fn staying(engine: &Engine, gate: &Gate) -> (Run, Visitor) {
    let run = engine
        .start(GATE.to_string() + STAYS, &gate.options(""))
        .unwrap();
    let mut visitor = gate.visitor();
    assert_eq!(visitor.line(), "up");
    (run, visitor)
}

/// Events as they came, and how to wait for some of them.
#[derive(Default, Clone)]
pub struct Log(pub Arc<Watched<Vec<Event>>>);

impl Log {
    pub fn of(self, host: Host) -> Host {
        host.on_event(move |event| self.0.change(|events| events.push(event.clone())))
    }

    /// All events up to the end of `runs` runs.
    pub fn until_end(&self, runs: usize) -> Vec<Event> {
        let ends =
            |events: &Vec<Event>| events.iter().filter(|e| e.kind() == EventKind::End).count();
        self.0
            .wait(|events| ends(events) == runs, |events| events.clone())
    }
}

pub fn data(event: &Event) -> Value {
    serde_json::from_slice(event.data()).expect("its data is JSON")
}

/// What one stream's chunks are together.
pub fn stream_of(events: &[Event], kind: EventKind) -> Vec<u8> {
    let chunks = events.iter().filter(|event| event.kind() == kind);
    chunks.flat_map(|event| event.data().to_vec()).collect()
}

pub fn state_error<T: std::fmt::Debug>(result: Result<T, ptc::Error>) -> String {
    let error = result.expect_err("it is refused");
    assert_eq!(error.code(), Code::State, "{error}");
    error.to_string()
}

/// Pulls everything, answering calls with `answer`.
pub fn pull(run: &Run, answer: impl Fn(&Call)) -> Vec<Event> {
    let mut events = Vec::new();
    while let Some(event) = run.next_event(Some(PATIENCE)).unwrap() {
        if let Some(call) = event.call() {
            answer(call);
        }
        let is_last = event.kind() == EventKind::End;
        events.push(event);
        if is_last {
            assert!(
                run.next_event(None).unwrap().is_none(),
                "nothing follows the end"
            );
        }
    }
    events
}

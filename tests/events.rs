//! What a host is told of a run, pushed or pulled.

#[path = "support/drive.rs"]
mod drive;
mod support;
#[path = "support/wire.rs"]
mod wire;

use drive::*;
use ptc::{Engine, Event, EventKind, Host, Status};
use serde_json::json;
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};
use support::*;
use wire::*;

// ---- events ----

/// What holds of the events of one run whatever it does.
fn assert_in_order(events: &[Event]) {
    let kinds: Vec<EventKind> = events.iter().map(Event::kind).collect();
    assert_eq!(kinds.first(), Some(&EventKind::Started));
    assert_eq!(kinds.last(), Some(&EventKind::End));
    let once = |kind| kinds.iter().filter(|k| **k == kind).count() == 1;
    assert!(
        once(EventKind::Started) && once(EventKind::End),
        "{kinds:?}"
    );
    let started = data(&events[0]);
    assert!(started["pid"].as_i64().unwrap() > 1, "{started}");
    assert!(started["python"].is_string() && started["cwd"].is_string());
    let mut open = HashSet::new();
    for event in events {
        match event.kind() {
            EventKind::Call => {
                let call = event.call().expect("a call event has its call");
                assert_eq!(data(event)["id"], call.id());
                assert_eq!(data(event)["tool"], call.tool());
                assert!(open.insert(call.id()));
            }
            EventKind::CallEnd => {
                let id = data(event)["id"].as_u64().unwrap();
                assert!(open.remove(&id), "{id} ends without having begun");
            }
            _ => assert!(event.call().is_none()),
        }
    }
    assert_eq!(open, HashSet::new(), "calls that did not end");
}

const TALKATIVE: &str = "
import hermes_tools, os, sys
for i in range(30):
    print('line', i)
    print('trouble', i, file=sys.stderr)
    hermes_tools.echo(value=i)
sys.stdout.flush()
os.write(1, bytes(range(256)) * 700)
os.write(2, '€'.encode()[:2])
";

fn assert_talkative(events: &[Event]) {
    assert_in_order(events);
    let lines = |word: &str| (0..30).map(|i| format!("{word} {i}\n")).collect::<String>();
    let mut stdout = lines("line").into_bytes();
    for _ in 0..700 {
        stdout.extend(0..=255);
    }
    assert!(
        stream_of(events, EventKind::Stdout) == stdout,
        "stdout is not what was written"
    );
    let stderr = [lines("trouble").as_bytes(), b"\xe2\x82"].concat();
    assert!(
        stream_of(events, EventKind::Stderr) == stderr,
        "stderr is not what was written"
    );
    let of = |kind| events.iter().filter(move |e| e.kind() == kind);
    assert_eq!(of(EventKind::Call).count(), 30);
    assert!(of(EventKind::CallEnd).all(|e| data(e)["state"] == "answered"));
    let end = data(events.last().unwrap());
    assert_eq!(end["status"], "success");
    assert_eq!(end["tool_calls_made"], 30, "{end}");
    assert!(end["duration_seconds"].is_number());
}

#[test]
fn pushed_events_tell_all_in_order() {
    for threads in [0, 1, 4] {
        let log = Log::default();
        let host = log
            .clone()
            .of(Host::new().threads(threads).dispatch(reply_with_value));
        execute(&new_engine(host), "", TALKATIVE).printed();
        assert_talkative(&log.until_end(1));
    }
}

/// Lines and calls in turn; both streams are written without a buffer.
const TURNS: &str = "
import hermes_tools, os
for i in range(100):
    os.write(1, b'out %d\\n' % i)
    os.write(2, b'err %d\\n' % i)
    hermes_tools.echo(value=i)
";

fn assert_in_turns(events: &[Event]) {
    assert_in_order(events);
    let of_calls = |kind| {
        events
            .iter()
            .enumerate()
            .filter(move |(_, e)| e.kind() == kind)
    };
    for (turn, (at, _)) in of_calls(EventKind::Call).enumerate() {
        for (kind, word) in [(EventKind::Stdout, "out"), (EventKind::Stderr, "err")] {
            let written: String = (0..=turn).map(|i| format!("{word} {i}\n")).collect();
            let told = stream_of(&events[..at], kind);
            assert_eq!(
                String::from_utf8_lossy(&told),
                written,
                "before call {turn}"
            );
        }
    }
    let begins = of_calls(EventKind::Call).map(|(at, _)| at).skip(1);
    let ends = of_calls(EventKind::CallEnd).map(|(at, _)| at);
    assert!(ends.zip(begins).all(|(end, next)| end < next));
}

#[test]
fn output_and_calls_are_told_in_the_order_in_which_the_script_made_them() {
    for threads in [0, 1, 4] {
        let log = Log::default();
        let host = log
            .clone()
            .of(Host::new().threads(threads).dispatch(reply_with_value));
        execute(&new_engine(host), "", TURNS).printed();
        assert_in_turns(&log.until_end(1));
    }
    let engine = new_engine(Host::new());
    let run = engine.start(TURNS, "").unwrap();
    assert_in_turns(&pull(&run, reply_with_value));
}

/// Calls that are answered, cancelled and made just as their run ends.
#[test]
fn whatever_races_with_the_end_each_call_ends_once_and_the_end_is_last() {
    let code = "
import hermes_tools
while True:
    hermes_tools.parallel([lambda i=i: hermes_tools.echo(value=i) for i in range(24)])";
    let engine = new_engine(Host::new());
    for round in 0..30 {
        let run = engine.start(code, "").unwrap();
        let cancels = run.clone();
        let seen = AtomicUsize::new(0);
        let events = pull(&run, move |call| {
            if seen.fetch_add(1, Ordering::SeqCst) == round {
                cancels.cancel(None);
            }
            // Refused for a call that has ended with its run.
            drop(call.reply("null"));
        });
        let mut begun = HashSet::new();
        let mut ended = HashSet::new();
        for event in &events {
            let id = || data(event)["id"].as_u64().unwrap();
            match event.kind() {
                EventKind::Call => {
                    assert!(begun.insert(id()) && !ended.contains(&id()), "{event:?}")
                }
                EventKind::CallEnd => assert!(ended.insert(id()), "{event:?}"),
                _ => {}
            }
        }
        assert!(begun.is_subset(&ended));
        assert_eq!(events.last().unwrap().kind(), EventKind::End);
        let ran = wait(&run);
        assert_eq!(ran.status(), "interrupted");
        assert_eq!(ran.json["tool_calls_made"], ended.len());
        let unanswered = ran
            .of_calls("state")
            .iter()
            .filter(|s| **s != "answered")
            .count();
        let told = events.iter().filter(|e| e.kind() == EventKind::CallEnd);
        let told = told.filter(|e| data(e)["state"] == "unanswered").count();
        assert_eq!(told, unanswered);
    }
}

#[test]
fn no_two_events_of_a_run_are_delivered_at_once() {
    let inside = AtomicBool::new(false);
    let overlaps = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&overlaps);
    let host = Host::new().threads(8).dispatch(reply_with_value);
    let host = host.on_event(move |_| {
        if inside.swap(true, Ordering::SeqCst) {
            count.fetch_add(1, Ordering::SeqCst);
        }
        std::thread::yield_now();
        inside.store(false, Ordering::SeqCst);
    });
    execute(&new_engine(host), "", TALKATIVE).printed();
    assert_eq!(overlaps.load(Ordering::SeqCst), 0);
}

#[test]
fn an_end_that_comes_early_has_its_event_too() {
    let cases = [
        ("import sys; sys.exit(3)", "", "error"),
        ("def", "", "error"),
        (
            "import time; time.sleep(600)",
            r#"{"timeout":0.5}"#,
            "timeout",
        ),
        ("print(1)", r#"{"cwd":"/does/not/exist"}"#, "success"),
    ];
    for (code, options, status) in cases {
        let log = Log::default();
        let engine = new_engine(log.clone().of(Host::new().dispatch(reply_with_value)));
        let ran = execute(&engine, options, code);
        assert_eq!(ran.status(), status);
        let events = log.until_end(1);
        assert_in_order(&events);
        assert_eq!(data(events.last().unwrap())["status"], status);
    }
}

#[test]
fn a_script_that_never_starts_has_an_end_and_no_start() {
    let log = Log::default();
    let host = log.clone().of(Host::new().dispatch(reply_with_value));
    let engine = Engine::new(r#"{"python":"/does/not/exist"}"#, host).unwrap();
    let ran = execute(&engine, r#"{"mode":"strict"}"#, "print(1)");
    assert_eq!(
        (ran.status(), &ran.json["started"]),
        ("error", &json!(false))
    );
    let kinds: Vec<EventKind> = log.until_end(1).iter().map(Event::kind).collect();
    assert_eq!(kinds, [EventKind::End]);
}

// ---- pulling ----

#[test]
fn pulled_events_tell_all_in_order() {
    let engine = new_engine(Host::new());
    let run = engine.start(TALKATIVE, "").unwrap();
    let events = pull(&run, reply_with_value);
    assert_talkative(&events);
    assert_eq!(
        run.wait(Some(Duration::ZERO)).unwrap().unwrap().status(),
        Status::Success
    );
}

#[test]
fn a_pulled_call_is_deferred_by_being_pulled() {
    let engine = new_engine(Host::new());
    let code = "
import hermes_tools
print(hermes_tools.parallel([lambda i=i: hermes_tools.echo(value=i) for i in range(10)]))";
    let run = engine.start(code, "").unwrap();
    let mut calls = Vec::new();
    while calls.len() < 10 {
        let event = run
            .next_event(Some(PATIENCE))
            .unwrap()
            .expect("ten calls come");
        calls.extend(event.call().cloned());
    }
    assert!(state_error(calls[0].defer()).contains("deferred already"));
    assert!(run.wait(Some(Duration::ZERO)).unwrap().is_none());
    let answers = std::thread::spawn(move || calls.iter().rev().for_each(reply_with_value));
    assert_eq!(wait(&run).printed(), numbers(10));
    answers.join().unwrap();
}

#[test]
fn pulling_waits_as_long_as_it_is_told_to() {
    let engine = new_engine(Host::new());
    let gate = Gate::new();
    let (run, _script) = staying(&engine, &gate);
    assert_eq!(
        run.next_event(None).unwrap().unwrap().kind(),
        EventKind::Started
    );
    assert!(run.next_event(Some(Duration::ZERO)).unwrap().is_none());
    let begin = Instant::now();
    assert!(run
        .next_event(Some(Duration::from_millis(50)))
        .unwrap()
        .is_none());
    assert!(begin.elapsed() >= Duration::from_millis(50));
    let puller = {
        let run = run.clone();
        std::thread::spawn(move || run.next_event(None).unwrap().map(|event| event.kind()))
    };
    run.cancel(None);
    assert_eq!(puller.join().unwrap(), Some(EventKind::End));
    assert!(run.next_event(None).unwrap().is_none());
}

#[test]
fn events_are_only_pulled_where_calls_are() {
    let engine = new_engine(Host::new().dispatch(reply_with_value));
    let run = engine.start("print(1)", "").unwrap();
    assert!(state_error(run.next_event(Some(Duration::ZERO))).contains("not pulled here"));
    assert_eq!(wait(&run).printed(), "1\n");
}

#[test]
fn a_call_that_nobody_can_pull_fails_by_name() {
    let engine = new_engine(Host::new());
    let ran = execute(
        &engine,
        "",
        "import hermes_tools\nprint(hermes_tools.echo()['error'])",
    );
    assert!(
        ran.printed().contains("nobody serves this call"),
        "{}",
        ran.output()
    );
}

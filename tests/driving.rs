//! The ways to drive an engine: lent threads, threads of its own, pulled events; and what its handles promise whenever
//! they are used, dropped or closed.

mod support;
#[path = "support/wire.rs"]
mod wire;

use ptc::{Call, Code, Engine, Event, EventKind, Host, Run, Status};
use serde_json::{json, Value};
use std::cell::RefCell;
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{mpsc, Arc, Barrier, Mutex, OnceLock};
use std::thread::{JoinHandle, ThreadId};
use std::time::{Duration, Instant};
use support::*;
use wire::*;

fn config(settings: &str) -> String {
    format!(r#"{{"code_execution":{{"max_tool_calls":1000{settings}}},"tools":[{ECHO}]}}"#)
}

fn new_engine(host: Host) -> Engine {
    Engine::new(&config(""), host).unwrap()
}

fn value_of(call: &Call) -> Value {
    let args: Value = serde_json::from_str(call.args()).expect("arguments are JSON");
    args["value"].clone()
}

fn reply_with_value(call: &Call) {
    call.reply(&value_of(call).to_string()).unwrap();
}

/// A script that prints the answers to calls with 0, 1, … `count` - 1.
fn calls_in_a_row(count: usize) -> String {
    format!("import hermes_tools\nprint([hermes_tools.echo(value=i) for i in range({count})])")
}

fn numbers(count: usize) -> String {
    format!("{:?}\n", (0..count).collect::<Vec<_>>())
}

/// A script that says so at the gate and stays until it is ended.
const STAYS: &str = "
gate.sendall(b'up\\n')
while True:
    gate.recv(1)
";

fn staying(engine: &Engine, gate: &Gate) -> (Run, Visitor) {
    let run = engine
        .start(GATE.to_string() + STAYS, &gate.options(""))
        .unwrap();
    let mut visitor = gate.visitor();
    assert_eq!(visitor.line(), "up");
    (run, visitor)
}

/// Events as they came, and how to wait for some of them.
#[derive(Default, Clone)]
struct Log(Arc<Watched<Vec<Event>>>);

impl Log {
    fn of(self, host: Host) -> Host {
        host.on_event(move |event| self.0.change(|events| events.push(event.clone())))
    }

    /// All events up to the end of `runs` runs.
    fn until_end(&self, runs: usize) -> Vec<Event> {
        let ends =
            |events: &Vec<Event>| events.iter().filter(|e| e.kind() == EventKind::End).count();
        self.0
            .wait(|events| ends(events) == runs, |events| events.clone())
    }
}

fn data(event: &Event) -> Value {
    serde_json::from_slice(event.data()).expect("its data is JSON")
}

/// What one stream's chunks are together.
fn stream_of(events: &[Event], kind: EventKind) -> Vec<u8> {
    let chunks = events.iter().filter(|event| event.kind() == kind);
    chunks.flat_map(|event| event.data().to_vec()).collect()
}

fn state_error<T: std::fmt::Debug>(result: Result<T, ptc::Error>) -> String {
    let error = result.expect_err("it is refused");
    assert_eq!(error.code(), Code::State, "{error}");
    error.to_string()
}

// ---- whose thread ----

fn threads_of_calls(threads: usize, code: &str) -> Vec<(ThreadId, Option<String>)> {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let threads_seen = Arc::clone(&seen);
    let host = Host::new().threads(threads).dispatch(move |call| {
        let thread = std::thread::current();
        let name = thread.name().map(str::to_string);
        threads_seen.lock().unwrap().push((thread.id(), name));
        reply_with_value(call);
    });
    execute(&new_engine(host), "", code).printed();
    let seen = seen.lock().unwrap().clone();
    seen
}

#[test]
fn with_lent_threads_every_callback_runs_on_the_thread_that_waits() {
    let own = std::thread::current().id();
    let threads = threads_of_calls(0, &calls_in_a_row(20));
    assert_eq!(threads.len(), 20);
    assert!(threads.iter().all(|(id, _)| *id == own));
    let events = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&events);
    let host = Host::new().dispatch(reply_with_value);
    let host = host.on_event(move |_| seen.lock().unwrap().push(std::thread::current().id()));
    execute(&new_engine(host), "", calls_in_a_row(3)).printed();
    let events = events.lock().unwrap();
    // The start, the calls and their ends, the output, the end.
    assert!(events.len() >= 9 && events.iter().all(|id| *id == own));
}

#[test]
fn with_engine_threads_no_callback_runs_on_the_thread_that_waits() {
    let own = std::thread::current().id();
    let code = "
import hermes_tools
print(hermes_tools.parallel([lambda i=i: hermes_tools.echo(value=i) for i in range(64)]) == list(range(64)))";
    let threads = threads_of_calls(3, code);
    assert_eq!(threads.len(), 64);
    let distinct: HashSet<_> = threads.iter().map(|(id, _)| *id).collect();
    assert!(distinct.len() <= 3 && !distinct.contains(&own));
    for (_, name) in &threads {
        assert!(
            name.as_deref().is_some_and(|n| n.starts_with("ptc-")),
            "{name:?}"
        );
    }
}

#[test]
fn engine_threads_run_callbacks_at_once_and_lent_ones_one_by_one() {
    let code = "
import hermes_tools
print(len(hermes_tools.parallel([hermes_tools.echo] * 4)))";
    let barrier = Barrier::new(4);
    let host = Host::new().threads(4).dispatch(move |call| {
        // Nobody passes before all four are here.
        barrier.wait();
        call.reply("1").unwrap();
    });
    assert_eq!(execute(&new_engine(host), "", code).printed(), "4\n");
    let inside = AtomicUsize::new(0);
    let host = Host::new().dispatch(move |call| {
        assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
        std::thread::yield_now();
        inside.fetch_sub(1, Ordering::SeqCst);
        call.reply("1").unwrap();
    });
    let ran = execute(&new_engine(host), "", code);
    assert_eq!(ran.of_calls("state"), ["answered"; 4]);
}

#[test]
fn with_lent_threads_calls_wait_for_somebody_who_waits() {
    let gate = Gate::new();
    let host = Host::new().dispatch(reply_with_value);
    let engine = new_engine(host);
    let code = GATE.to_string()
        + "
import hermes_tools
gate.sendall(b'calls\\n')
print(hermes_tools.echo(value=5))";
    let run = engine.start(code, &gate.options("")).unwrap();
    let mut script = gate.visitor();
    script.line();
    assert!(run.wait(Some(Duration::ZERO)).unwrap().is_none());
    // Another thread may come and wait instead, after one has given up.
    let other = run.clone();
    let ran = std::thread::spawn(move || wait(&other)).join().unwrap();
    assert_eq!(ran.printed(), "5\n");
}

#[test]
fn a_run_that_nobody_waits_for_ends_all_the_same() {
    let engine = new_engine(Host::new().dispatch(reply_with_value));
    let gate = Gate::new();
    let run = engine
        .start(GATE.to_string() + "print(1)", &gate.options(""))
        .unwrap();
    gate.visitor().rest();
    assert_eq!(wait(&run).printed(), "1\n");
    let stays = |options: &str| engine.start(GATE.to_string() + STAYS, options).unwrap();
    let (run, script) = gate.visitor_in_time(stays);
    script.rest();
    assert_eq!(wait(&run).status(), "timeout");
}

// ---- deferral ----

fn deferring(threads: usize) -> (Engine, Arc<Watched<Vec<Call>>>) {
    let calls = Arc::new(Watched::new(Vec::new()));
    let deferred = Arc::clone(&calls);
    let host = Host::new().threads(threads).dispatch(move |call| {
        call.defer().unwrap();
        deferred.change(|calls: &mut Vec<Call>| calls.push(call.clone()));
    });
    (new_engine(host), calls)
}

#[test]
fn a_deferred_call_may_be_answered_from_any_thread_in_every_way() {
    for threads in [0, 2] {
        let (engine, calls) = deferring(threads);
        let answers = std::thread::spawn(move || {
            for answer in 0..4 {
                let call = calls.wait(|calls| !calls.is_empty(), |calls| calls.remove(0));
                assert!(call.is_wanted());
                match answer {
                    0 => call.reply("{\"a\": [1, null]}"),
                    1 => call.reply_text("{\"a\": 1}"),
                    2 => call.fail("no \"luck\""),
                    _ => call.reply_text("\0\u{1F600}\n"),
                }
                .unwrap();
                assert!(!call.is_wanted());
            }
        });
        let code = "
import hermes_tools
print([hermes_tools.echo() for _ in range(4)])";
        let ran = execute(&engine, "", code);
        answers.join().unwrap();
        let expected = "[{'a': [1, None]}, '{\"a\": 1}', {'error': 'no \"luck\"'}, '\\x00😀\\n']\n";
        assert_eq!(ran.printed(), expected);
        assert_eq!(
            ran.of_calls("state"),
            ["answered", "answered", "failed", "answered"]
        );
    }
}

#[test]
fn deferred_calls_overlap_on_one_lent_thread() {
    let (engine, calls) = deferring(0);
    let answers = std::thread::spawn(move || {
        let calls = calls.wait(|calls| calls.len() == 16, std::mem::take);
        calls.iter().rev().for_each(reply_with_value);
    });
    let code = "
import hermes_tools
print(hermes_tools.parallel([lambda i=i: hermes_tools.echo(value=i) for i in range(16)]))";
    assert_eq!(execute(&engine, "", code).printed(), numbers(16));
    answers.join().unwrap();
}

#[test]
fn an_answer_may_come_while_dispatch_is_still_under_way() {
    let (send, calls) = mpsc::channel::<(Call, mpsc::Sender<()>)>();
    std::thread::spawn(move || {
        for (call, done) in calls {
            reply_with_value(&call);
            done.send(()).unwrap();
        }
    });
    let send = Mutex::new(send);
    let host = Host::new().dispatch(move |call| {
        let (done, is_done) = mpsc::channel();
        send.lock().unwrap().send((call.clone(), done)).unwrap();
        is_done.recv_timeout(PATIENCE).unwrap();
        state_error(call.defer());
    });
    assert_eq!(
        execute(&new_engine(host), "", calls_in_a_row(5)).printed(),
        numbers(5)
    );
}

#[test]
fn a_dispatch_that_says_nothing_has_failed_the_call_at_once_and_by_name() {
    for threads in [0, 1] {
        let host = Host::new().threads(threads).dispatch(|_| ());
        let code = "import hermes_tools\nprint(hermes_tools.echo(value=1)['error'])";
        let ran = execute(&new_engine(host), "", code);
        assert_eq!(ran.printed(), "dispatch returned without an answer\n");
        assert_eq!(ran.of_calls("state"), ["failed"]);
    }
}

#[test]
fn a_second_answer_changes_nothing_and_is_told_so() {
    let errors = Arc::new(Mutex::new(Vec::new()));
    let said = Arc::clone(&errors);
    let host = Host::new().dispatch(move |call| {
        call.reply("1").unwrap();
        let mut said = said.lock().unwrap();
        said.push(state_error(call.reply("2")));
        said.push(state_error(call.reply_text("2")));
        said.push(state_error(call.fail("2")));
        said.push(state_error(call.defer()));
        // Not even what is wrong with it matters any more.
        said.push(state_error(call.reply("{")));
        assert!(!call.is_wanted());
    });
    let ran = execute(
        &new_engine(host),
        "",
        "import hermes_tools\nprint(hermes_tools.echo())",
    );
    assert_eq!(ran.printed(), "1\n");
    let errors = errors.lock().unwrap();
    assert!(
        errors.iter().all(|e| e.contains("is not open")),
        "{errors:?}"
    );
    for id in [0, u64::MAX] {
        state_error(ptc::reply(id, "1"));
        state_error(ptc::fail(id, "x"));
        state_error(ptc::defer(id));
        assert!(!ptc::is_wanted(id));
    }
}

#[test]
fn deferring_twice_is_refused_and_the_call_stays_open() {
    let host = Host::new().dispatch(|call| {
        call.defer().unwrap();
        assert!(state_error(call.defer()).contains("deferred already"));
        reply_with_value(call);
    });
    assert_eq!(
        execute(&new_engine(host), "", calls_in_a_row(2)).printed(),
        numbers(2)
    );
}

#[test]
fn a_reply_that_is_no_json_is_refused_and_fails_the_call() {
    for bad in ["", "{", "NaN", "1 2", "'a'", "\"\u{1}\""] {
        let refused = Arc::new(Mutex::new(None));
        let told = Arc::clone(&refused);
        let host = Host::new().dispatch(move |call| {
            *told.lock().unwrap() = Some(call.reply(bad).unwrap_err());
        });
        let code = "import hermes_tools\nprint(hermes_tools.echo()['error'])";
        let ran = execute(&new_engine(host), "", code);
        assert!(
            ran.printed().contains("'echo' was not valid JSON"),
            "{bad}: {:#}",
            ran.json
        );
        let error = refused.lock().unwrap().take().unwrap();
        assert_eq!(error.code(), Code::InvalidArgument);
    }
}

#[test]
fn when_a_run_ends_its_open_calls_are_stale_and_their_late_answers_harmless() {
    for threads in [0, 1] {
        let (engine, calls) = deferring(threads);
        let code = "
import hermes_tools, threading, os
for _ in range(3):
    threading.Thread(target=hermes_tools.echo, daemon=True).start()
hermes_tools.echo(value='last')
";
        let run = engine.start(code, "").unwrap();
        let canceller = {
            let (run, calls) = (run.clone(), Arc::clone(&calls));
            std::thread::spawn(move || {
                calls.wait(|calls| calls.len() == 4, |_| ());
                run.cancel(None);
            })
        };
        let ran = wait(&run);
        canceller.join().unwrap();
        assert_eq!(ran.status(), "interrupted");
        assert_eq!(ran.of_calls("state"), ["unanswered"; 4]);
        for call in calls.change(std::mem::take) {
            assert!(!call.is_wanted());
            state_error(call.reply("1"));
            state_error(call.fail("1"));
        }
        // The engine is as good as before.
        assert_eq!(execute(&engine, "", "print(1)").printed(), "1\n");
    }
}

// ---- callbacks that misbehave ----

#[test]
fn a_panic_in_dispatch_fails_its_call_and_nothing_else() {
    for threads in [0, 2] {
        let host = Host::new()
            .threads(threads)
            .dispatch(|call| match value_of(call) {
                Value::String(text) => panic!("no {text}"),
                _ => reply_with_value(call),
            });
        let code = "
import hermes_tools
print(hermes_tools.echo(value='luck')['error'], hermes_tools.echo(value=2))";
        let ran = execute(&new_engine(host), "", code);
        assert_eq!(ran.printed(), "dispatch panicked: no luck 2\n");
        assert_eq!(ran.of_calls("state"), ["failed", "answered"]);
    }
}

#[test]
fn a_panic_after_the_answer_takes_nothing_back() {
    let host = Host::new().dispatch(|call| {
        reply_with_value(call);
        panic!("too late");
    });
    assert_eq!(
        execute(&new_engine(host), "", calls_in_a_row(3)).printed(),
        numbers(3)
    );
}

#[test]
fn a_panic_in_on_event_loses_that_event_and_nothing_else() {
    for threads in [0, 2] {
        let log = Log::default();
        let seen = log.clone();
        let host = Host::new().threads(threads).dispatch(reply_with_value);
        let host = host.on_event(move |event| {
            seen.0.change(|events| events.push(event.clone()));
            assert!(event.kind() == EventKind::End, "every event but the last");
        });
        assert_eq!(
            execute(&new_engine(host), "", calls_in_a_row(3)).printed(),
            numbers(3)
        );
        assert_eq!(
            log.until_end(1)
                .iter()
                .filter(|e| e.kind() == EventKind::CallEnd)
                .count(),
            3
        );
    }
}

#[test]
fn output_and_timeout_never_wait_for_a_callback() {
    for threads in [0, 4] {
        let leave = Arc::new(Watched::new(false));
        let may_leave = Arc::clone(&leave);
        let host = Host::new().threads(threads).dispatch(move |call| {
            reply_with_value(call);
            if value_of(call) == "stay" {
                may_leave.wait(|leave| *leave, |_| ());
            }
        });
        let engine = new_engine(host);
        let gate = Gate::new();
        // More than a pipe holds: the script only goes on if somebody reads while the callback is inside.
        let code = GATE.to_string()
            + "
import hermes_tools
hermes_tools.echo(value='stay')
print('x' * 300_000)
gate.sendall(b'up\\n')
while True:
    gate.recv(1)
";
        let servers = RefCell::new(Vec::new());
        let start = |options: &str| {
            let run = engine.start(&code, options).unwrap();
            let served = run.clone();
            let serve = move || wait(&served).status().to_string();
            servers.borrow_mut().push(std::thread::spawn(serve));
            run
        };
        let has_ended = |_: &Run| servers.borrow().last().is_some_and(JoinHandle::is_finished);
        let (run, script) = gate.visitor_before(start, has_ended);
        script.rest();
        // Somebody else gets the result although the callback is still inside.
        let ran = wait(&run);
        assert_eq!(ran.status(), "timeout");
        assert_eq!(ran.json["stdout_bytes"], 300_001);
        leave.change(|leave| *leave = true);
        for server in servers.take() {
            assert_eq!(server.join().unwrap(), "timeout");
        }
    }
}

// ---- inside of a callback ----

/// An engine that its own callbacks can reach.
fn reflexive(threads: usize, dispatch: fn(&Engine, &Run, &Call)) -> (Engine, Arc<OnceLock<Run>>) {
    let (engine_place, run_place) = (Arc::new(OnceLock::new()), Arc::new(OnceLock::<Run>::new()));
    let (engine_seen, run_seen) = (Arc::clone(&engine_place), Arc::clone(&run_place));
    let host = Host::new().threads(threads).dispatch(move |call| {
        // The script may come to its call before the test has stored the run.
        while run_seen.get().is_none() {
            std::thread::yield_now();
        }
        // Taken, not kept: a callback that owns its engine would keep it from ever being dropped.
        let place: &Mutex<Option<Engine>> = engine_seen.get().unwrap();
        let engine = place.lock().unwrap().clone().unwrap();
        dispatch(&engine, run_seen.get().unwrap(), call);
    });
    let engine = new_engine(host);
    engine_place.set(Mutex::new(Some(engine.clone()))).unwrap();
    (engine, run_place)
}

fn in_dispatch(threads: usize, code: &str, dispatch: fn(&Engine, &Run, &Call)) -> Ran {
    let (engine, place) = reflexive(threads, dispatch);
    let run = engine.start(code, "").unwrap();
    place.set(run.clone()).unwrap();
    let ran = wait(&run);
    // Breaks the circle of host, engine and run.
    engine.close(None).unwrap();
    ran
}

#[test]
fn a_callback_can_neither_wait_for_its_run_nor_close_its_engine() {
    for threads in [0, 2] {
        let ran = in_dispatch(threads, &calls_in_a_row(1), |engine, run, call| {
            assert!(state_error(run.wait(None)).contains("cannot wait for its own run"));
            assert!(state_error(run.wait(Some(Duration::ZERO))).contains("callback"));
            assert!(state_error(engine.close(None)).contains("cannot close its own engine"));
            assert!(state_error(engine.close(Some(Duration::ZERO))).contains("callback"));
            reply_with_value(call);
        });
        assert_eq!(ran.printed(), numbers(1));
    }
}

#[test]
fn a_callback_can_run_another_script_on_the_same_engine() {
    for threads in [0, 2] {
        let ran = in_dispatch(threads, &calls_in_a_row(2), |engine, _, call| {
            let value = value_of(call);
            // The inner script calls as well; its calls have no inner script.
            let inner = match value.as_i64() {
                Some(_) => execute(
                    engine,
                    "",
                    "import hermes_tools\nprint(hermes_tools.echo(value='x'))",
                ),
                None => return call.reply("\"inner\"").unwrap(),
            };
            assert_eq!(inner.printed(), "inner\n");
            call.reply(&value.to_string()).unwrap();
        });
        assert_eq!(ran.printed(), numbers(2));
    }
}

#[test]
fn a_callback_can_cancel_its_run() {
    for threads in [0, 1] {
        let ran = in_dispatch(threads, &calls_in_a_row(1), |_, run, call| {
            run.cancel(Some("the tool said so"));
            // Whether the answer still comes in time is a matter of luck.
            let _ = call.reply("1");
        });
        assert_eq!(ran.status(), "interrupted");
        assert!(
            ran.output()
                .ends_with("[execution interrupted - the tool said so]"),
            "{}",
            ran.output()
        );
    }
}

#[test]
fn the_last_handle_of_an_engine_may_go_inside_of_its_callback() {
    let place = Arc::new(Mutex::new(None::<Engine>));
    let dropped = Arc::new(Watched::new(false));
    struct Flag(Arc<Watched<bool>>);
    impl Drop for Flag {
        fn drop(&mut self) {
            self.0.change(|dropped| *dropped = true);
        }
    }
    let (taken, flag) = (Arc::clone(&place), Flag(Arc::clone(&dropped)));
    let host = Host::new().threads(1).dispatch(move |call| {
        let _ = &flag;
        // The test's own handle goes first: it holds the lock meanwhile.
        let engine = taken.lock().unwrap().take();
        drop(engine);
        let _ = call.reply("1");
    });
    let run = {
        let mut place = place.lock().unwrap();
        let engine = new_engine(host);
        let run = engine.start(
            "import hermes_tools\nhermes_tools.echo()\nimport time\ntime.sleep(600)",
            "",
        );
        *place = Some(engine);
        run.unwrap()
    };
    assert_eq!(wait(&run).status(), "interrupted");
    dropped.wait(|dropped| *dropped, |_| ());
}

// ---- handles ----

#[test]
fn everybody_who_waits_gets_the_same_result() {
    for threads in [0, 2] {
        let engine = new_engine(Host::new().threads(threads).dispatch(reply_with_value));
        let run = engine.start(calls_in_a_row(20), "").unwrap();
        let waiters: Vec<_> = (0..6)
            .map(|_| {
                let run = run.clone();
                std::thread::spawn(move || run.wait(Some(PATIENCE)).unwrap().unwrap())
            })
            .collect();
        let first = run.wait(Some(PATIENCE)).unwrap().unwrap();
        assert_eq!(first.output(), numbers(20));
        for waiter in waiters {
            assert!(Arc::ptr_eq(&first, &waiter.join().unwrap()));
        }
        // Also later, and without time for it.
        assert!(Arc::ptr_eq(
            &first,
            &run.wait(Some(Duration::ZERO)).unwrap().unwrap()
        ));
    }
}

#[test]
fn dropping_the_last_handle_of_a_run_cancels_it() {
    let log = Log::default();
    let engine = new_engine(
        log.clone()
            .of(Host::new().threads(1).dispatch(reply_with_value)),
    );
    let gate = Gate::new();
    let (run, mut script) = staying(&engine, &gate);
    let other = run.clone();
    drop(run);
    assert!(other.wait(Some(Duration::ZERO)).unwrap().is_none());
    script.say("still there?");
    drop(other);
    script.rest();
    let events = log.until_end(1);
    assert_eq!(data(events.last().unwrap())["status"], "interrupted");
}

#[test]
fn dropping_the_engine_cancels_its_runs_and_waits_for_them() {
    let dropped = Arc::new(());
    let kept = Arc::clone(&dropped);
    let host = Host::new()
        .threads(1)
        .dispatch(move |_| drop(Arc::clone(&kept)));
    let engine = new_engine(host);
    let gate = Gate::new();
    let runs: Vec<_> = (0..3).map(|_| staying(&engine, &gate)).collect();
    drop(engine);
    assert_eq!(Arc::strong_count(&dropped), 1, "the host is gone");
    for (run, script) in runs {
        let outcome = run
            .wait(Some(Duration::ZERO))
            .unwrap()
            .expect("it has ended");
        assert_eq!(outcome.status(), Status::Interrupted);
        script.rest();
    }
}

#[test]
fn a_close_without_enough_time_says_so_and_may_be_repeated() {
    let engine = Engine::new(&config(r#","kill_grace":2"#), Host::new()).unwrap();
    let gate = Gate::new();
    let code = GATE.to_string()
        + "
import signal
signal.signal(signal.SIGTERM, lambda *_: gate.sendall(b'no\\n'))
gate.sendall(b'up\\n')
while True:
    signal.pause()
";
    let run = engine.start(code, &gate.options("")).unwrap();
    let mut script = gate.visitor();
    script.line();
    assert!(state_error(engine.close(Some(Duration::ZERO))).contains("close again"));
    assert_eq!(script.line(), "no");
    assert!(state_error(engine.start("print(1)", "")).contains("closed"));
    assert!(state_error(engine.execute("print(1)", "")).contains("closed"));
    engine.close(None).unwrap();
    script.rest();
    let outcome = run
        .wait(Some(Duration::ZERO))
        .unwrap()
        .expect("it has ended");
    assert_eq!(outcome.status(), Status::Interrupted);
    assert!(
        outcome.output().contains("the engine was closed"),
        "{}",
        outcome.output()
    );
    engine.close(Some(Duration::ZERO)).unwrap();
    state_error(engine.start("print(1)", ""));
    // What needs no run still works.
    assert!(engine.definition("text").is_ok());
    run.cancel(None);
}

#[test]
fn a_close_waits_for_callbacks_that_are_under_way() {
    let (entered, leave) = (Arc::new(Watched::new(false)), Arc::new(Watched::new(false)));
    let (inside, may_leave) = (Arc::clone(&entered), Arc::clone(&leave));
    let host = Host::new().threads(1).dispatch(move |call| {
        inside.change(|entered| *entered = true);
        may_leave.wait(|leave| *leave, |_| ());
        state_error(call.reply("1"));
    });
    let engine = new_engine(host);
    let run = engine.start(calls_in_a_row(1), "").unwrap();
    entered.wait(|entered| *entered, |_| ());
    run.cancel(None);
    wait(&run);
    assert!(state_error(engine.close(Some(Duration::from_millis(1))))
        .contains("callbacks have not returned"));
    leave.change(|leave| *leave = true);
    engine.close(None).unwrap();
}

#[test]
fn after_a_close_nothing_is_delivered_any_more() {
    for round in 0..10 {
        let closed = Arc::new(AtomicBool::new(false));
        let late = Arc::new(AtomicUsize::new(0));
        let watch = || {
            let (closed, late) = (Arc::clone(&closed), Arc::clone(&late));
            move || {
                if closed.load(Ordering::SeqCst) {
                    late.fetch_add(1, Ordering::SeqCst);
                }
            }
        };
        let (on_call, on_event) = (watch(), watch());
        let log = Log::default();
        let seen = log.clone();
        let host = Host::new()
            .threads(2)
            .dispatch(move |call| {
                on_call();
                let _ = call.reply("1");
            })
            .on_event(move |event| {
                on_event();
                seen.0.change(|events| events.push(event.clone()));
            });
        let engine = new_engine(host);
        let code = "
import hermes_tools, threading
def work():
    while True:
        hermes_tools.echo()
        print('x' * 100)
for _ in range(3):
    threading.Thread(target=work).start()
";
        let runs: Vec<Run> = (0..2).map(|_| engine.start(code, "").unwrap()).collect();
        // In the thick of it.
        log.0.wait(|events| events.len() > 10 * round, |_| ());
        engine.close(None).unwrap();
        closed.store(true, Ordering::SeqCst);
        for run in &runs {
            assert!(run.wait(Some(Duration::ZERO)).unwrap().is_some());
        }
        assert_eq!(late.load(Ordering::SeqCst), 0);
        // Every call that was begun was also ended before, and every run.
        let events = log.until_end(2);
        let count = |kind| events.iter().filter(|e| e.kind() == kind).count();
        assert!(count(EventKind::Call) <= count(EventKind::CallEnd));
    }
}

#[test]
fn calls_carry_the_context_of_their_run_and_numbers_of_their_own() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&seen);
    let host = Host::new().threads(2).dispatch(move |call| {
        noted.lock().unwrap().push((call.context(), call.id()));
        reply_with_value(call);
    });
    let engine = new_engine(host);
    let runs: Vec<Run> = (1..=3)
        .map(|context| engine.start_with(calls_in_a_row(5), "", context).unwrap())
        .collect();
    runs.iter()
        .for_each(|run| assert_eq!(wait(run).printed(), numbers(5)));
    engine
        .execute_with(calls_in_a_row(5), "", usize::MAX)
        .unwrap();
    engine.execute(calls_in_a_row(5), "").unwrap();
    let seen = seen.lock().unwrap();
    for context in [1, 2, 3, usize::MAX, 0] {
        assert_eq!(seen.iter().filter(|(c, _)| *c == context).count(), 5);
    }
    let ids: HashSet<u64> = seen.iter().map(|(_, id)| *id).collect();
    assert_eq!(ids.len(), 25);
}

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

/// Pulls everything, answering calls with `answer`.
fn pull(run: &Run, answer: impl Fn(&Call)) -> Vec<Event> {
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

// ---- many, and over and over ----

#[test]
fn fifty_runs_at_once_do_not_meet() {
    for threads in [0, 4] {
        let engine = new_engine(Host::new().threads(threads).dispatch(reply_with_value));
        let runs: Vec<_> = (0..50)
            .map(|n| {
                let engine = engine.clone();
                std::thread::spawn(move || {
                    let code =
                        format!("import hermes_tools\nprint({n}, hermes_tools.echo(value={n}))");
                    execute(&engine, "", code).printed().to_string()
                })
            })
            .collect();
        for (n, run) in runs.into_iter().enumerate() {
            assert_eq!(run.join().unwrap(), format!("{n} {n}\n"));
        }
    }
}

#[test]
#[cfg(target_os = "linux")]
fn three_hundred_runs_leave_everything_as_it_was() {
    let temp = TempDir::new();
    let mut command = alone_command("three_hundred_runs_alone", temp.str());
    let output = command.env("TMPDIR", temp.path()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && said.contains("1 passed"),
        "{said}"
    );
    assert_eq!(std::fs::read_dir(temp.path()).unwrap().count(), 0);
}

/// Where no other test makes threads, descriptors and files.
#[test]
#[ignore = "run by another test, in a process of its own"]
#[cfg(target_os = "linux")]
fn three_hundred_runs_alone() {
    let Some(temp) = alone() else { return };
    let count = |dir: &str| std::fs::read_dir(dir).unwrap().count();
    let own = || {
        (
            count("/proc/self/fd"),
            count("/proc/self/task"),
            count(&temp),
        )
    };
    let before = own();
    {
        let engine = new_engine(Host::new().threads(2).dispatch(reply_with_value));
        let one = |i: usize| {
            let (code, options) = match i % 5 {
                0 => (calls_in_a_row(3), ""),
                1 => ("raise ValueError".into(), ""),
                2 => ("import time; time.sleep(600)".into(), r#"{"timeout":0.05}"#),
                3 => ("import os; os.kill(os.getpid(), 9)".into(), ""),
                _ => (
                    "import subprocess; subprocess.Popen(['sleep', '600'])".into(),
                    "",
                ),
            };
            execute(&engine, options, code);
        };
        // Threads stay for the next run, so it takes a few before all are there.
        (0..20).for_each(one);
        let warm = own();
        (0..300).for_each(one);
        let after = own();
        // The thread of the last run may still hold what it is about to give back.
        assert!(
            after.0 <= warm.0 + 4,
            "descriptors: {} after {}",
            after.0,
            warm.0
        );
        assert!(
            after.1 <= warm.1 + 2,
            "threads: {} after {}",
            after.1,
            warm.1
        );
        assert_eq!(after.2, 0);
    }
    assert_eq!(own(), before);
}

// ---- cancelling ----

/// Of a run that was stopped perhaps before there was anything of it.
fn assert_nothing_left(ran: &Ran) {
    if ran.json["started"] != false {
        ran.assert_nothing_survived();
    }
}

#[test]
fn a_run_may_be_cancelled_before_it_has_started() {
    let engine = new_engine(Host::new());
    for _ in 0..20 {
        let run = engine.start("while True: pass", "").unwrap();
        run.cancel(Some("never mind"));
        let ran = wait(&run);
        assert_eq!(ran.status(), "interrupted");
        assert!(
            ran.output()
                .ends_with("[execution interrupted - never mind]"),
            "{}",
            ran.output()
        );
        assert_nothing_left(&ran);
        let events = pull(&run, |_| ());
        assert_eq!(events.last().map(Event::kind), Some(EventKind::End));
    }
}

#[test]
fn the_first_cancel_counts_and_a_later_one_changes_nothing() {
    let engine = new_engine(Host::new());
    let gate = Gate::new();
    let (run, script) = staying(&engine, &gate);
    run.cancel(Some("first"));
    run.cancel(Some("second"));
    run.cancel(None);
    let ran = wait(&run);
    script.rest();
    assert!(
        ran.output().ends_with("[execution interrupted - first]"),
        "{}",
        ran.output()
    );
    run.cancel(Some("third"));
    assert_eq!(wait(&run).json, ran.json);
}

#[test]
fn a_cancel_during_the_grace_of_a_timeout_does_not_change_the_cause() {
    let engine = Engine::new(&config(r#","kill_grace":1"#), Host::new()).unwrap();
    let gate = Gate::new();
    let code = GATE.to_string()
        + "
import signal
signal.signal(signal.SIGTERM, lambda *_: gate.sendall(b'term\\n'))
gate.sendall(b'up\\n')
while True:
    signal.pause()
";
    let (run, mut script) = gate.visitor_in_time(|options| engine.start(&code, options).unwrap());
    assert_eq!(script.line(), "term");
    run.cancel(Some("too late"));
    let ran = wait(&run);
    assert_eq!(ran.status(), "timeout");
    assert!(
        ran.output().ends_with("s and was killed."),
        "{}",
        ran.output()
    );
}

#[test]
fn a_cancel_may_race_the_natural_end() {
    let engine = new_engine(Host::new().threads(1).dispatch(reply_with_value));
    // How long such a run takes here, so that the moments lie around its end.
    let begin = Instant::now();
    let code = calls_in_a_row(2);
    execute(&engine, "", &code);
    let whole = begin.elapsed().max(Duration::from_millis(2));
    let mut ends = HashSet::new();
    let mut random = 0x9E37_79B9_7F4A_7C15_u64;
    for _ in 0..100 {
        // A generator of Marsaglia's: the moments differ and yet every failure can be repeated.
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let moment = whole.mul_f64((random % 1000) as f64 / 700.0);
        let run = engine.start(&code, "").unwrap();
        let early = run.wait(Some(moment)).unwrap();
        run.cancel(None);
        let ran = wait(&run);
        assert_nothing_left(&ran);
        match ran.status() {
            "success" => assert_eq!(ran.output(), numbers(2)),
            status => {
                assert_eq!(status, "interrupted");
                assert!(early.is_none(), "it had ended with {early:?}");
                let notice = "[execution interrupted - user sent a new message]";
                assert!(ran.output().ends_with(notice), "{}", ran.output());
            }
        }
        ends.insert(ran.status().to_string());
    }
    assert!(
        ends.contains("interrupted"),
        "no moment was early enough to mean anything"
    );
}

//! The threads on which callbacks run, what a callback may do and fail to do, and answers that come later.

#[path = "support/drive.rs"]
mod drive;
mod support;
#[path = "support/wire.rs"]
mod wire;

use drive::*;
use ptc::{Call, Code, Engine, EventKind, Host, Run};
use serde_json::Value;
use std::cell::RefCell;
use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{mpsc, Arc, Barrier, Mutex, OnceLock};
use std::thread::{JoinHandle, ThreadId};
use std::time::Duration;
use support::*;
use wire::*;

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

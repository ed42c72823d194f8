//! What the handles of engines and runs promise whenever they are used, dropped or closed, and by how many at once.

#[path = "support/drive.rs"]
mod drive;
mod support;
#[path = "support/wire.rs"]
mod wire;

use drive::*;
use ptc::{Engine, Event, EventKind, Host, Run, Status};
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use support::*;
use wire::*;

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
    for _ in 0..500 {
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

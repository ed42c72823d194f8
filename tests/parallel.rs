//! Calls that come many at once: from threads, processes and event loops of the script.

mod support;
#[path = "support/wire.rs"]
mod wire;

use ptc::{Engine, Host};
use serde_json::{json, Value};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use support::*;
use wire::*;

// ---- many at once ----

/// Runs 32 calls at once and gives how many of them were in flight together; none goes on before that many are.
fn peak_of_calls(limit: usize) -> usize {
    #[derive(Default)]
    struct Flight {
        now: usize,
        peak: usize,
    }
    let flight = Arc::new(Watched::new(Flight::default()));
    let inside = Arc::clone(&flight);
    let dispatch = move |call: &ptc::Call| {
        inside.change(|flight| {
            flight.now += 1;
            flight.peak = flight.peak.max(flight.now);
        });
        inside.wait(|flight| flight.peak >= limit, |_| ());
        // Nothing waits for this: one that came too many would come meanwhile.
        std::thread::sleep(Duration::from_millis(5));
        // Out before the answer, which lets the next one in.
        inside.change(|flight| flight.now -= 1);
        let args: Value = serde_json::from_str(call.args()).unwrap();
        call.reply(&args["value"].to_string()).unwrap();
    };
    let host = Host::new().dispatch(dispatch).threads(40);
    let engine = Engine::new(
        &echo_config(&format!(r#","max_parallel_calls":{limit}"#)),
        host,
    )
    .unwrap();
    let code = "
import hermes_tools, threading
answers = [None] * 32
def call(i):
    answers[i] = hermes_tools.echo(value=i)
threads = [threading.Thread(target=call, args=(i,)) for i in range(32)]
for t in threads: t.start()
for t in threads: t.join()
print(answers == list(range(32)))
";
    let ran = execute(&engine, "", code);
    assert_eq!(ran.printed(), "True\n");
    assert_eq!(ran.json["tool_calls_made"], 32);
    flight.change(|flight| flight.peak)
}

#[test]
fn as_many_calls_as_are_allowed_run_at_once_and_the_others_follow() {
    for limit in [1, 2, 16, 32] {
        assert_eq!(peak_of_calls(limit), limit);
    }
}

#[test]
fn deferred_calls_count_until_they_are_answered() {
    let open = Arc::new(Watched::new(Vec::new()));
    let deferred = Arc::clone(&open);
    let dispatch = move |call: &ptc::Call| {
        call.defer().unwrap();
        deferred.change(|calls: &mut Vec<ptc::Call>| calls.push(call.clone()));
    };
    let host = Host::new().dispatch(dispatch).threads(2);
    let talk = Talk::new(&echo_config(r#","max_parallel_calls":3"#), host);
    let mut client = talk.client();
    client.send(
        (0..10)
            .map(|i| request(&i.to_string(), "1"))
            .collect::<String>(),
    );
    for answered in 0..10 {
        // Three are open until fewer are left; the fourth comes when one of them has been answered.
        let expected = 3.min(10 - answered);
        let call = open.wait(|calls| calls.len() == expected, |calls| calls.remove(0));
        call.reply("1").unwrap();
        client.answer();
    }
    talk.end();
}

#[test]
fn a_tool_that_is_not_parallel_is_never_entered_twice() {
    let now = Arc::new(AtomicUsize::new(0));
    let inside = Arc::clone(&now);
    let dispatch = move |call: &ptc::Call| {
        let others = inside.fetch_add(1, Ordering::SeqCst);
        std::thread::yield_now();
        inside.fetch_sub(1, Ordering::SeqCst);
        call.reply(&others.to_string()).unwrap();
    };
    let tool = r#"{"name":"lonely","parallel":false,"input_schema":{"type":"object"}}"#;
    let config = format!(r#"{{"code_execution":{{"max_tool_calls":1000}},"tools":[{tool}]}}"#);
    let engine = Engine::new(&config, Host::new().dispatch(dispatch).threads(8)).unwrap();
    let code = "
import hermes_tools
print(sum(hermes_tools.parallel([hermes_tools.lonely] * 200)))
";
    assert_eq!(execute(&engine, "", code).printed(), "0\n");
}

/// Answers after a random moment each, from another thread, so that they overtake each other.
fn overtaking() -> Host {
    let (send, calls) = std::sync::mpsc::channel::<ptc::Call>();
    std::thread::spawn(move || {
        let mut held: Vec<ptc::Call> = Vec::new();
        let answer = |call: ptc::Call| {
            let args: Value = serde_json::from_str(call.args()).unwrap();
            let _ = call.reply(&json!({ "for": args["value"] }).to_string());
        };
        while let Ok(call) = calls.recv() {
            held.push(call);
            held.extend(calls.try_iter());
            held.drain(..).rev().for_each(answer);
        }
    });
    let send = Mutex::new(send);
    let dispatch = move |call: &ptc::Call| {
        call.defer().unwrap();
        send.lock().unwrap().send(call.clone()).unwrap();
    };
    Host::new().dispatch(dispatch).threads(2)
}

fn each_answer_meets_its_question(code: &str, calls: usize) {
    let engine = Engine::new(&echo_config(r#","max_parallel_calls":32"#), overtaking()).unwrap();
    let ran = execute(&engine, "", code);
    assert_eq!(ran.printed(), "0 wrong\n");
    assert_eq!(ran.json["tool_calls_made"], calls);
}

#[test]
fn a_thousand_calls_of_thirty_two_threads_get_their_own_answers() {
    let code = "
import hermes_tools, threading
wrong = []
def work(me):
    for i in range(32):
        value = [me, i, 'x' * (me * i)]
        if hermes_tools.echo(value=value) != {'for': value}:
            wrong.append(value)
threads = [threading.Thread(target=work, args=(i,)) for i in range(32)]
for t in threads: t.start()
for t in threads: t.join()
print(len(wrong), 'wrong')
";
    each_answer_meets_its_question(code, 1024);
}

#[test]
fn forked_children_get_their_own_answers() {
    // The parent has a connection already when it forks, which the children must not use.
    let code = "
import hermes_tools, multiprocessing
def work(me):
    return sum(hermes_tools.echo(value=[me, i]) != {'for': [me, i]} for i in range(50))
wrong = work('parent')
context = multiprocessing.get_context('fork')
with context.Pool(8) as pool:
    wrong += sum(pool.map(work, range(8), chunksize=1))
wrong += work('parent')
print(wrong, 'wrong')
";
    each_answer_meets_its_question(code, 500);
}

#[test]
fn spawned_interpreters_may_import_the_module_and_call() {
    let code = "
import hermes_tools, subprocess, sys
child = '''
import hermes_tools, sys
for i in range(10):
    value = [sys.argv[1], i]
    assert hermes_tools.echo(value=value) == {'for': value}
'''
children = [subprocess.Popen([sys.executable, '-c', child, str(n)]) for n in range(4)]
assert hermes_tools.echo(value='parent') == {'for': 'parent'}
print(sum(c.wait() for c in children), 'wrong')
";
    each_answer_meets_its_question(code, 41);
}

#[test]
fn gathered_calls_get_their_own_answers() {
    let code = "
import asyncio
from hermes_tools import aio
async def one(i):
    return await aio.echo(value=i) != {'for': i}
async def main():
    return await asyncio.gather(*[one(i) for i in range(200)])
print(sum(asyncio.run(main())), 'wrong')
";
    each_answer_meets_its_question(code, 200);
}

#[test]
fn gathered_calls_are_really_parallel() {
    let open = Arc::new(Watched::new(Vec::new()));
    let deferred = Arc::clone(&open);
    let dispatch = move |call: &ptc::Call| {
        call.defer().unwrap();
        deferred.change(|calls: &mut Vec<ptc::Call>| calls.push(call.clone()));
    };
    let engine = Engine::new(&echo_config(""), Host::new().dispatch(dispatch).threads(1)).unwrap();
    let code = "
from hermes_tools import aio
import asyncio
print(await asyncio.gather(*[aio.echo(value=i) for i in range(10)]))
";
    let run = engine.start(code, "").unwrap();
    // None is answered before all ten are there.
    for call in open.wait(|calls| calls.len() == 10, std::mem::take) {
        call.reply("1").unwrap();
    }
    assert_eq!(wait(&run).printed(), "[1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n");
}

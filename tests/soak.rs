//! Thousands of short runs in one process: nothing piles up. `cargo test --release --test soak -- --ignored --nocapture`
//! makes 5,000 and prints what the README shows; `PTC_SOAK_RUNS` is another number.
#![cfg(target_os = "linux")]

use ptc::{Engine, Host, Status};
use std::fs;

const CONFIG: &str = r#"{
    "code_execution": {"kill_grace": 0.2},
    "tools": [{"name": "echo", "description": "", "input_schema": {"type": "object", "properties": {"text": {}}}}]
}"#;

/// What may pile up in a host.
#[derive(Debug, Clone, Copy)]
struct Load {
    descriptors: usize,
    threads: usize,
    /// Zombies included.
    children: usize,
    resident_kib: usize,
}

impl Load {
    fn now() -> Load {
        let own = std::process::id().to_string();
        let stats =
            entries("/proc").filter_map(|pid| fs::read_to_string(format!("/proc/{pid}/stat")).ok());
        let is_child = |stat: &String| {
            let parent = stat
                .rsplit(')')
                .next()
                .and_then(|rest| rest.split_whitespace().nth(1));
            parent == Some(own.as_str())
        };
        Load {
            descriptors: entries("/proc/self/fd").count(),
            threads: entries("/proc/self/task").count(),
            children: stats.filter(is_child).count(),
            resident_kib: resident_kib(),
        }
    }
}

fn entries(path: &str) -> impl Iterator<Item = String> {
    let names = fs::read_dir(path).unwrap();
    names.filter_map(|entry| entry.ok()?.file_name().into_string().ok())
}

fn resident_kib() -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// One run of each kind in turn, and how it has to end.
fn one(engine: &Engine, number: usize) {
    let (code, options, expected) = match number % 6 {
        0 => ("print(1)", "", Status::Success),
        1 => (
            "from hermes_tools import echo\nfor n in range(5): echo(text=n)",
            "",
            Status::Success,
        ),
        2 => ("1/0", "", Status::Error),
        3 => ("import os; os.kill(os.getpid(), 9)", "", Status::Error),
        4 => (
            "import subprocess; subprocess.Popen(['sleep', '1000'])",
            "",
            Status::Success,
        ),
        _ => ("while True: pass", r#"{"timeout": 0.02}"#, Status::Timeout),
    };
    let outcome = engine.execute(code, options).unwrap();
    assert_eq!(
        outcome.status(),
        expected,
        "run {number}: {}",
        outcome.json()
    );
}

fn soak(runs: usize, warm_up: usize) -> (Load, Load) {
    let host = Host::new().dispatch(|call| call.reply(call.args()).unwrap());
    let engine = Engine::new(CONFIG, host).unwrap();
    (0..warm_up).for_each(|number| one(&engine, number));
    let before = Load::now();
    (warm_up..runs).for_each(|number| one(&engine, number));
    (before, Load::now())
}

fn assert_flat(before: Load, after: Load) {
    let both = format!("{before:?} {after:?}");
    assert_eq!(after.children, 0, "{both}");
    // The last run gives its own back a moment after its result; what leaks does so at every run.
    assert!(after.descriptors < before.descriptors + 10, "{both}");
    assert_eq!(after.threads, before.threads, "{both}");
    // An allocator's own ups and downs, and nothing that grows by the run.
    assert!(after.resident_kib < before.resident_kib + 1024, "{both}");
}

#[test]
fn two_hundred_runs_leave_nothing_behind() {
    let (before, after) = soak(240, 40);
    assert_flat(before, after);
}

#[test]
#[ignore = "takes minutes; see the head of this file"]
fn five_thousand_runs_leave_nothing_behind() {
    let runs = std::env::var("PTC_SOAK_RUNS").map_or(5000, |n| n.parse().unwrap());
    let (before, after) = soak(runs, 500);
    println!("after 500 runs: {before:?}\nafter {runs} runs: {after:?}");
    assert_flat(before, after);
}

//! `ptc run --trace`: a timeline that can be read whatever happened, and the line on a terminal while a script runs.

#[path = "support/cli.rs"]
mod cli;

use cli::{expect_line, ptc, run, send, start, text, Folder};
use serde_json::Value;
use std::io::BufReader;
use std::process::{Command, Stdio};

fn events(path: &str) -> Vec<Value> {
    let trace: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let events = trace["traceEvents"].as_array().unwrap().clone();
    for event in &events {
        assert!(
            event["name"].is_string() && event["ph"].is_string(),
            "{event}"
        );
        assert!(event["pid"].is_u64() && event["tid"].is_u64(), "{event}");
        if event["ph"] == "X" {
            assert!(event["ts"].is_u64() && event["dur"].is_u64(), "{event}");
        }
    }
    events
}

fn of_category<'a>(events: &'a [Value], category: &str) -> Vec<&'a Value> {
    events.iter().filter(|e| e["cat"] == category).collect()
}

fn span(event: &Value) -> (u64, u64) {
    let from = event["ts"].as_u64().unwrap();
    (from, from + event["dur"].as_u64().unwrap())
}

#[test]
fn a_run_is_told_from_its_start_to_its_end() {
    let folder = Folder::new();
    let (meeting, trace) = (folder.0.to_str().unwrap(), folder.path("trace.json"));
    // Two that wait for each other overlap.
    let command = format!(
        "read line; case $line in *1*) me=1 you=2;; *) me=2 you=1;; esac; touch {meeting}/$me; \
         while [ ! -e {meeting}/$you ]; do sleep 0.01; done; echo $me"
    );
    let code = "import sys\nfrom hermes_tools import meet, bad, parallel\n\
        print(parallel([lambda: meet(n=1), lambda: meet(n=2)]))\nprint(bad()['error'], file=sys.stderr)\n";
    let tools = ["--tool", &format!("meet={command}"), "--tool", "bad=exit 3"];
    let output = run(code, &[&tools[..], &["--trace", &trace]].concat());
    assert_eq!(text(&output.stdout), "[1, 2]\n");
    let events = events(&trace);

    let scripts = of_category(&events, "script");
    let [script] = scripts[..] else {
        panic!("{scripts:?}");
    };
    assert_eq!(
        (&script["ph"], &script["args"]["status"]),
        (&"X".into(), &"success".into())
    );
    let (began, ended) = span(script);

    let calls = of_category(&events, "call");
    let told = |key: &str| -> Vec<&str> {
        calls
            .iter()
            .map(|c| c["args"][key].as_str().unwrap())
            .collect()
    };
    assert_eq!(told("tool"), ["meet", "meet", "bad"]);
    assert_eq!(told("state"), ["answered", "answered", "failed"]);
    let mut previews = told("args_preview");
    previews.sort();
    assert_eq!(previews, ["{\"n\":1}", "{\"n\":2}", "{}"]);
    for call in &calls {
        assert_eq!(
            (&call["ph"], &call["name"]),
            (&"X".into(), &call["args"]["tool"])
        );
        let (from, to) = span(call);
        assert!(began <= from && to <= ended, "{script} {call}");
    }
    let (first, second) = (span(calls[0]), span(calls[1]));
    assert!(first.0 < second.1 && second.0 < first.1, "they met");
    assert_ne!(calls[0]["tid"], calls[1]["tid"]);
    assert_ne!(calls[0]["tid"], script["tid"]);

    let chunks = of_category(&events, "output");
    assert!(chunks.iter().all(|chunk| chunk["ph"] == "i"));
    let of = |name: &str| -> String {
        let chunks = chunks.iter().filter(|chunk| chunk["name"] == name);
        chunks
            .map(|chunk| chunk["args"]["text"].as_str().unwrap())
            .collect()
    };
    assert_eq!(of("stdout"), "[1, 2]\n");
    assert_eq!(of("stderr"), "'bad' ended with exit code 3\n");
}

#[test]
fn spans_of_one_lane_never_overlap() {
    let folder = Folder::new();
    let trace = folder.path("trace.json");
    let code =
        "from hermes_tools import nap, parallel\nprint(len(parallel([lambda: nap()] * 40)))\n";
    let tool = "nap=sleep 0.0$(( $$ % 5 ))";
    let output = run(
        code,
        &["--tool", tool, "--trace", &trace, "--max-tool-calls", "30"],
    );
    assert_eq!(text(&output.stderr), "");
    let events = events(&trace);
    let calls = of_category(&events, "call");
    // Those that were refused never began.
    assert_eq!(calls.len(), 30);
    let mut lanes: Vec<u64> = calls.iter().map(|c| c["tid"].as_u64().unwrap()).collect();
    lanes.sort();
    lanes.dedup();
    for lane in &lanes {
        let on_lane = calls.iter().filter(|call| call["tid"] == *lane);
        let mut spans: Vec<(u64, u64)> = on_lane.map(|call| span(call)).collect();
        spans.sort();
        for pair in spans.windows(2) {
            assert!(pair[0].1 <= pair[1].0, "lane {lane}: {spans:?}");
        }
        let is_name = |e: &&Value| e["name"] == "thread_name" && e["tid"] == *lane;
        assert_eq!(events.iter().filter(is_name).count(), 1);
    }
}

#[test]
fn a_run_that_is_stopped_has_a_whole_timeline() {
    let folder = Folder::new();
    let trace = folder.path("trace.json");
    let code = "from hermes_tools import hold\nprint('ready')\nhold()\n";
    let hold = ["--tool", "hold=exec sleep 1000", "--trace", &trace];
    let output = run(code, &[&hold[..], &["--timeout", "4"]].concat());
    assert_eq!(output.status.code(), Some(124));
    let stopped = |status: &str| {
        let events = events(&trace);
        assert_eq!(of_category(&events, "script")[0]["args"]["status"], status);
        assert_eq!(
            of_category(&events, "call")[0]["args"]["state"],
            "unanswered"
        );
    };
    stopped("timeout");
    let held = folder.path("held");
    let hold = format!("hold=mkfifo {held}; cat {held}; exec sleep 1000");
    let child = start(code, &["--tool", &hold, "--trace", &trace]);
    // Opens when the tool is there to read it.
    wait_for(&held);
    drop(std::fs::OpenOptions::new().write(true).open(&held).unwrap());
    send("-INT", &child);
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(130));
    stopped("interrupted");
}

fn wait_for(path: &str) {
    let began = std::time::Instant::now();
    while !std::path::Path::new(path).exists() {
        assert!(began.elapsed().as_secs() < 120, "{path} does not come");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

#[test]
fn a_command_that_is_killed_leaves_a_file_that_can_be_read() {
    let folder = Folder::new();
    let trace = folder.write("trace.json", &"what was there before ".repeat(1000));
    let code = "import time\nfrom hermes_tools import echo\nprint(echo(a=1))\ntime.sleep(1000)\n";
    let mut child = start(code, &["--tool", "echo=cat", "--trace", &trace]);
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    expect_line(&mut stdout, "{'a': 1}");
    send("-KILL", &child);
    child.wait().unwrap();
    let events = events(&trace);
    assert_eq!(of_category(&events, "output").len(), 1);
    assert_eq!(of_category(&events, "call").len(), 1);
    assert!(of_category(&events, "script").is_empty());
}

#[test]
fn a_script_that_cannot_start_has_a_timeline_too() {
    let folder = Folder::new();
    let trace = folder.path("trace.json");
    let output = run("print(1)", &["--trace", &trace, "--python", "/no/such"]);
    assert_eq!(output.status.code(), Some(1));
    let events = events(&trace);
    let script = of_category(&events, "script")[0];
    assert!(script["args"]["error"]
        .as_str()
        .unwrap()
        .contains("/no/such"));
}

#[test]
fn a_pipe_gets_its_events_in_order_and_whole() {
    let folder = Folder::new();
    let fifo = folder.path("fifo");
    assert!(Command::new("mkfifo")
        .arg(&fifo)
        .status()
        .unwrap()
        .success());
    let child = start("print(1)", &["--trace", &fifo]);
    let events = events(&fifo);
    assert_eq!(of_category(&events, "script").len(), 1);
    assert_eq!(of_category(&events, "output").len(), 1);
    assert!(child.wait_with_output().unwrap().status.success());
}

#[test]
fn a_trace_that_cannot_be_written_is_said() {
    let full = std::path::Path::new("/dev/full").exists();
    for (path, is_there) in [("/no/such/folder/trace", true), ("/dev/full", full)] {
        if is_there {
            let output = run("print(1)", &["--trace", path]);
            assert_eq!(output.status.code(), Some(2));
            let expected = format!("ptc: cannot write {path}: ");
            assert!(text(&output.stderr).starts_with(&expected));
            assert_eq!(text(&output.stdout), "");
        }
    }
}

/// Runs the command with standard output and standard error on a terminal, makes the file `seen` once `awaited` has been
/// shown, and prints all that was.
const TERMINAL: &str = r#"
import os, subprocess, sys
seen, awaited, *command = sys.argv[1:]
ours, theirs = os.openpty()
child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs)
os.close(theirs)
shown = b""
while True:
    try:
        chunk = os.read(ours, 65536)
    except OSError:
        break
    if not chunk:
        break
    shown += chunk
    if awaited.encode() in shown:
        open(seen, "w").close()
child.wait()
sys.stdout.buffer.write(shown)
"#;

/// What a terminal shows of a script that calls a tool, which returns when `awaited` is on the screen.
fn on_terminal(code: &str, awaited: &str, environment: &[(&str, &str)]) -> String {
    let folder = Folder::new();
    let (script, seen) = (folder.write("s.py", code), folder.path("seen"));
    let tool = format!("hold=while [ ! -e {seen} ]; do sleep 0.01; done");
    let output = Command::new("python3")
        .args(["-c", TERMINAL, &seen, awaited])
        .args([env!("CARGO_BIN_EXE_ptc"), "run", &script, "--tool", &tool])
        .env_remove("NO_COLOR")
        .env("TERM", "xterm")
        .envs(environment.iter().copied())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout).replace("\r\n", "\n")
}

const HOLD: &str = "from hermes_tools import hold\nhold()\nprint('done')\n";

#[test]
fn a_terminal_shows_how_the_run_is_getting_on_and_then_only_its_output() {
    let shown = on_terminal(HOLD, "hold in flight", &[]);
    assert!(
        shown.contains(" s, 0 calls answered, hold in flight"),
        "{shown:?}"
    );
    // Erased before the output is written, and not there at the end.
    let (before, after) = shown.split_once("done\n").unwrap();
    assert!(before.ends_with("\r\x1b[K"), "{shown:?}");
    let last = after
        .rsplit_once("\r\x1b[K")
        .map_or(after, |(_, last)| last);
    assert_eq!(last, "", "{shown:?}");
    assert!(shown.contains("\x1b[2m"), "{shown:?}");
}

#[test]
fn no_colour_is_no_colour_and_a_dumb_terminal_gets_output_alone() {
    let shown = on_terminal(HOLD, "hold in flight", &[("NO_COLOR", "1")]);
    assert!(
        !shown.contains("\x1b[2m") && !shown.contains("\x1b[0m"),
        "{shown:?}"
    );
    let code = "print('first')\n".to_string() + HOLD;
    for term in ["dumb", ""] {
        assert_eq!(
            on_terminal(&code, "first", &[("TERM", term)]),
            "first\ndone\n"
        );
    }
}

#[test]
fn a_line_that_the_script_has_begun_is_left_alone() {
    // Long enough for a few ticks; there is nothing to wait for where nothing is to happen.
    let code = "import sys, time\nsys.stdout.write('begun')\nsys.stdout.flush()\ntime.sleep(1)\nprint(' and done')\n";
    let shown = on_terminal(code, "begun", &[]);
    let (_, rest) = shown.split_once("begun").unwrap();
    let (between, _) = rest.split_once(" and done\n").unwrap();
    assert_eq!(between, "", "{shown:?}");
}

#[test]
fn whoever_is_no_terminal_sees_nothing_of_it() {
    let folder = Folder::new();
    let script = folder.write("s.py", "import time\ntime.sleep(1)\nprint(1)\n");
    let output = ptc(&["run", &script])
        .env("TERM", "xterm")
        .output()
        .unwrap();
    assert_eq!((text(&output.stdout), text(&output.stderr)), ("1\n", ""));
}

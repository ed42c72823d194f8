//! How a server ends: with its input, by a signal, without anybody to listen.

use super::client::*;
use super::support::TempDir;
use super::{FOR_EVER, STUBBORN};
use serde_json::{json, Value};
use std::io::{BufRead, BufReader, Write};

#[test]
fn scripts_end_with_the_session_however_it_ends() {
    for how in ["end of input", "-TERM", "-INT"] {
        let mut client = Client::speaking(NEWEST, &["--builtin", "terminal"]);
        let (mut one, mut other) = (Beacon::new(), Beacon::new());
        client.call(&one.script_after(STUBBORN, FOR_EVER));
        let leaver =
            "import subprocess\nsubprocess.Popen(['sleep', '1000'], pass_fds=[pipe.fileno()])\n";
        client.call(&other.script(&format!("{leaver}{FOR_EVER}")));
        one.wait_for_begin();
        other.wait_for_begin();
        // A client that listens hears of its requests; one that has closed its side would break over them.
        let (ended, answers) = match how {
            "end of input" => (client.end(), 0),
            signal => (client.end_by(signal), 2),
        };
        ended.assert_well();
        assert_eq!(ended.rest.len(), answers, "{how}: {:?}", ended.rest);
        for answer in &ended.rest {
            let status = &answer["result"]["structuredContent"]["status"];
            assert_eq!(status, "interrupted", "{how}: {answer}");
        }
        one.wait_for_end();
        other.wait_for_end();
    }
}

#[test]
fn a_session_that_never_began_ends_as_well() {
    Client::start(&[]).end().assert_quiet();
}

#[test]
fn a_client_that_hears_nothing_any_more_ends_it_quietly() {
    let mut beacon = Beacon::new();
    let mut child = ptc_mcp(&[]).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut say = |id: u64, method: &str, params: Value| {
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        writeln!(stdin, "{message}").unwrap();
    };
    say(1, "initialize", initialize(NEWEST));
    say(2, "tools/call", script(&beacon.script(FOR_EVER)));
    beacon.wait_for_begin();
    drop(child.stdout.take());
    say(3, "ping", json!({}));
    beacon.wait_for_end();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{:?}", output.status);
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

#[test]
fn a_client_that_does_not_read_cannot_keep_it() {
    for by_signal in [false, true] {
        let mut child = ptc_mcp(&[]).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": initialize(NEWEST)});
        writeln!(stdin, "{hello}").unwrap();
        // Not with a buffer that would read ahead, and never again.
        let mut stdout = BufReader::with_capacity(1, child.stdout.take().unwrap());
        stdout.read_until(b'\n', &mut Vec::new()).unwrap();
        let ping = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n";
        if by_signal {
            // As many as it takes until the server waits for its client, and longer.
            let pings =
                std::thread::spawn(move || while stdin.write_all(ping.as_bytes()).is_ok() {});
            send("-TERM", &child);
            assert!(child.wait().unwrap().success());
            pings.join().unwrap();
        } else {
            // More than a pipe holds.
            stdin.write_all(ping.repeat(5000).as_bytes()).unwrap();
            drop(stdin);
            assert!(child.wait().unwrap().success());
        }
    }
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let config = TempDir::new();
    let patient = config.write("c.json", r#"{"code_execution":{"kill_grace":600}}"#);
    let mut client = Client::speaking(NEWEST, &["--config", patient.to_str().unwrap()]);
    let mut beacon = Beacon::new();
    let telling = "signal.signal(signal.SIGTERM, lambda *a: os.write(pipe.fileno(), b'told\\n'))";
    client.call(&beacon.script_after(telling, FOR_EVER));
    beacon.wait_for_begin();
    send("-TERM", &client.child);
    beacon.expect("told");
    send("-TERM", &client.child);
    let status = client.child.wait().unwrap();
    assert_eq!(status.code(), Some(130));
    beacon.wait_for_end();
}

//! Calls of the tool: results, cancellation, progress.

use super::client::*;
use super::{FOR_EVER, INVALID_PARAMS, INVALID_REQUEST, STUBBORN};
use serde_json::{json, Value};
use std::time::Instant;

#[test]
fn a_script_calls_built_in_and_command_tools() {
    let args = ["--builtin", "all", "--tool", "shout=tr a-z A-Z"];
    let mut client = Client::speaking(NEWEST, &args);
    let code = "from hermes_tools import shout, terminal\n\
                print(shout(a='x'), terminal('echo hello')['output'].strip())";
    let result = client.run(code);
    assert_eq!(result["isError"], false, "{result}");
    let text = "{'A': 'X'} hello\n";
    assert_eq!(result["content"], json!([{"type": "text", "text": text}]));
    let whole = &result["structuredContent"];
    assert_eq!(whole["status"], "success");
    assert_eq!(whole["output"], text);
    assert_eq!(whole["tool_calls_made"], 2);
    assert_eq!(whole["tool_calls"][1]["tool"], "terminal");
    client.end().assert_quiet();
}

#[test]
fn older_versions_get_text_alone() {
    for version in [MIDDLE, OLDEST] {
        let mut client = Client::speaking(version, &[]);
        let expected = json!({"content": [{"type": "text", "text": "6\n"}], "isError": false});
        assert_eq!(client.run("print(1 + 2 + 3)"), expected);
        client.end().assert_quiet();
    }
}

#[test]
fn what_is_no_success_is_an_error_with_all_that_is_known() {
    let mut client = Client::speaking(NEWEST, &["--timeout", "2"]);
    for (code, status, part) in [
        ("print('a')\n1/0", "error", "ZeroDivisionError"),
        ("def f(:", "error", "SyntaxError"),
        ("while True: pass", "timeout", "timed out after 2s"),
    ] {
        let result = client.run(code);
        assert_eq!(result["isError"], true, "{result}");
        assert_eq!(result["structuredContent"]["status"], status);
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(text.contains(part), "{text}");
    }
    let result = client.run("from hermes_tools import web_surch");
    let hint = result["structuredContent"]["hint"].as_str().unwrap();
    assert_eq!(result["content"][1]["text"], format!("hint: {hint}"));
    client.end().assert_quiet();
}

#[test]
fn a_script_that_prints_nothing_has_a_text_all_the_same() {
    let mut client = Client::speaking(NEWEST, &[]);
    for code in ["pass", "print()"] {
        let result = client.run(code);
        assert_eq!(result["isError"], false, "{result}");
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(text.contains("printed nothing"), "{text}");
    }
    client.end().assert_quiet();
}

#[test]
fn a_call_that_cannot_be_one_is_refused_and_says_why() {
    let mut client = Client::speaking(NEWEST, &[]);
    for (params, part) in [
        (json!({}), "name"),
        (json!({"name": 5}), "name"),
        (
            json!({"name": "execute", "arguments": {"code": ""}}),
            "execute_code",
        ),
        (json!({"name": "execute_code"}), "code"),
        (
            json!({"name": "execute_code", "arguments": []}),
            "arguments",
        ),
        (json!({"name": "execute_code", "arguments": {}}), "code"),
        (
            json!({"name": "execute_code", "arguments": {"code": 5}}),
            "code",
        ),
        (
            json!({"name": "execute_code", "arguments": {"code": ""}}),
            "code",
        ),
        (
            json!({"name": "execute_code", "arguments": {"code": "", "cod": 1}}),
            "did you mean \"code\"",
        ),
        (
            json!({"name": "execute_code", "arguments": {"code": ""}, "_meta": {"progressToken": []}}),
            "progressToken",
        ),
    ] {
        let answer = client.ask("tools/call", params.clone());
        assert_eq!(answer["error"]["code"], INVALID_PARAMS, "{params}");
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.contains(part), "{message}");
    }
    client.end().assert_quiet();
}

#[test]
fn scripts_run_at_once_and_are_answered_as_they_end() {
    let mut client = Client::speaking(NEWEST, &[]);
    let beacon = Beacon::new();
    // A pipe's two ends wait for each other, so neither script can end before the other one has begun.
    let reads = client.call(&format!("print(open({:?}).read())", beacon.path()));
    let writes = client.call(&format!("open({:?}, 'w').write('met')", beacon.path()));
    let mut answers = [client.hear(), client.hear()];
    answers.sort_by_key(|answer| answer["id"].as_u64());
    assert_eq!(answers[0]["id"], reads);
    assert_eq!(answers[0]["result"]["content"][0]["text"], "met\n");
    assert_eq!(answers[1]["id"], writes);
    client.end().assert_quiet();
}

#[test]
fn a_script_that_runs_keeps_nobody_waiting() {
    let mut client = Client::speaking(NEWEST, &[]);
    let mut beacon = Beacon::new();
    let slow = client.call(&beacon.script(FOR_EVER));
    beacon.wait_for_begin();
    client.assert_answers();
    assert_eq!(client.run("print(1)")["content"][0]["text"], "1\n");
    // Its identifier is taken meanwhile.
    client
        .say(&json!({"jsonrpc": "2.0", "id": slow, "method": "tools/call", "params": script("1")}));
    assert_eq!(client.hear_error(&json!(slow)), INVALID_REQUEST);
    client.cancel(slow);
    beacon.wait_for_end();
    client.end().assert_quiet();
}

// ---- cancellation ----

#[test]
fn a_cancelled_request_is_ended_and_not_answered() {
    let mut client = Client::speaking(NEWEST, &["--builtin", "terminal"]);
    let in_tool = "from hermes_tools import terminal\nterminal('sleep 1000')";
    for (before, body) in [("", FOR_EVER), (STUBBORN, FOR_EVER), ("", in_tool)] {
        let mut beacon = Beacon::new();
        let id = client.call(&beacon.script_after(before, body));
        beacon.wait_for_begin();
        client.cancel(id);
        beacon.wait_for_end();
        client.assert_answers();
    }
    client.end().assert_quiet();
}

#[test]
fn a_cancellation_of_nothing_changes_nothing() {
    let mut client = Client::speaking(NEWEST, &[]);
    let id = client.call("print(1)");
    assert_eq!(client.hear()["id"], id);
    client.cancel(id);
    client.cancel(4711);
    for params in [json!({}), json!({"requestId": null}), json!([]), json!(3)] {
        client
            .say(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}));
    }
    client.assert_answers();
    // Another identifier with the same digits.
    let mut beacon = Beacon::new();
    let id = client.call(&beacon.script("time.sleep(0)\nprint('done')"));
    let other = json!({"requestId": id.to_string()});
    client.say(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": other}));
    client.assert_answers();
    beacon.wait_for_begin();
    assert_eq!(client.hear()["result"]["content"][0]["text"], "done\n");
    client.end().assert_quiet();
}

// ---- progress ----

const TALKATIVE: &str =
    "from hermes_tools import shout\nprint('first', flush=True)\nshout(a=1)\nshout(a=2)\n";

/// Calls the tool with a token; the progress that was told, and the answer.
fn follow(client: &mut Client, code: &str, token: Value) -> (Vec<Value>, Value) {
    let mut params = script(code);
    params["_meta"] = json!({ "progressToken": token });
    client.request("tools/call", params);
    let mut told = Vec::new();
    loop {
        let message = client.hear();
        if message["method"] != "notifications/progress" {
            return (told, message);
        }
        assert!(message.get("id").is_none(), "{message}");
        told.push(message["params"].clone());
    }
}

#[test]
fn progress_is_told_to_those_who_ask() {
    let mut client = Client::speaking(NEWEST, &["--tool", "shout=tr a-z A-Z"]);
    for token in [json!("a token"), json!(7)] {
        let (told, answer) = follow(&mut client, TALKATIVE, token.clone());
        assert_eq!(answer["result"]["isError"], false, "{answer}");
        let messages: Vec<&str> = told.iter().filter_map(|t| t["message"].as_str()).collect();
        // Output and calls come by different ways, so which of them is told first is open.
        let (printed, called): (Vec<&str>, Vec<&str>) =
            messages.iter().partition(|message| **message == "first");
        assert_eq!(printed.len(), 1, "{told:?}");
        assert_eq!(called, ["shout {\"a\":1}", "shout {\"a\":2}"], "{told:?}");
        assert!(told.iter().all(|t| t["progressToken"] == token), "{told:?}");
        let numbers: Vec<f64> = told.iter().filter_map(|t| t["progress"].as_f64()).collect();
        assert_eq!(numbers.len(), told.len());
        assert!(numbers.windows(2).all(|w| w[0] < w[1]), "{numbers:?}");
    }
    let silent = client.call(TALKATIVE);
    assert_eq!(client.hear()["id"], silent);
    client.end().assert_quiet();
}

#[test]
fn progress_has_no_messages_in_the_oldest_version() {
    let mut client = Client::speaking(OLDEST, &["--tool", "shout=tr a-z A-Z"]);
    let (told, _) = follow(&mut client, TALKATIVE, json!(1));
    assert_eq!(told.len(), 3, "{told:?}");
    assert!(told.iter().all(|t| t.get("message").is_none()), "{told:?}");
    client.end().assert_quiet();
}

#[test]
fn a_flood_of_output_is_no_flood_of_progress() {
    let mut client = Client::speaking(NEWEST, &[]);
    let chatty = "for i in range(20000): print(i, flush=True)";
    let began = Instant::now();
    let (told, _) = follow(&mut client, chatty, json!(1));
    let most = began.elapsed().as_secs_f64() * 10.0 + 2.0;
    assert!(
        !told.is_empty() && told.len() as f64 <= most,
        "{}",
        told.len()
    );
    client.end().assert_quiet();
}

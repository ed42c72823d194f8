//! `ptc mcp`, from the side of its client, line by line.

#[path = "mcp/client.rs"]
mod client;
mod support;

use client::*;
use serde_json::{json, Value};
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;
use std::time::Instant;

const PARSE_ERROR: i64 = -32700;
const INVALID_REQUEST: i64 = -32600;
const METHOD_NOT_FOUND: i64 = -32601;
const INVALID_PARAMS: i64 = -32602;

/// A script that does not end by itself.
const FOR_EVER: &str = "while True:\n    time.sleep(60)\n";

/// Makes it one that has to be killed.
const STUBBORN: &str = "signal.signal(signal.SIGTERM, signal.SIG_IGN)";

// ---- initialize ----

#[test]
fn the_version_is_the_clients_or_else_the_newest() {
    for (asked, expected) in [
        (NEWEST, NEWEST),
        (MIDDLE, MIDDLE),
        (OLDEST, OLDEST),
        ("2099-01-01", NEWEST),
        ("1.0", NEWEST),
    ] {
        let mut client = Client::start(&[]);
        let answer = client.ask("initialize", initialize(asked));
        let result = &answer["result"];
        assert_eq!(result["protocolVersion"], expected);
        assert_eq!(result["serverInfo"]["name"], "ptc");
        assert_eq!(result["serverInfo"]["version"], env!("CARGO_PKG_VERSION"));
        assert_eq!(result["capabilities"], json!({"tools": {}}));
        let instructions = result["instructions"].as_str().unwrap();
        assert!(instructions.contains("execute_code"), "{instructions}");
        client.end().assert_quiet();
    }
}

#[test]
fn a_session_is_initialised_once_and_with_a_version() {
    let mut client = Client::start(&[]);
    for bad in [
        json!({}),
        json!({"protocolVersion": 5}),
        json!({"protocolVersion": NEWEST, "capabilities": []}),
        json!({"protocolVersion": NEWEST, "clientInfo": "me"}),
    ] {
        let answer = client.ask("initialize", bad.clone());
        assert_eq!(answer["error"]["code"], INVALID_PARAMS, "{bad}");
    }
    let answer = client.ask("initialize", initialize(MIDDLE));
    assert_eq!(answer["result"]["protocolVersion"], MIDDLE);
    let again = client.ask("initialize", initialize(NEWEST));
    assert_eq!(again["error"]["code"], INVALID_REQUEST);
    client.end().assert_quiet();
}

#[test]
fn before_initialize_there_is_nothing_but_ping() {
    let mut client = Client::start(&[]);
    client.assert_answers();
    for method in ["tools/list", "tools/call"] {
        let answer = client.ask(method, script("print(1)"));
        assert_eq!(answer["error"]["code"], INVALID_REQUEST, "{answer}");
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.contains("initialize"), "{message}");
    }
    // What newer clients look for first; they go on with initialize then.
    let answer = client.ask("server/discover", json!({}));
    assert_eq!(answer["error"]["code"], METHOD_NOT_FOUND);
    client.say(
        &json!([{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": initialize(MIDDLE)}]),
    );
    assert_eq!(client.hear_error(&Value::Null), INVALID_REQUEST);
    assert!(client.ask("initialize", initialize(NEWEST))["result"].is_object());
    client.end().assert_quiet();
}

// ---- the listing ----

#[test]
fn the_tool_is_listed_with_what_each_version_knows() {
    for (version, title, output_schema, annotations) in [
        (NEWEST, true, true, true),
        (MIDDLE, false, false, true),
        (OLDEST, false, false, false),
    ] {
        let args = [
            "--builtin",
            "read_file,terminal",
            "--tool",
            "shout=tr a-z A-Z",
        ];
        let mut client = Client::speaking(version, &args);
        let answer = client.ask("tools/list", json!({}));
        assert!(answer["result"].get("nextCursor").is_none());
        let tools = answer["result"]["tools"].as_array().unwrap();
        let [tool] = tools.as_slice() else {
            panic!("{tools:?}")
        };
        assert_eq!(tool["name"], "execute_code");
        assert_eq!(tool["inputSchema"]["required"], json!(["code"]));
        let description = tool["description"].as_str().unwrap();
        for name in ["read_file(", "terminal(", "shout("] {
            assert!(description.contains(name), "{description}");
        }
        assert!(!description.contains("write_file("), "{description}");
        assert_eq!(tool.get("title").is_some(), title, "{version}");
        assert_eq!(
            tool.get("outputSchema").is_some(),
            output_schema,
            "{version}"
        );
        assert_eq!(tool.get("annotations").is_some(), annotations, "{version}");
        client.end().assert_quiet();
    }
}

#[test]
fn there_is_one_page() {
    let mut client = Client::speaking(NEWEST, &[]);
    let answer = client.ask("tools/list", json!({"cursor": null}));
    assert!(answer["result"]["tools"].is_array());
    for cursor in [json!("2"), json!(""), json!(3)] {
        let answer = client.ask("tools/list", json!({"cursor": cursor}));
        assert_eq!(answer["error"]["code"], INVALID_PARAMS, "{answer}");
    }
    client.say_text(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#);
    assert!(client.hear()["result"]["tools"].is_array());
    client.end().assert_quiet();
}

#[test]
fn what_the_command_line_says_is_in_the_description() {
    let args = ["--timeout", "90", "--max-tool-calls=7", "--mode", "strict"];
    let mut client = Client::speaking(NEWEST, &args);
    let answer = client.ask("tools/list", json!({}));
    let description = answer["result"]["tools"][0]["description"]
        .as_str()
        .unwrap();
    for part in ["90 s", "7 tool calls", "temp dir of its own"] {
        assert!(description.contains(part), "{part}: {description}");
    }
    let result = client.run("print('ran')");
    assert_eq!(result["structuredContent"]["mode"], "strict");
    client.end().assert_quiet();
}

// ---- calls ----

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

// ---- JSON-RPC ----

#[test]
fn what_is_no_message_is_answered_and_survived() {
    let mut client = Client::speaking(NEWEST, &[]);
    let seven = json!(7);
    for (line, id, code) in [
        (&b"{"[..], &Value::Null, PARSE_ERROR),
        (b"ping", &Value::Null, PARSE_ERROR),
        (b"{\"jsonrpc\":\"2.0\"} {}", &Value::Null, PARSE_ERROR),
        (b"\xff\xfe", &Value::Null, PARSE_ERROR),
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"ping\xc3\"}",
            &Value::Null,
            PARSE_ERROR,
        ),
        (b"7", &Value::Null, INVALID_REQUEST),
        (b"{}", &Value::Null, INVALID_REQUEST),
        (b"{\"id\":7,\"method\":\"ping\"}", &seven, INVALID_REQUEST),
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":[]}",
            &seven,
            INVALID_REQUEST,
        ),
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ping\"}",
            &Value::Null,
            INVALID_REQUEST,
        ),
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}",
            &Value::Null,
            INVALID_REQUEST,
        ),
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"ping\",\"params\":[1]}",
            &seven,
            INVALID_PARAMS,
        ),
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"pong\"}",
            &seven,
            METHOD_NOT_FOUND,
        ),
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"resources/list\"}",
            &seven,
            METHOD_NOT_FOUND,
        ),
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"a\\nb\"}",
            &seven,
            METHOD_NOT_FOUND,
        ),
    ] {
        client.say_bytes(&[line, b"\n"].concat());
        assert_eq!(client.hear_error(id), code, "{}", line.escape_ascii());
        client.assert_answers();
    }
    client.end().assert_quiet();
}

#[test]
fn a_huge_line_is_answered_without_being_kept() {
    let mut client = Client::speaking(NEWEST, &[]);
    let piece = vec![b'x'; 1 << 20];
    for _ in 0..17 {
        client.say_bytes(&piece);
    }
    client.say_text("");
    assert_eq!(client.hear_error(&Value::Null), PARSE_ERROR);
    client.assert_answers();
    // What is merely large is served.
    let code = format!("text = '{}'\nprint(len(text))", "y".repeat(1 << 20));
    assert_eq!(client.run(&code)["content"][0]["text"], "1048576\n");
    client.end().assert_quiet();
}

#[test]
fn what_needs_no_answer_gets_none() {
    let mut client = Client::speaking(NEWEST, &[]);
    for line in [
        "",
        "   ",
        "\r",
        r#"{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}"#,
        r#"{"jsonrpc":"2.0","method":"tools/list"}"#,
        r#"{"jsonrpc":"2.0","method":"no/such/thing","params":5}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":"x","error":{"code":1,"message":"m"}}"#,
    ] {
        client.say_text(line);
        client.assert_answers();
    }
    client.say_bytes(b"{\"jsonrpc\":\"2.0\",\"id\":\"\xc3\xa4\\u0022\",\"method\":\"ping\"}\r\n");
    assert_eq!(client.hear()["id"], "ä\"");
    client.end().assert_quiet();
}

#[test]
fn a_message_needs_no_line_break_at_the_end() {
    let mut client = Client::speaking(NEWEST, &[]);
    client.say_bytes(br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
    let ended = client.end();
    ended.assert_well();
    assert_eq!(
        ended.rest,
        [json!({"jsonrpc": "2.0", "id": 1, "result": {}})]
    );
}

// ---- batches ----

#[test]
fn a_batch_is_answered_together() {
    let mut client = Client::speaking(MIDDLE, &[]);
    client.say(&json!([
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": script("print(5)")},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": "two", "method": "ping"},
        {"jsonrpc": "2.0", "id": 3, "method": "initialize", "params": initialize(MIDDLE)},
        4,
    ]));
    let batch = client.hear();
    let answers = batch.as_array().unwrap();
    assert_eq!(answers.len(), 4, "{batch}");
    let answer = |id: Value| answers.iter().find(|a| a["id"] == id).unwrap();
    assert_eq!(answer(json!(1))["result"]["content"][0]["text"], "5\n");
    assert_eq!(answer(json!("two"))["result"], json!({}));
    assert_eq!(answer(json!(3))["error"]["code"], INVALID_REQUEST);
    assert_eq!(answer(Value::Null)["error"]["code"], INVALID_REQUEST);
    // Nothing but notifications: no answer. Nothing at all: a mistake.
    client.say_text(r#"[{"jsonrpc":"2.0","method":"notifications/initialized"}]"#);
    client.assert_answers();
    client.say_text("[]");
    assert_eq!(client.hear_error(&Value::Null), INVALID_REQUEST);
    client.end().assert_quiet();
}

#[test]
fn a_cancelled_request_is_missing_from_its_batch() {
    let mut client = Client::speaking(MIDDLE, &[]);
    let mut beacon = Beacon::new();
    let slow = script(&beacon.script(FOR_EVER));
    client.say(&json!([
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": slow},
        {"jsonrpc": "2.0", "id": 2, "method": "ping"},
    ]));
    beacon.wait_for_begin();
    client.cancel(1);
    let expected = json!([{"jsonrpc": "2.0", "id": 2, "result": {}}]);
    assert_eq!(client.hear(), expected);
    client.end().assert_quiet();
}

#[test]
fn other_versions_have_no_batches() {
    for version in [NEWEST, OLDEST] {
        let mut client = Client::speaking(version, &[]);
        client.say_text(r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#);
        assert_eq!(client.hear_error(&Value::Null), INVALID_REQUEST);
        client.assert_answers();
        client.end().assert_quiet();
    }
}

// ---- the end ----

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
    let config = support::TempDir::new();
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

// ---- the command line ----

#[test]
fn bad_usage_says_so_before_anything_is_served() {
    for (args, part) in [
        (&["script.py"][..], "script.py"),
        (&["--json"], "--json"),
        (&["--timeout", "soon"], "--timeout"),
        (&["--mode", "loose"], "mode"),
        (&["--builtin", "read_fil"], "read_file"),
        (&["--config", "/no/such/file"], "/no/such/file"),
    ] {
        let output = ptc_mcp(args).stdin(Stdio::null()).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(output.stdout.is_empty());
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains(part), "{said}");
    }
    let help = ptc_mcp(&["--help"]).output().unwrap();
    assert!(help.status.success());
    assert!(String::from_utf8_lossy(&help.stdout).contains("usage: ptc mcp"));
}

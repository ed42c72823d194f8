//! `ptc mcp`, from the side of its client, line by line.

mod support;

#[path = "mcp/calls.rs"]
mod calls;
#[path = "mcp/client.rs"]
mod client;
#[path = "mcp/ending.rs"]
mod ending;
#[path = "mcp/lines.rs"]
mod lines;

use client::*;
use serde_json::{json, Value};
use std::process::Stdio;

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

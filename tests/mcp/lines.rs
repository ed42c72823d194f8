//! JSON-RPC: what is no message, what needs no answer, batches.

use super::client::*;
use super::{FOR_EVER, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, PARSE_ERROR};
use serde_json::{json, Value};

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

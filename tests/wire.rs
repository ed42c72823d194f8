//! The socket of a run as any program may use it, rightly and wrongly.

mod support;
#[path = "support/wire.rs"]
mod wire;

use ptc::{Code, Engine, EventKind, Host};
use serde_json::{json, Value};
use std::net::Shutdown;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use support::*;
use wire::*;

/// A host with threads of its own that gives back what it is sent.
fn echoing(threads: usize) -> Host {
    let dispatch = |call: &ptc::Call| {
        let args: Value = serde_json::from_str(call.args()).expect("arguments are JSON");
        // The run may have ended meanwhile.
        let _ = call.reply(&args["value"].to_string());
    };
    Host::new().dispatch(dispatch).threads(threads)
}

fn talk(settings: &str) -> Talk {
    Talk::new(&echo_config(settings), echoing(4))
}

fn error_of(answer: &Value) -> &str {
    answer["error"]
        .as_str()
        .unwrap_or_else(|| panic!("{answer}"))
}

// ---- the first line ----

#[test]
fn a_first_line_without_the_token_is_refused_and_ends_the_connection() {
    let mut talk = talk("");
    let token = talk.token.clone();
    let half = &token[..token.len() - 1];
    let lines: Vec<Vec<u8>> = vec![
        request("1", "1").into_bytes(),
        b"\n".to_vec(),
        b"{}\n".to_vec(),
        b"hello\n".to_vec(),
        b"{\"token\": \"\xff\"}\n".to_vec(),
        b"{\"token\": null}\n".to_vec(),
        b"{\"token\": 5}\n".to_vec(),
        b"[\"token\"]\n".to_vec(),
        b"\0\n".to_vec(),
        b"{\"token\": \"0123456789abcdef0123456789abcdef\"}\n".to_vec(),
        format!("{{\"token\": \"{half}\"}}\n").into_bytes(),
        format!("{{\"token\": \"{token}0\"}}\n").into_bytes(),
        format!("{{\"token\": \"{}\"}}\n", token.to_uppercase() + " ").into_bytes(),
        format!("{token}\n").into_bytes(),
        [&[b' '; 5000][..], b"\n"].concat(),
    ];
    for line in lines {
        let mut stranger = talk.stranger();
        // A request behind it in the same packet must not slip through.
        stranger.try_send([&line[..], request("2", "2").as_bytes()].concat());
        let answer = stranger.answer();
        assert_eq!(answer["id"], Value::Null);
        let error = error_of(&answer);
        assert!(error.starts_with("Unauthorized") && error.contains("PTC_RPC_TOKEN"));
        assert!(!error.contains(&token));
        stranger.assert_closed();
    }
    assert_eq!(talk.ask("hermes_tools.echo(value=1)"), 1);
    let ran = talk.end();
    assert_eq!(ran.json["tool_calls_made"], 1);
    assert_eq!(ran.of_calls("state"), ["answered"]);
}

#[test]
fn a_first_line_that_never_ends_is_held_by_nobody_and_disturbs_nobody() {
    let mut talk = talk("");
    let mut stranger = talk.stranger();
    for _ in 0..100 {
        stranger.send([b'x'; 100_000]);
    }
    assert_eq!(talk.ask("hermes_tools.echo(value=1)"), 1);
    stranger.send("\n");
    assert!(error_of(&stranger.answer()).starts_with("Unauthorized"));
    stranger.assert_closed();
    talk.end();
}

#[test]
fn lines_may_be_cut_and_joined_anywhere() {
    let talk = talk("");
    let text = talk.greeting() + &request("1", "\"ä\"") + &request("2", "[2]");
    let expected = [
        json!({"id": 1, "result": "ä"}),
        json!({"id": 2, "result": [2]}),
    ];
    for cut in 0..text.len() {
        let mut client = talk.stranger();
        client.send(&text.as_bytes()[..cut]);
        client.send(&text.as_bytes()[cut..]);
        let mut answers = [client.answer(), client.answer()];
        answers.sort_by_key(|answer| answer["id"].as_i64());
        assert_eq!(answers, expected, "cut at {cut}");
    }
    talk.end();
}

#[test]
fn a_client_that_sends_one_byte_at_a_time_is_served_and_keeps_nobody_waiting() {
    let mut talk = Talk::new(&echo_config(""), echoing(1));
    let mut slow = talk.stranger();
    let text = talk.greeting() + &request("\"slow\"", "7");
    for byte in text.as_bytes() {
        slow.send([*byte]);
        assert_eq!(talk.ask("hermes_tools.echo(value=1)"), 1);
    }
    assert_eq!(slow.answer(), json!({"id": "slow", "result": 7}));
    let made = text.len() + 1;
    assert_eq!(talk.end().json["tool_calls_made"], made);
}

#[test]
fn line_ends_of_other_systems_and_unknown_members_are_fine() {
    let talk = talk("");
    let mut client = talk.stranger();
    client.send(format!(
        "  {{\"version\": 2, \"token\": \"{}\"}} \r\n",
        talk.token
    ));
    let line = "\t{ \"args\" : { \"value\" : 1 } , \"later\" : [ { } ] , \"tool\" : \"\\u0065cho\" , \"id\" : 3 } \r";
    assert_eq!(client.ask(line), json!({"id": 3, "result": 1}));
    talk.end();
}

// ---- ids ----

#[test]
fn ids_come_back_letter_by_letter() {
    let talk = talk("");
    let mut client = talk.client();
    let ids = [
        "0",
        "-1",
        "-0",
        "9223372036854775808",
        "18446744073709551616",
        "100000000000000000000000000000000000000001",
        "1.5",
        "1.0",
        "1e400",
        "\"\"",
        "\"a b\"",
        "\"\\u0000\\ud800\\n\"",
        "\"ünï\"",
        "null",
        "true",
    ];
    for id in ids {
        client.request(id, "1");
        assert_eq!(client.line(), format!("{{\"id\":{id},\"result\":1}}"));
    }
    talk.end();
}

#[test]
fn pipelined_requests_are_answered_to_their_ids_in_whatever_order() {
    let waiting = Arc::new(Watched::new(Vec::new()));
    let deferred = Arc::clone(&waiting);
    let dispatch = move |call: &ptc::Call| {
        call.defer().unwrap();
        deferred.change(|calls: &mut Vec<ptc::Call>| calls.push(call.clone()));
    };
    let host = Host::new().dispatch(dispatch).threads(1);
    let talk = Talk::new(&echo_config(r#","max_parallel_calls":64"#), host);
    let mut client = talk.client();
    let lines: Vec<String> = (0..64)
        .map(|i| request(&i.to_string(), &(i * i).to_string()))
        .collect();
    client.send(lines.concat());
    let calls = waiting.wait(|calls| calls.len() == 64, std::mem::take);
    for call in calls.iter().rev() {
        let args: Value = serde_json::from_str(call.args()).unwrap();
        call.reply(&args["value"].to_string()).unwrap();
    }
    for i in (0..64).rev() {
        assert_eq!(client.answer(), json!({"id": i, "result": i * i}));
    }
    talk.end();
}

#[test]
fn two_requests_with_one_id_get_two_answers() {
    let talk = talk("");
    let mut client = talk.client();
    client.send(request("1", "\"a\"") + &request("1", "\"b\""));
    let mut results = [client.answer(), client.answer()].map(|a| a["result"].to_string());
    results.sort();
    assert_eq!(results, ["\"a\"", "\"b\""]);
    talk.end();
}

// ---- bad lines ----

#[test]
fn every_bad_line_is_answered_by_name_and_the_next_one_is_served() {
    let mut talk = talk("");
    let mut client = talk.client();
    let cases: [(&[u8], Value, &str); 24] = [
        (b"", json!(null), "not valid JSON"),
        (b"   ", json!(null), "not valid JSON"),
        (b"\0", json!(null), "not valid JSON"),
        (b"hello", json!(null), "not valid JSON"),
        (
            b"{\"id\":1,\"tool\":\"echo\"",
            json!(null),
            "not valid JSON",
        ),
        (
            b"{\"id\":1,\"tool\":\"echo\"} x",
            json!(null),
            "not valid JSON",
        ),
        (b"{'id':1,'tool':'echo'}", json!(null), "not valid JSON"),
        (
            b"{\"id\":01,\"tool\":\"echo\"}",
            json!(null),
            "not valid JSON",
        ),
        (
            b"{\"id\":NaN,\"tool\":\"echo\"}",
            json!(null),
            "not valid JSON",
        ),
        (
            b"{\"id\":1,\"tool\":\"echo\",\"args\":{\"value\":NaN}}",
            json!(null),
            "not valid JSON",
        ),
        (
            b"{\"id\":1,\"tool\":\"echo\",\"args\":{\"value\":Infinity}}",
            json!(null),
            "not valid JSON",
        ),
        (
            b"{\"id\":1,\"tool\":\"echo\",\"args\":{\"value\":\"a\0b\"}}",
            json!(null),
            "not valid JSON",
        ),
        (b"\xef\xbb\xbf{\"id\":1}", json!(null), "not valid JSON"),
        (
            b"{\"id\":1,\"tool\":\"\xff\"}",
            json!(null),
            "not valid UTF-8",
        ),
        (
            b"{\"id\":1,\"tool\":\"\xed\xa0\x80\"}",
            json!(null),
            "not valid UTF-8",
        ),
        (b"[1]", json!(null), "expected an object"),
        (b"5", json!(null), "expected an object"),
        (b"null", json!(null), "expected an object"),
        (b"{}", json!(null), "\"id\" is missing"),
        (b"{\"tool\":\"echo\"}", json!(null), "\"id\" is missing"),
        (
            b"{\"id\":[1],\"tool\":\"echo\"}",
            json!(null),
            "\"id\" must be",
        ),
        (b"{\"id\":4}", json!(4), "\"tool\" is missing"),
        (
            b"{\"id\":4,\"tool\":null}",
            json!(4),
            "\"tool\" must be a string",
        ),
        (
            b"{\"id\":4,\"tool\":{\"a\":[]}}",
            json!(4),
            "\"tool\" must be a string",
        ),
    ];
    for (line, id, complaint) in &cases {
        let shown = String::from_utf8_lossy(line);
        let answer = client.ask(line);
        assert_eq!(answer["id"], *id, "{shown}: {answer}");
        assert!(error_of(&answer).contains(complaint), "{shown}: {answer}");
        assert!(answer.get("result").is_none());
        client.assert_served();
    }
    for args in ["[]", "[1]", "\"x\"", "5", "null", "true"] {
        let answer = client.ask(format!(r#"{{"id":"a","tool":"echo","args":{args}}}"#));
        assert_eq!(answer["id"], "a");
        assert!(
            error_of(&answer).contains("\"args\" must be an object"),
            "{answer}"
        );
    }
    assert_eq!(talk.ask("hermes_tools.echo(value=1)"), 1);
    let ran = talk.end();
    assert_eq!(ran.json["tool_calls_made"], cases.len() + 1);
    let refused = ran
        .of_calls("state")
        .iter()
        .filter(|s| **s == "refused")
        .count();
    assert_eq!(refused, cases.len() + 6);
}

#[test]
fn of_a_member_that_is_there_twice_the_last_one_counts() {
    let talk = talk("");
    let mut client = talk.client();
    let line =
        r#"{"id":1,"id":2,"tool":"nothing","tool":"echo","args":[],"args":{"value":1,"value":2}}"#;
    assert_eq!(client.ask(line), json!({"id": 2, "result": 2}));
    talk.end();
}

#[test]
fn nesting_of_any_depth_is_a_call_or_an_error_and_never_a_crash() {
    // The host gets the arguments as text: how deep it wants to look into them is its own business.
    let lengths = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&lengths);
    let dispatch = move |call: &ptc::Call| {
        seen.lock().unwrap().push(call.args().len());
        call.reply("1").unwrap();
    };
    let mut talk = Talk::new(&echo_config(""), Host::new().dispatch(dispatch).threads(1));
    let mut client = talk.client();
    for depth in [100, 127, 128, 1000, 100_000, 1_000_000] {
        let value = "[".repeat(depth) + &"]".repeat(depth);
        client.request("1", &value);
        let answer = client.answer();
        assert_eq!(answer["id"], 1);
        assert!(
            answer["result"] == 1 || answer["error"].is_string(),
            "{answer}"
        );
        let open_only = format!(
            "{{\"id\":1,\"tool\":\"echo\",\"args\":{}",
            "{\"a\":".repeat(depth)
        );
        assert!(error_of(&client.ask(open_only)).contains("not valid JSON"));
        let in_id = format!("{{\"id\":{value},\"tool\":\"echo\"}}");
        assert!(client.ask(in_id)["error"].is_string());
    }
    assert!(lengths.lock().unwrap().len() >= 2);
    assert_eq!(talk.ask("hermes_tools.echo(value=1)"), 1);
    talk.end();
}

#[test]
fn a_nul_in_a_value_is_a_character_like_any_other() {
    let talk = talk("");
    let mut client = talk.client();
    client.request("1", r#""a\u0000b\ud83d\ude00""#);
    assert_eq!(client.answer(), json!({"id": 1, "result": "a\0b😀"}));
    talk.end();
}

#[test]
fn a_script_that_goes_on_being_refused_is_ended() {
    let mut talk = talk("");
    let mut client = talk.client();
    client.assert_served();
    for _ in 0..999 {
        client.ask("nonsense");
    }
    assert_eq!(talk.ask("hermes_tools.echo(value=1)"), 1);
    client.try_send("nonsense\n");
    let ran = wait(&talk.run);
    assert_eq!(ran.status(), "error");
    assert!(
        ran.error().contains("1000 of its tool calls were refused"),
        "{}",
        ran.error()
    );
    assert_eq!(ran.json["tool_calls_made"], 2);
    client.assert_closed();
}

// ---- sizes ----

#[test]
fn the_limit_of_a_request_is_exact_and_the_connection_goes_on() {
    let limit = 100_000;
    let talk = talk(r#","max_message_bytes":100000"#);
    let mut client = talk.client();
    let frame = request("\"id\"", "\"\"").len() - 1;
    for (over, fits) in [(-1, true), (0, true), (1, false), (limit, false)] {
        let size = (limit + over) as usize;
        let value = format!("\"{}\"", "x".repeat(size - frame));
        client.request("\"id\"", &value);
        let answer = client.answer();
        assert_eq!(answer["id"], "id");
        let error = answer["error"].as_str().unwrap_or("");
        if fits {
            // The reply is as long, so that it may be refused in turn, but the call was made.
            assert!(!error.contains("The request is"), "{answer}");
        } else {
            let told = format!("The request is {size} bytes, over the limit of 100000.");
            assert!(error.starts_with(&told), "{answer}");
        }
        client.assert_served();
    }
    let ran = talk.end();
    assert_eq!(ran.json["tool_calls_made"], 6);
    assert_eq!(
        ran.of_calls("state")
            .iter()
            .filter(|s| **s == "refused")
            .count(),
        2
    );
}

#[test]
fn a_reply_over_the_limit_fails_the_call_by_name() {
    let told = Arc::new(Mutex::new(Vec::new()));
    let said = Arc::clone(&told);
    let dispatch = move |call: &ptc::Call| {
        let args: Value = serde_json::from_str(call.args()).unwrap();
        let size = args["value"].as_u64().unwrap_or(0) as usize;
        let text = "y".repeat(size);
        said.lock()
            .unwrap()
            .push(call.reply_text(&text).map_err(|e| e.code()));
    };
    let host = Host::new().dispatch(dispatch).threads(1);
    let talk = Talk::new(&echo_config(r#","max_message_bytes":100000"#), host);
    let mut client = talk.client();
    client.request("1", "99900");
    assert_eq!(
        client.answer()["result"].as_str().map(str::len),
        Some(99_900)
    );
    for size in ["100000", "10000000"] {
        client.request("2", size);
        let answer = client.answer();
        let error = error_of(&answer);
        assert_eq!(answer["id"], 2);
        assert!(
            error.contains("'echo'") && error.contains("over the limit of 100000"),
            "{error}"
        );
        assert!(error.contains("max_message_bytes"));
    }
    client.request("3", "1");
    assert_eq!(client.answer(), json!({"id": 3, "result": "y"}));
    assert_eq!(
        talk.end().of_calls("state"),
        ["answered", "failed", "failed", "answered"]
    );
    let invalid = Err(Code::InvalidArgument);
    assert_eq!(*told.lock().unwrap(), [Ok(()), invalid, invalid, Ok(())]);
}

#[test]
#[cfg(target_os = "linux")]
fn an_oversized_line_is_not_held_in_memory() {
    run_alone("oversized_lines_alone");
}

#[test]
#[ignore = "run by another test, in a process of its own"]
#[cfg(target_os = "linux")]
fn oversized_lines_alone() {
    if alone().is_none() {
        return;
    }
    const MEGABYTES: usize = 200;
    let talk = talk(r#","max_message_bytes":100000"#);
    let mut client = talk.client();
    client.assert_served();
    let block = vec![b'x'; 1 << 20];
    let before = own_status("VmHWM");
    client.send(r#"{"id":5,"tool":"echo","args":{"value":""#);
    for _ in 0..MEGABYTES {
        client.send(&block);
    }
    client.send("\"}}\n");
    let answer = client.answer();
    assert_eq!(answer["id"], 5);
    assert!(error_of(&answer).contains("over the limit"), "{answer}");
    client.assert_served();
    let grown = own_status("VmHWM") - before;
    assert!(grown < 8 * 1024, "memory has grown by {grown} kB");
    talk.end();
}

// ---- clients that behave badly ----

#[test]
fn connections_that_are_opened_and_dropped_stop_nobody() {
    let mut talk = Talk::new(&echo_config(""), echoing(2));
    let mut steady = talk.client();
    for i in 0..10_000 {
        let mut client = talk.stranger();
        match i % 4 {
            0 => {}
            1 => client.try_send("{\"tok"),
            2 => client.try_send(talk.greeting()),
            _ => client.try_send(talk.greeting() + "{\"id\":1,\"tool\":"),
        }
        if i % 500 == 0 {
            steady.assert_served();
            assert_eq!(talk.ask("hermes_tools.echo(value=1)"), 1);
        }
    }
    steady.assert_served();
    let ran = talk.end();
    assert_eq!(ran.json["tool_calls_made"], 41);
}

#[test]
#[cfg(target_os = "linux")]
fn a_thousand_idle_connections_stop_nobody_and_more_are_told_so() {
    run_alone("idle_connections_alone");
}

/// In a process of its own, since it needs most of the descriptors that a process may have.
#[test]
#[ignore = "run by another test, in a process of its own"]
#[cfg(target_os = "linux")]
fn idle_connections_alone() {
    if alone().is_none() {
        return;
    }
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap();
    let line = limits
        .lines()
        .find(|l| l.starts_with("Max open files"))
        .unwrap();
    let descriptors: usize = line
        .split_whitespace()
        .nth(3)
        .unwrap()
        .parse()
        .unwrap_or(1 << 20);
    // Both ends of each are in this process.
    let count = 1000.min((descriptors - 200) / 2);
    let mut talk = Talk::new(&echo_config(""), echoing(2));
    let mut other = Talk::on(&talk.engine);
    let mut idle: Vec<Client> = (0..count).map(|_| talk.client()).collect();
    assert_eq!(talk.ask("hermes_tools.echo(value=1)"), 1);
    idle.iter_mut().for_each(Client::assert_served);
    if count == 1000 {
        let mut crowd: Vec<Client> = (0..40).map(|_| talk.stranger()).collect();
        let mut too_many = crowd.pop().unwrap();
        assert!(error_of(&too_many.answer()).starts_with("Too many connections"));
        too_many.assert_closed();
        // Whoever floods its own run harms nobody else's, and its own no longer than it goes on.
        assert_eq!(other.ask("hermes_tools.echo(value=2)"), 2);
        assert_eq!(talk.ask("hermes_tools.echo(value=3)"), 3);
    }
    drop(idle);
    let is_served = |_: &i32| {
        let mut client = talk.stranger();
        client.try_send(talk.greeting() + &request("1", "5"));
        client.answer()["result"] == 5
    };
    assert!((0..100_000).any(|i| is_served(&i)));
    talk.end();
    other.end();
}

#[test]
fn a_client_that_does_not_read_its_replies_stops_only_itself() {
    const REQUESTS: usize = 300;
    const SIZE: usize = 100_000;
    let reached = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&reached);
    let dispatch = move |call: &ptc::Call| {
        let args: Value = serde_json::from_str(call.args()).unwrap();
        if args["value"] == "big" {
            count.fetch_add(1, Ordering::Relaxed);
            call.reply_text(&"z".repeat(SIZE)).unwrap();
        } else {
            call.reply(&args["value"].to_string()).unwrap();
        }
    };
    let mut talk = Talk::new(&echo_config(""), Host::new().dispatch(dispatch).threads(2));
    let mut greedy = talk.client();
    let writer = {
        let mut stream = greedy.stream().try_clone().unwrap();
        std::thread::spawn(move || {
            for i in 0..REQUESTS {
                std::io::Write::write_all(
                    &mut stream,
                    request(&i.to_string(), "\"big\"").as_bytes(),
                )
                .unwrap();
            }
        })
    };
    let mut other = talk.client();
    for i in 0..200 {
        other.request(&i.to_string(), "1");
        assert_eq!(other.answer(), json!({"id": i, "result": 1}));
        assert_eq!(talk.ask("hermes_tools.echo(value=1)"), 1);
    }
    // What waits for it is bounded: its other requests stay where they are.
    let served = reached.load(Ordering::Relaxed);
    assert!(
        served < REQUESTS,
        "{served} replies are held for a client that takes none"
    );
    let mut seen = vec![false; REQUESTS];
    for _ in 0..REQUESTS {
        let answer = greedy.answer();
        assert_eq!(answer["result"].as_str().map(str::len), Some(SIZE));
        let id = answer["id"].as_u64().unwrap() as usize;
        assert!(
            !std::mem::replace(&mut seen[id], true),
            "{id} was answered twice"
        );
    }
    writer.join().unwrap();
    talk.end();
}

#[test]
fn a_client_that_never_reads_and_goes_leaves_no_call_behind() {
    let ended = Arc::new(Watched::new(0));
    let count = Arc::clone(&ended);
    let host = echoing(2).on_event(move |event| {
        if event.kind() == EventKind::CallEnd {
            count.change(|ended| *ended += 1);
        }
    });
    let talk = Talk::new(&echo_config(""), host);
    let mut client = talk.client();
    let value = format!("\"{}\"", "x".repeat(50_000));
    client.stream().set_nonblocking(true).unwrap();
    for i in 0..2000 {
        client.try_send(request(&i.to_string(), &value));
    }
    ended.wait(|ended| *ended > 0, |_| ());
    drop(client);
    talk.client().assert_served();
    let ran = talk.end();
    // Those that it got through, and the one of the other client.
    let made = ran.json["tool_calls_made"].as_u64().unwrap();
    ended.wait(|ended| *ended == made, |_| ());
}

#[test]
fn a_client_that_has_stopped_sending_still_gets_its_answers() {
    let waiting = Arc::new(Watched::new(Vec::new()));
    let deferred = Arc::clone(&waiting);
    let dispatch = move |call: &ptc::Call| {
        call.defer().unwrap();
        deferred.change(|calls: &mut Vec<ptc::Call>| calls.push(call.clone()));
    };
    let talk = Talk::new(&echo_config(""), Host::new().dispatch(dispatch).threads(1));
    let mut client = talk.client();
    client.send(request("1", "1") + &request("2", "2"));
    client.stream().shutdown(Shutdown::Write).unwrap();
    let calls = waiting.wait(|calls| calls.len() == 2, std::mem::take);
    for call in &calls {
        assert!(call.is_wanted());
        call.reply(&call.id().to_string()).unwrap();
    }
    for (id, call) in [1, 2].iter().zip(&calls) {
        assert_eq!(client.answer(), json!({"id": id, "result": call.id()}));
    }
    client.assert_closed();
    talk.end();
}

#[test]
fn a_last_line_without_its_newline_is_no_request() {
    let talk = talk("");
    let mut client = talk.client();
    client.send(request("1", "1") + request("2", "2").trim_end());
    assert_eq!(client.answer(), json!({"id": 1, "result": 1}));
    client.stream().shutdown(Shutdown::Write).unwrap();
    client.assert_closed();
    assert_eq!(talk.end().json["tool_calls_made"], 1);
}

#[test]
fn the_call_of_a_client_that_has_vanished_is_unanswered_and_its_place_free() {
    let (calls, ends) = (
        Arc::new(Watched::new(Vec::new())),
        Arc::new(Watched::new(Vec::new())),
    );
    let (deferred, ended) = (Arc::clone(&calls), Arc::clone(&ends));
    let host = Host::new()
        .dispatch(move |call| {
            call.defer().unwrap();
            deferred.change(|calls: &mut Vec<ptc::Call>| calls.push(call.clone()));
        })
        .on_event(move |event| {
            if event.kind() == EventKind::CallEnd {
                let end: Value = serde_json::from_slice(event.data()).unwrap();
                ended.change(|ends: &mut Vec<Value>| ends.push(end));
            }
        })
        .threads(2);
    let talk = Talk::new(&echo_config(r#","max_parallel_calls":1"#), host);
    let (mut gone, mut queued, mut stays) = (talk.client(), talk.client(), talk.client());
    gone.request("1", "1");
    let lost = calls.wait(|calls| calls.len() == 1, |calls| calls.remove(0));
    // Two more wait for their turn; one of these vanishes as well before it has come.
    queued.request("2", "2");
    stays.request("3", "3");
    drop(queued);
    drop(gone);
    let is_last = |call: &ptc::Call| call.args().contains('3');
    let last = calls.wait(
        |calls| calls.iter().any(is_last),
        |calls| calls.drain(..).find(is_last).unwrap(),
    );
    assert!(!lost.is_wanted());
    assert_eq!(lost.reply("1").unwrap_err().code(), Code::State);
    last.reply("3").unwrap();
    assert_eq!(stays.answer(), json!({"id": 3, "result": 3}));
    let ends = ends.wait(|ends| ends.len() == 3, std::mem::take);
    assert_eq!(
        ends.iter()
            .filter(|end| end["state"] == "unanswered")
            .count(),
        2
    );
    let lost_end = ends.iter().find(|end| end["id"] == lost.id()).unwrap();
    assert_eq!(lost_end["state"], "unanswered");
    let ran = talk.end();
    let mut states = ran.of_calls("state");
    states.sort_unstable();
    assert_eq!(states, ["answered", "unanswered", "unanswered"]);
}

// ---- what may be called ----

#[test]
fn a_tool_outside_of_the_list_is_named_together_with_what_there_is() {
    let talk = talk("");
    let mut client = talk.client();
    for (tool, shown) in [
        ("terminal", "terminal"),
        ("Echo", "Echo"),
        ("", ""),
        ("a'b\\n", "a'b\n"),
    ] {
        let answer = client.ask(format!(r#"{{"id":1,"tool":"{tool}","args":{{}}}}"#));
        let expected = format!("Tool '{shown}' is not available in execute_code. Available: echo");
        assert_eq!(answer, json!({"id": 1, "error": expected}));
    }
    let long = "t".repeat(10_000);
    let answer = client.ask(format!(r#"{{"id":1,"tool":"{long}"}}"#));
    assert!(error_of(&answer).len() < 300);
    assert_eq!(talk.end().json["tool_calls_made"], 0);
}

#[test]
fn the_limit_of_calls_counts_over_all_connections_and_counts_no_refusal() {
    let engine = Engine::new(
        &format!(r#"{{"code_execution":{{"max_tool_calls":5}},"tools":[{ECHO}]}}"#),
        echoing(4),
    )
    .unwrap();
    let mut talk = Talk::on(&engine);
    let mut client = talk.client();
    assert!(client.ask(r#"{"id":1,"tool":"other"}"#)["error"].is_string());
    client.send(
        (0..4)
            .map(|i| request(&i.to_string(), "1"))
            .collect::<String>(),
    );
    for _ in 0..4 {
        assert_eq!(client.answer()["result"], 1);
    }
    assert_eq!(talk.ask("hermes_tools.echo(value=1)"), 1);
    let refusal = "Tool call limit reached (5). No more tool calls allowed in this execution.";
    client.request("9", "1");
    assert_eq!(client.answer(), json!({"id": 9, "error": refusal}));
    assert_eq!(
        talk.ask("hermes_tools.echo(value=1)"),
        json!({"error": refusal})
    );
    assert_eq!(talk.end().json["tool_calls_made"], 5);
}

#[test]
fn calls_that_race_for_the_last_place_get_exactly_what_is_left() {
    let engine = Engine::new(
        &format!(r#"{{"code_execution":{{"max_tool_calls":50}},"tools":[{ECHO}]}}"#),
        echoing(8),
    )
    .unwrap();
    let talk = Talk::on(&engine);
    let mut clients: Vec<Client> = (0..16).map(|_| talk.client()).collect();
    let ten = request("1", "1").repeat(10);
    for client in &mut clients {
        client.send(&ten);
    }
    let answers = clients
        .iter_mut()
        .flat_map(|client| (0..10).map(|_| client.answer()).collect::<Vec<_>>());
    assert_eq!(answers.filter(|answer| answer["result"] == 1).count(), 50);
    let ran = talk.end();
    assert_eq!(ran.json["tool_calls_made"], 50);
}

#[test]
fn the_socket_is_for_this_user_alone() {
    let talk = talk("");
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o7777;
    assert_eq!(mode(&talk.socket), 0o600);
    let directory = talk.socket.parent().unwrap().to_path_buf();
    assert_eq!(mode(&directory), 0o700);
    assert!(talk.token.len() >= 32);
    let other = Talk::on(&talk.engine);
    assert_ne!(talk.token, other.token);
    // The token of one run opens no other.
    let mut stranger = other.stranger();
    stranger.try_send(talk.greeting());
    assert!(error_of(&stranger.answer()).starts_with("Unauthorized"));
    other.end();
    talk.end();
    assert!(!directory.exists());
}

#[test]
fn nobody_is_served_once_the_run_has_ended() {
    let talk = talk("");
    let (mut client, socket) = (talk.client(), talk.socket.clone());
    client.assert_served();
    talk.end();
    client.try_send(request("1", "1"));
    client.assert_closed();
    assert!(std::os::unix::net::UnixStream::connect(socket).is_err());
}

#[test]
fn a_program_in_another_language_may_speak_it() {
    let code = r#"
import subprocess, sys
raw = r'''
import os, socket
s = socket.socket(socket.AF_UNIX)
s.connect(os.environ["PTC_RPC_SOCKET"])
f = s.makefile("rw")
print('{"token": "%s"}' % os.environ["PTC_RPC_TOKEN"], file=f)
print('{"id": "from elsewhere", "tool": "echo", "args": {"value": [1, "ä"]}}', file=f, flush=True)
print(f.readline(), end="")
'''
print(subprocess.run(["sh", "-c", '"$0" -S -c "$1"', sys.executable, raw], capture_output=True, text=True).stdout, end="")
"#;
    let engine = Engine::new(&echo_config(""), echoing(1)).unwrap();
    let ran = execute(&engine, "", code);
    assert_eq!(
        ran.printed_json(),
        json!({"id": "from elsewhere", "result": [1, "ä"]})
    );
    assert_eq!(ran.of_calls("tool"), ["echo"]);
}

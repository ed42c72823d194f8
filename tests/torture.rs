//! Twenty scripts that break engines, each with the result that it must give: `tests/torture/cases.json`.
//!
//! In `expect` a key of the result means equality; `output_starts`, `output_ends`, `output_contains` and
//! `hint_contains` look inside, `output_max_bytes` bounds the output, and `exit_within` is the number of seconds in
//! which the run ends on a machine that has nothing else to do.

mod support;

use serde_json::{json, Map, Value};
use std::time::{Duration, Instant};
use support::{execute, Ran};

/// What a machine that is busy with other things may take beyond that.
const BUSY: Duration = Duration::from_secs(60);

fn cases() -> Vec<Value> {
    let text = include_str!("torture/cases.json");
    serde_json::from_str(text).expect("the cases are JSON")
}

/// What is wrong with the result of `case`; empty: nothing.
fn faults(case: &Value) -> Vec<String> {
    let expect = case["expect"]
        .as_object()
        .expect("a case expects something");
    let mut config = json!({"code_execution": {}});
    if let Some(needed) = expect.get("needs_config") {
        config["code_execution"] = needed.clone();
    }
    let began = Instant::now();
    let code = case["code"].as_str().expect("a case has code");
    let engine = support::engine(&config.to_string());
    let ran = execute(&engine, &case["options"].to_string(), code);
    let took = began.elapsed();
    let name = case["name"].as_str().expect("a case has a name");
    println!("{name}: {:.2} s", took.as_secs_f64());
    expect
        .iter()
        .filter_map(|(key, expected)| fault(&ran, took, key, expected))
        .map(|fault| format!("{name}: {fault}\n{}", ran.json))
        .collect()
}

fn fault(ran: &Ran, took: Duration, key: &str, expected: &Value) -> Option<String> {
    let text = || {
        expected
            .as_str()
            .unwrap_or_else(|| panic!("{key} is a text"))
    };
    let number = || {
        expected
            .as_u64()
            .unwrap_or_else(|| panic!("{key} is a number"))
    };
    let holds = match key {
        "needs_config" => true,
        "output_starts" => ran.output().starts_with(text()),
        "output_ends" => ran.output().ends_with(text()),
        "output_contains" => ran.output().contains(text()),
        "hint_contains" => ran.hint().contains(text()),
        "output_max_bytes" => ran.output().len() as u64 <= number(),
        "exit_within" => took <= Duration::from_secs(number()) + BUSY,
        // By plain POSIX means nobody can look for them.
        "survivors" if cfg!(ptc_portable) => ran.json[key].is_null(),
        key => ran.json[key] == *expected,
    };
    (!holds).then(|| format!("{key} is not {expected}"))
}

#[test]
fn every_script_gives_its_result() {
    let cases = cases();
    assert_eq!(cases.len(), 20);
    let faults: Vec<String> = cases.iter().flat_map(faults).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n\n"));
}

#[test]
fn a_result_that_is_wrong_is_noticed() {
    let wrong = json!({
        "status": "error", "output": "x", "output_starts": "b", "output_ends": "b", "output_contains": "c",
        "hint_contains": "c", "output_max_bytes": 1, "exit_code": 1, "stdout_truncated": true, "survivors": 1,
    });
    for (key, expected) in wrong.as_object().unwrap() {
        if key == "survivors" && cfg!(ptc_portable) {
            continue;
        }
        let mut expect = Map::new();
        expect.insert(key.clone(), expected.clone());
        let case = json!({"name": key, "code": "print('a' * 3)", "options": {}, "expect": expect});
        assert_eq!(faults(&case).len(), 1, "{key}");
    }
}

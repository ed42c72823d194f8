//! The tools that the engine serves itself, called from scripts.

#[path = "builtins/files.rs"]
mod files;
#[path = "builtins/patch.rs"]
mod patch;
#[path = "builtins/search.rs"]
mod search;
mod support;
#[path = "builtins/terminal.rs"]
mod terminal;

use serde_json::Value;
use support::{execute, quoted, Ran, TempDir};

/// Runs `code` with all built-in tools in `dir`; `more` are further members of the configuration.
fn run_in(dir: &TempDir, more: &str, code: &str) -> Ran {
    let config = format!(
        r#"{{"builtin_tools": "all", "terminal": {{"cwd": {}}}{more}}}"#,
        quoted(dir.path())
    );
    let code = format!("from hermes_tools import *\nimport json\n{code}");
    execute(&support::engine(&config), "{}", code)
}

/// The value of the Python `expression`.
fn value_in(dir: &TempDir, more: &str, expression: &str) -> Value {
    let code = format!("print(json.dumps({expression}))");
    run_in(dir, more, &code).printed_json()
}

fn value(dir: &TempDir, expression: &str) -> Value {
    value_in(dir, "", expression)
}

/// The message of a call that fails.
fn failure(dir: &TempDir, expression: &str) -> String {
    let value = value(dir, expression);
    let error = value["error"].as_str();
    error
        .unwrap_or_else(|| panic!("{expression}: {value}"))
        .to_string()
}

#[test]
fn a_call_is_counted_and_told_like_any_other() {
    let dir = TempDir::new();
    dir.write("a.txt", "x");
    let ran = run_in(&dir, "", "read_file('a.txt')\nread_file('b.txt')");
    assert_eq!(ran.status(), "success");
    assert_eq!(ran.json["tool_calls_made"], 2);
    assert_eq!(ran.of_calls("tool"), ["read_file", "read_file"]);
    assert_eq!(ran.of_calls("state"), ["answered", "failed"]);
}

#[test]
fn the_host_is_told_of_a_call_that_is_not_its_to_answer() {
    use ptc::{Engine, EventKind, Host};
    let dir = TempDir::new();
    dir.write("a.txt", "x");
    let config = format!(
        r#"{{"builtin_tools": ["read_file"], "tools": [{{"name": "own"}}], "terminal": {{"cwd": {}}}}}"#,
        quoted(dir.path())
    );
    let engine = Engine::new(&config, Host::new()).unwrap();
    let run = engine
        .start(
            "from hermes_tools import *\nprint(read_file('a.txt')['content'], own())",
            "",
        )
        .unwrap();
    let mut calls = Vec::new();
    while let Some(event) = run.next_event(Some(support::PATIENCE)).unwrap() {
        if event.kind() != EventKind::Call {
            continue;
        }
        let data: Value = serde_json::from_slice(event.data()).unwrap();
        calls.push((data["tool"].clone(), data["built_in"].clone()));
        if let Some(call) = event.call() {
            assert_eq!(call.tool(), "own");
            call.reply("1").unwrap();
        }
    }
    assert_eq!(support::wait(&run).output(), "x 1\n");
    let expected = [("read_file", Value::Bool(true)), ("own", Value::Null)];
    assert_eq!(calls, expected.map(|(tool, flag)| (tool.into(), flag)));
}

#[test]
fn wrong_arguments_are_named_before_and_behind_the_wire() {
    let dir = TempDir::new();
    let ran = run_in(&dir, "", "read_file(file='x')");
    assert!(
        ran.error().contains("read_file") && ran.error().contains("'file'"),
        "{}",
        ran.error()
    );
    let error = failure(&dir, "read_file('x', offset=0)");
    assert!(error.contains("read_file.offset"), "{error}");
    let error = failure(&dir, "read_file('x', limit='many')");
    assert!(error.contains("read_file.limit"), "{error}");
    let error = failure(&dir, "read_file('')");
    assert!(error.contains("no path"), "{error}");
}

#[test]
fn a_run_may_use_some_of_them() {
    let dir = TempDir::new();
    let config = format!(
        r#"{{"builtin_tools": "all", "terminal": {{"cwd": {}}}}}"#,
        quoted(dir.path())
    );
    let code = "import hermes_tools as t\nprint(hasattr(t, 'terminal'), t.read_file('a'))";
    let ran = execute(
        &support::engine(&config),
        r#"{"tools": ["read_file"]}"#,
        code,
    );
    assert!(ran.output().starts_with("False {"), "{}", ran.output());
}

#[test]
fn a_failed_call_raises_where_that_is_configured_and_keeps_its_details() {
    let dir = TempDir::new();
    dir.write("notes.txt", "");
    let more = r#", "code_execution": {"on_tool_error": "raise"}"#;
    let ran = run_in(
        &dir,
        more,
        "try:\n    read_file('note.txt')\nexcept ToolError as e:\n    print(e.tool, e.details['similar_files'])",
    );
    assert_eq!(ran.printed(), "read_file ['notes.txt']\n");
}

//! Every mistake that the result has a word for, as a whole run, and what must not be taken for one.

mod support;

use serde_json::json;
use support::*;

const CONFIG: &str = r#"{"tools":[{"name":"echo","input_schema":{"type":"object","properties":{"value":{}},"required":["value"]}}],
                         "code_execution":{"max_tool_calls":3,"kill_grace":1}}"#;

fn hint_of(options: &str, code: &str) -> String {
    let ran = execute(&engine_with(CONFIG, echo), options, code);
    ran.hint().to_string()
}

fn assert_hint(code: &str, words: &[&str]) {
    let hint = hint_of("", code);
    for word in words {
        assert!(hint.contains(word), "{code}: {hint:?} without {word:?}");
    }
}

#[test]
fn a_tool_that_there_is_not_lists_those_that_there_are() {
    assert_hint("from hermes_tools import wiki_search", &["echo"]);
    assert_hint(
        "import importlib\ngetattr(importlib.import_module('hermes_tools'), 'wiki')()",
        &[],
    );
}

#[test]
fn results_are_parsed_already() {
    assert_hint(
        "import json\nfrom hermes_tools import echo\njson.loads(echo(value={'a': 1}))",
        &["parsed already", "json.loads"],
    );
    assert_hint(
        "from hermes_tools import echo\nprint(echo(value='text')['data'])",
        &["string was used as an object"],
    );
    assert_hint(
        "from hermes_tools import echo\nprint(echo(value='text').get('data'))",
        &["string was used as an object"],
    );
}

#[test]
fn a_module_that_is_missing_names_the_interpreter() {
    let ran = execute(
        &engine_with(CONFIG, echo),
        "",
        "import surely_no_such_module",
    );
    let python = ran.text("python").to_string();
    assert!(
        ran.hint().contains("surely_no_such_module") && ran.hint().contains(&python),
        "{}",
        ran.hint()
    );
}

#[test]
fn input_and_loops_and_awaits() {
    assert_hint("input()", &["no standard input", "input()"]);
    assert_hint(
        "import asyncio\nasync def f(): pass\nasyncio.run(f()) if False else await f()\nasyncio.run(f())",
        &["await the coroutine instead of asyncio.run"],
    );
    assert_hint("async def f(): return {}\nf()['a']", &["await it"]);
    assert_hint(
        "from hermes_tools import aio\nasync def f(): return 1\nf()\nprint('done')",
        &["f was never awaited"],
    );
}

#[test]
fn a_relative_path_in_strict_mode() {
    let hint = hint_of(r#"{"mode":"strict"}"#, "open('data.csv')");
    assert!(
        hint.contains("strict mode") && hint.contains("absolute paths"),
        "{hint}"
    );
    assert_eq!(
        hint_of(r#"{"mode":"project"}"#, "open('/no/such/data.csv')"),
        ""
    );
}

#[test]
fn the_limit_of_calls() {
    let code = "from hermes_tools import echo\nfor n in range(4):\n    r = echo(value=n)\nraise SystemExit(str(r))";
    assert_hint(code, &["limit of tool calls"]);
}

#[test]
fn a_timeout_names_the_tool_that_it_waited_for() {
    let config = r#"{"tools":[{"name":"slow"}],"code_execution":{"kill_grace":1}}"#;
    let host = ptc::Host::new()
        .threads(1)
        .dispatch(|call| drop(call.defer()));
    let engine = ptc::Engine::new(config, host).unwrap();
    let ran = execute(
        &engine,
        r#"{"timeout":1}"#,
        "from hermes_tools import slow\nprint('asking')\nslow()",
    );
    assert_eq!(ran.status(), "timeout");
    assert!(ran.hint().contains("waiting for slow"), "{}", ran.hint());
    assert!(ran.output().contains("slow"), "{}", ran.output());
}

#[test]
fn a_script_that_prints_nothing_is_told_that_only_that_comes_back() {
    for code in [
        "x = 1",
        "from hermes_tools import echo\necho(value=1)",
        "print()",
    ] {
        assert_hint(code, &["printed nothing"]);
    }
    assert_eq!(hint_of("", "print(0)"), "");
}

#[test]
fn a_script_that_does_not_parse_is_told_that_nothing_has_run() {
    assert_hint(
        "x = 1\nif x\n    pass",
        &["Nothing of the script has run", "line 2"],
    );
}

#[test]
fn what_only_looks_like_a_mistake_has_no_hint() {
    // What a script prints itself is none of its mistakes.
    let said = json!("EOFError input( ModuleNotFoundError: No module named 'x' 'coroutine' object");
    assert_eq!(hint_of("", &format!("print({said})")), "");
    assert_eq!(hint_of("", "raise ValueError('ordinary')"), "");
}

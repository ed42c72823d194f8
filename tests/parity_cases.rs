//! Cases of the table in `tests/parity.rs` that no other test has a reason to look at.

mod support;

use ptc::{Code, Engine, Host};
use serde_json::json;
use support::*;

const STANDARD: &str = r#"{"tools":["web_search","web_extract","read_file","write_file","search_files","patch","terminal"]}"#;

fn standard(options: &str, code: &str) -> Ran {
    execute(&engine_with(STANDARD, echo), options, code)
}

#[test]
fn a_run_with_some_tools_has_no_others() {
    let code = "import hermes_tools as t\nprint(hasattr(t, 'terminal'), hasattr(t, 'web_search'), hasattr(t, 'read_file'))";
    let ran = standard(r#"{"tools":["terminal","web_search"]}"#, code);
    assert_eq!(ran.printed(), "True True False\n");
}

#[test]
fn a_run_that_says_nothing_of_tools_has_all() {
    let code = "import hermes_tools as t\nprint(all(hasattr(t, n) for n in ('web_search', 'patch', 'terminal')))";
    for options in ["", "{}", r#"{"tools":null}"#] {
        assert_eq!(standard(options, code).printed(), "True\n");
    }
}

#[test]
fn lines_come_in_the_order_in_which_they_were_printed() {
    let ran = run("", "", "for i in range(5): print('line', i)");
    assert_eq!(ran.printed(), "line 0\nline 1\nline 2\nline 3\nline 4\n");
}

#[test]
fn what_was_printed_and_what_was_raised_are_both_there() {
    let ran = run("", "", "print('before')\nraise RuntimeError('the reason')");
    assert_eq!(ran.status(), "error");
    assert!(
        ran.output().starts_with("before\n") && ran.output().contains("RuntimeError: the reason")
    );
    assert_eq!(ran.error(), "RuntimeError: the reason");
}

#[test]
fn json_parse_takes_tabs_line_ends_and_a_mark() {
    let code = r#"from hermes_tools import json_parse
print(json_parse('{"a": "x\ty\nz"}'), json_parse('\ufeff{"b": 1}'))"#;
    assert_eq!(
        standard("", code).printed(),
        "{'a': 'x\\ty\\nz'} {'b': 1}\n"
    );
}

#[test]
fn retry_gives_the_first_result_or_the_last_error() {
    let code = "
from hermes_tools import retry
calls = []
def third():
    calls.append(1)
    if len(calls) < 3: raise ValueError(len(calls))
    return 'third'
print(retry(lambda: 'at once'), retry(third, delay=0.01), len(calls))
def never(): raise KeyError(len(calls))
try: retry(never, attempts=2, delay=0.01)
except KeyError as error: print(repr(error))";
    assert_eq!(
        standard("", code).printed(),
        "at once third 3\nKeyError(3)\n"
    );
}

#[test]
fn the_standard_signatures_are_the_ones_that_models_know() {
    let code = "
import inspect, hermes_tools as t
for name in ('search_files', 'patch'):
    print(name, list(inspect.signature(getattr(t, name)).parameters))
print([word in t.search_files.__doc__ for word in ('content', 'files', 'grep')])";
    let ran = standard("", code);
    assert_eq!(
        ran.printed(),
        "search_files ['pattern', 'target', 'path', 'file_glob', 'limit', 'offset', 'output_mode', 'context', 'order']\n\
         patch ['path', 'old_string', 'new_string', 'replace_all', 'mode', 'patch']\n[True, True, False]\n"
    );
}

#[test]
fn the_definition_names_the_helpers() {
    let text = engine_with(STANDARD, echo).definition("text").unwrap();
    for helper in ["json_parse", "shell_quote", "retry", "parallel"] {
        assert!(text.contains(helper), "{helper}: {text}");
    }
}

#[test]
fn the_secrets_that_agents_have_do_not_reach_a_script() {
    let names = [
        "OPENAI_API_KEY",
        "ANTHROPIC_API_KEY",
        "FIRECRAWL_API_KEY",
        "GITHUB_TOKEN",
        "MODAL_TOKEN_ID",
        "MODAL_TOKEN_SECRET",
        "DB_PASSWORD",
        "MY_PASSWD",
        "AUTH_CREDENTIAL",
        "A_SECRET",
    ];
    let dir = TempDir::new();
    let script = dir.write("s.py", "import os\nprint([n for n in os.environ if os.environ[n] == 'not for scripts'], 'PATH' in os.environ)");
    for mode in ["project", "strict"] {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_ptc"));
        command.args(["run", "--mode", mode]).arg(&script);
        command.envs(names.map(|name| (name, "not for scripts")));
        let output = command.output().unwrap();
        assert_eq!(
            String::from_utf8_lossy(&output.stdout),
            "[] True\n",
            "{mode}"
        );
    }
}

#[test]
fn the_time_zone_of_the_host_is_the_scripts() {
    let dir = TempDir::new();
    let script = dir.write(
        "s.py",
        "import os, time\nprint(os.environ.get('TZ'), time.localtime(0).tm_hour)",
    );
    let print = |zone: Option<&str>| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_ptc"));
        command.arg("run").arg(&script).env_remove("TZ");
        command.envs(zone.map(|zone| ("TZ", zone)));
        String::from_utf8_lossy(&command.output().unwrap().stdout).into_owned()
    };
    assert_eq!(print(Some("XYZ-3")), "XYZ-3 3\n");
    assert!(print(None).starts_with("None "));
}

#[test]
fn beginning_and_end_of_a_long_output_are_there() {
    let code =
        "print('HEAD MARKER')\nfor i in range(15000): print('filler', i)\nprint('TAIL MARKER')";
    let ran = run("", "", code);
    assert!(ran.printed().starts_with("HEAD MARKER\n") && ran.printed().ends_with("TAIL MARKER\n"));
    assert!(
        ran.printed().contains("\n[output truncated at 50KB] ")
            && ran.printed().contains(" bytes are missing here")
    );
}

#[test]
fn a_mode_is_read_in_any_case_and_with_space_around_it() {
    for (mode, expected) in [
        ("project", "project"),
        ("strict", "strict"),
        ("STRICT", "strict"),
        (" Project ", "project"),
    ] {
        let config = json!({"code_execution": {"mode": mode}}).to_string();
        assert_eq!(run(&config, "", "print(1)").text("mode"), expected);
    }
}

#[test]
fn scripts_neither_run_scripts_nor_delegate() {
    let code = "import hermes_tools as t\nprint([n for n in ('execute_code', 'delegate_task') if hasattr(t, n)])";
    for mode in ["project", "strict"] {
        let options = json!({"mode": mode}).to_string();
        assert_eq!(standard(&options, code).printed(), "[]\n");
    }
}

#[test]
fn a_session_is_refused_with_a_reason() {
    let error = engine("")
        .start("x = 41", r#"{"session":"a"}"#)
        .unwrap_err();
    assert_eq!(error.code(), Code::Unsupported);
    assert!(
        error.message().contains("every run starts fresh"),
        "{error}"
    );
}

#[test]
fn an_old_key_of_sessions_does_no_harm() {
    Engine::new(
        r#"{"code_execution":{"kernel_mode":"session"}}"#,
        Host::new(),
    )
    .unwrap();
}

#[test]
fn an_ordinary_error_has_no_hint() {
    for code in [
        "1 / 0",
        "raise ValueError('x')",
        "import sys\nsys.exit(3)",
        "x = {}['y']",
    ] {
        let ran = run("", "", code);
        assert_eq!(
            (ran.status(), ran.has("hint")),
            ("error", false),
            "{:#}",
            ran.json
        );
    }
}

#[test]
fn quotes_that_do_not_fit_are_told_with_their_line() {
    for code in [
        "x = 1\nprint('it's here')",
        "x = 1\nprint(\u{201c}smart\u{201d})",
        "x = 1\nprint('open)",
    ] {
        let ran = run("", "", code);
        assert_eq!(ran.json["started"], false);
        assert!(
            ran.output().contains("SyntaxError") && ran.hint().contains("line 2"),
            "{:#}",
            ran.json
        );
    }
}

#[test]
fn the_words_of_an_exit_are_the_error_whatever_was_logged_before() {
    let log =
        "import logging, sys\ntry: 1 / 0\nexcept ZeroDivisionError: logging.exception('handled')\n";
    let ran = run("", "", &format!("{log}sys.exit('gave up: no data')"));
    assert_eq!(ran.error(), "gave up: no data");
    let ran = run("", "", &format!("{log}raise ValueError('one\\ntwo')"));
    assert_eq!(ran.error(), "ValueError: one");
    // A child that is forked and fails does not speak for the script.
    let fork =
        "import os, sys\nif os.fork() == 0: raise KeyError('child')\nos.wait()\nsys.exit('parent')";
    assert_eq!(run("", "", fork).error(), "parent");
}

#[test]
fn a_script_in_a_markdown_block_runs_and_keeps_its_line_numbers() {
    let ran = run("", "", "```python\nprint('inside')\n1 / 0\n```\n");
    assert_eq!(ran.error(), "ZeroDivisionError: division by zero");
    assert!(
        ran.output().starts_with("inside\n") && ran.output().contains("line 3"),
        "{}",
        ran.output()
    );
    assert_eq!(run("", "", "```\nprint('a')\n```").printed(), "a\n");
}

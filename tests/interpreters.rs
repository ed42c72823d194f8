//! Whole runs with every Python of this machine that is new enough: what a script can do is the same in all of them.

mod support;

use serde_json::json;
use std::path::PathBuf;
use std::process::Command;
use support::*;

/// The interpreters of pyenv and of the system, each version once, from 3.8 on.
fn interpreters() -> Vec<(String, PathBuf)> {
    let home = std::env::var_os("HOME")
        .map(PathBuf::from)
        .unwrap_or_default();
    let installed = std::fs::read_dir(home.join(".pyenv/versions"))
        .into_iter()
        .flatten();
    let installed = installed
        .flatten()
        .map(|entry| entry.path().join("bin/python3"));
    let mut found: Vec<(String, PathBuf)> = installed
        .chain(["/usr/bin/python3".into()])
        .filter_map(version)
        .collect();
    found.sort();
    found.dedup_by(|a, b| a.0 == b.0);
    found
}

fn version(path: PathBuf) -> Option<(String, PathBuf)> {
    let code =
        "import sys; print('%d.%02d' % sys.version_info[:2] if sys.version_info >= (3, 8) else '')";
    let output = Command::new(&path).args(["-c", code]).output().ok()?;
    let version = String::from_utf8_lossy(&output.stdout).trim().to_string();
    (!version.is_empty()).then_some((version, path))
}

fn everywhere(options: &str, code: &str, judge: impl Fn(&str, &Ran)) {
    let found = interpreters();
    assert!(!found.is_empty(), "these tests need a Python 3.8 or newer");
    for (version, path) in found {
        let config = json!({
            "python": path,
            "tools": [{"name": "echo", "input_schema": {"type": "object", "properties": {"value": {}}, "required": ["value"]}}],
            "code_execution": {"kill_grace": 1},
        });
        let options = if options.is_empty() {
            r#"{"mode":"strict"}"#
        } else {
            options
        };
        let ran = execute(&engine_with(&config.to_string(), echo), options, code);
        assert!(ran.text("python").contains("python"), "{:#}", ran.json);
        judge(&version, &ran);
    }
}

#[test]
fn scripts_call_tools_in_every_way() {
    let code = r#"
import sys, threading
from hermes_tools import echo, parallel, aio, retry, json_parse, shell_quote, tools
async def together():
    import asyncio
    return await asyncio.gather(*[aio.echo(value=n) for n in range(3)])
print(echo(value={"a": [1, None, "x"]}), parallel([(echo, n) for n in range(3)]), await together())
print(retry(lambda: echo(value="r")), json_parse('{"a": 1,}'), shell_quote("a b"), tools.names())
print("%d.%02d" % sys.version_info[:2])"#;
    everywhere("", code, |version, ran| {
        let expected = format!(
            "{{'a': [1, None, 'x']}} [0, 1, 2] [0, 1, 2]\nr {{'a': 1}} 'a b' ['echo']\n{version}\n"
        );
        assert_eq!(ran.printed(), expected, "{version}");
    });
}

#[test]
fn failures_look_the_same() {
    everywhere(
        "",
        "def f():\n    raise ValueError('the reason')\nf()",
        |version, ran| {
            assert_eq!(
                (ran.status(), ran.error()),
                ("error", "ValueError: the reason"),
                "{version}"
            );
            assert!(
                ran.output().contains("line 2, in f") && !ran.output().contains("sitecustomize"),
                "{version}: {}",
                ran.output()
            );
        },
    );
    everywhere(
        "",
        "from hermes_tools import echo\necho(valu=1)",
        |version, ran| {
            assert!(
                ran.error().contains("valu") && ran.error().contains("value"),
                "{version}: {}",
                ran.error()
            );
        },
    );
    everywhere("", "def f(n): return f(n + 1)\nf(0)", |version, ran| {
        assert!(
            ran.error().starts_with("RecursionError") && ran.output().len() < 6000,
            "{version}: {}",
            ran.output()
        );
    });
}

#[test]
fn what_does_not_parse_never_starts() {
    for code in [
        "print('A'\n",
        "if x\n    pass",
        "from hermes_tools import echo\nprint(1)\nehco(value=1)",
    ] {
        everywhere("", code, |version, ran| {
            assert_eq!(ran.json["started"], false, "{version}: {:#}", ran.json);
            assert!(
                !ran.has("stdout_bytes") && ran.calls().is_empty(),
                "{version}"
            );
        });
    }
}

#[test]
fn a_timeout_keeps_what_was_printed() {
    let code = "print('before', end='')\nimport time\ntime.sleep(1000)";
    everywhere(r#"{"timeout":1,"mode":"strict"}"#, code, |version, ran| {
        assert_eq!(ran.status(), "timeout", "{version}");
        assert!(
            ran.output().starts_with("before\n"),
            "{version}: {}",
            ran.output()
        );
        ran.assert_nothing_survived();
    });
}

//! What several commands take alike: the configuration with what the command line adds to it, and the script.

use super::args::{Given, Known};
use super::tools::CommandTools;
use super::Refusal::{self, Usage};
use crate::json::{self, ObjectWriter, Value};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(super) const fn option(name: &'static str, value: Option<&'static str>) -> Known {
    Known { name, value }
}

/// The options of every command that makes an engine.
pub(super) const OPTIONS: [Known; 9] = [
    option("--tool", Some("NAME=COMMAND")),
    option("--builtin", Some("all|NAMES")),
    option("--config", Some("FILE.json")),
    option("--mode", Some("project|strict")),
    option("--cwd", Some("DIRECTORY")),
    option("--python", Some("PATH")),
    option("--json", None),
    option("--help", None),
    option("-h", None),
];

/// Their lines in a command's help; `--json` says something else in each.
macro_rules! options_help {
    () => {
        "  --tool NAME=COMMAND      serve the tool NAME with a shell command: it gets the arguments as JSON on standard input
                           and prints the result as JSON (anything else is text); a non-zero exit is a failed call.
                           Repeatable.
  --builtin all|NAMES      have ptc serve read_file, write_file, search_files, patch and terminal itself: all of them,
                           or those named, separated by commas
  --config FILE.json       configuration: timeouts, limits, tool specifications (see the README)
  --mode project|strict    in the working directory with the active virtual environment, or in a directory of its own
  --cwd DIRECTORY          working directory of the script
  --python PATH            interpreter to use instead of the first python3 on PATH
"
    };
}
pub(super) use options_help;

pub(super) fn wants_help(given: &Given) -> bool {
    given.has("--help") || given.has("-h")
}

/// No operands are taken.
pub(super) fn refuse_operands(given: &Given) -> Result<(), Refusal> {
    match given.operands.first() {
        Some(operand) => Err(Usage(format!(
            "what is {operand:?}? This takes options only"
        ))),
        None => Ok(()),
    }
}

/// The tools that have a command, and the configuration with all that the command line says in it.
pub(super) fn engine_parts(given: &Given) -> Result<(Arc<CommandTools>, Value), Refusal> {
    let tools = CommandTools::parse(given.all("--tool"), cwd(given)?)?;
    let config = configuration(given, &tools)?;
    Ok((Arc::new(tools), config))
}

/// Where the tools run, and the script unless its mode or the configuration say otherwise.
fn cwd(given: &Given) -> Result<PathBuf, Refusal> {
    match given.one("--cwd") {
        // Elsewhere, which is where the engine would fall back to, is not what the caller wants.
        Some(dir) if !Path::new(dir).is_dir() => Err(Usage(format!(
            "--cwd expects a directory, and {dir:?} is none"
        ))),
        Some(dir) => Ok(dir.into()),
        None => Ok(std::env::current_dir().unwrap_or_else(|_| "/".into())),
    }
}

/// The text of the one script; `verb` is what is to be done with it.
pub(super) fn script(given: &Given, verb: &str) -> Result<Vec<u8>, Refusal> {
    let path = script_path(given, verb)?;
    let mut code = Vec::new();
    let read = match path {
        "-" => io::stdin().read_to_end(&mut code).map(drop),
        path => std::fs::read(path).map(|bytes| code = bytes),
    };
    read.map_err(|e| Usage(format!("cannot read {path}: {e}")))?;
    Ok(code)
}

/// Where the one script is.
pub(super) fn script_path<'a>(given: &'a Given, verb: &str) -> Result<&'a str, Refusal> {
    match given.operands.as_slice() {
        [path] => Ok(path),
        [] => Err(Usage(format!(
            "say which script to {verb}: `ptc {verb} SCRIPT.py`, or - for standard input"
        ))),
        [_, further, ..] => Err(Usage(format!(
            "only one script at a time, and scripts take no arguments; what is {further:?}?"
        ))),
    }
}

fn configuration(given: &Given, tools: &CommandTools) -> Result<Value, Refusal> {
    let mut config = match given.one("--config") {
        None => Value::Object(Vec::new()),
        Some(path) => {
            let text = std::fs::read_to_string(path)
                .map_err(|e| Usage(format!("cannot read {path}: {e}")))?;
            let text = text.trim_start_matches('\u{feff}');
            json::parse(text).map_err(|e| Usage(format!("{path} is not valid JSON: {e}")))?
        }
    };
    tools.add_to(&mut config)?;
    if let Some(python) = given.one("--python") {
        set(&mut config, "python", Value::String(python.into()));
    }
    for names in given.all("--builtin") {
        add_built_ins(&mut config, names)?;
    }
    if let Some(level) = given.one("--isolation") {
        set_isolation(&mut config, level);
    }
    Ok(config)
}

/// Puts into `config` what a run would get as its options, for commands that start none.
pub(super) fn add_session(config: &mut Value, given: &Given) {
    for (section, key, option) in [
        ("code_execution", "mode", "--mode"),
        ("terminal", "cwd", "--cwd"),
    ] {
        if let Some(value) = given.one(option) {
            set_in(config, section, key, Value::String(value.into()));
        }
    }
}

/// As [`set`], in the object `section` of `config`.
pub(super) fn set_in(config: &mut Value, section: &str, key: &str, value: Value) {
    let mut inner = section_of(config, section);
    set(&mut inner, key, value);
    set(config, section, inner);
}

fn section_of(config: &Value, name: &str) -> Value {
    let found = config.get(name).cloned();
    found.unwrap_or_else(|| Value::Object(Vec::new()))
}

/// The options of a run.
pub(super) fn options(given: &Given) -> Result<String, Refusal> {
    let mut options = ObjectWriter::default();
    for (option, key) in [("--mode", "mode"), ("--cwd", "cwd")] {
        if let Some(value) = given.one(option) {
            options.string(key, value);
        }
    }
    for (option, key) in [
        ("--timeout", "timeout"),
        ("--max-tool-calls", "max_tool_calls"),
    ] {
        if let Some(value) = given.one(option) {
            let is_number = matches!(json::parse(value), Ok(Value::Number(_)));
            if !is_number {
                return Err(Usage(format!("{option} expects a number, got {value:?}")));
            }
            options.raw(key, value);
        }
    }
    Ok(options.finish())
}

/// Gives the object `to` the member `key`; what is no object is left to the engine, which says where it is wrong.
pub(super) fn set(to: &mut Value, key: &str, value: Value) {
    if let Value::Object(members) = to {
        members.retain(|(known, _)| known != key);
        members.push((key.into(), value));
    }
}

/// Adds `names` to `builtin_tools`. Which names there are is the engine's to say.
fn add_built_ins(config: &mut Value, names: &str) -> Result<(), Refusal> {
    const KEY: &str = "builtin_tools";
    let names: Vec<&str> = names.split(',').map(str::trim).collect();
    if names.iter().any(|name| name.is_empty()) {
        let expected = "--builtin expects \"all\" or names separated by commas";
        return Err(Usage(format!("{expected}, got {:?}", names.join(","))));
    }
    if names.contains(&"all") {
        set(config, KEY, Value::String("all".into()));
        return Ok(());
    }
    let mut list = match config.get(KEY) {
        None => Vec::new(),
        Some(Value::Array(list)) => list.clone(),
        // All of them, or a mistake that the engine names.
        Some(_) => return Ok(()),
    };
    for name in names {
        if !list.iter().any(|known| known.as_str() == Some(name)) {
            list.push(Value::String(name.into()));
        }
    }
    set(config, KEY, Value::Array(list));
    Ok(())
}

/// Another level than the configuration's; what it says beyond the level stays where it means something.
fn set_isolation(config: &mut Value, level: &str) {
    let code = section_of(config, "code_execution");
    let isolation = match code.get("isolation") {
        Some(Value::Object(members)) => {
            let stays = |key: &str| level == "sandbox" || key == "require";
            let members = members.iter().filter(|(key, _)| stays(key));
            let mut isolation = Value::Object(members.cloned().collect());
            set(&mut isolation, "level", Value::String(level.into()));
            isolation
        }
        _ => Value::String(level.into()),
    };
    set_in(config, "code_execution", "isolation", isolation);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::args;

    fn configured(config: &str, words: &[&str]) -> Result<String, Refusal> {
        let known = [&OPTIONS[..], &[option("--isolation", Some("LEVEL"))]].concat();
        let given = args::parse(words.iter().map(|w| w.to_string()).collect(), &known).unwrap();
        let mut config = json::parse(config).unwrap();
        for names in given.all("--builtin") {
            add_built_ins(&mut config, names)?;
        }
        if let Some(level) = given.one("--isolation") {
            set_isolation(&mut config, level);
        }
        Ok(config.to_string())
    }

    #[test]
    fn built_in_tools_are_added_to_those_of_the_configuration() {
        let cases: [(&str, &[&str], &str); 6] = [
            ("{}", &["--builtin", "all"], r#"{"builtin_tools":"all"}"#),
            (
                "{}",
                &["--builtin", "patch, terminal", "--builtin=patch"],
                r#"{"builtin_tools":["patch","terminal"]}"#,
            ),
            (
                r#"{"builtin_tools":["patch"]}"#,
                &["--builtin", "read_file,patch"],
                r#"{"builtin_tools":["patch","read_file"]}"#,
            ),
            (
                r#"{"builtin_tools":["patch"]}"#,
                &["--builtin", "patch,all"],
                r#"{"builtin_tools":"all"}"#,
            ),
            (
                r#"{"builtin_tools":"all"}"#,
                &["--builtin", "patch"],
                r#"{"builtin_tools":"all"}"#,
            ),
            (
                r#"{"builtin_tools":5}"#,
                &["--builtin", "patch"],
                r#"{"builtin_tools":5}"#,
            ),
        ];
        for (config, words, expected) in cases {
            assert_eq!(configured(config, words).unwrap(), expected, "{words:?}");
        }
        for bad in ["", "patch,", ","] {
            let refused = configured("{}", &["--builtin", bad]);
            assert!(matches!(refused, Err(Usage(_))), "{bad:?}");
        }
    }

    #[test]
    fn a_level_replaces_the_level_and_keeps_what_still_holds() {
        let limited = r#"{"code_execution":{"timeout":5,"isolation":{"level":"sandbox","memory_mb":64,"require":true}}}"#;
        let cases = [
            ("{}", "none", r#"{"code_execution":{"isolation":"none"}}"#),
            (
                limited,
                "guard",
                r#"{"code_execution":{"timeout":5,"isolation":{"require":true,"level":"guard"}}}"#,
            ),
            (
                limited,
                "sandbox",
                r#"{"code_execution":{"timeout":5,"isolation":{"memory_mb":64,"require":true,"level":"sandbox"}}}"#,
            ),
            (
                r#"{"code_execution":3}"#,
                "guard",
                r#"{"code_execution":3}"#,
            ),
        ];
        for (config, level, expected) in cases {
            let made = configured(config, &["--isolation", level]).unwrap();
            assert_eq!(made, expected);
        }
    }
}

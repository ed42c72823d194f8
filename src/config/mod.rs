//! The configuration of an engine and the options of a run: every key, its default, its bounds.
//!
//! What comes out of here is complete and valid; nothing behind it looks at JSON again or asks whether a limit makes
//! sense. A bad value or an unknown key is an error that begins with the JSON path and says what was expected. `null`
//! means "the default", for every key.
//!
//! The key tree is that of agents that have this feature already, so their configuration file is valid here. Hence
//! top-level keys that are not ours are ignored, and in `terminal` also the keys by which those agents choose and
//! equip their command backend (`backend`, `timeout`, `docker_…`, see [`is_foreign_terminal_key`]). Anything else
//! that is unknown inside a section of ours is an error: it is most likely a misspelt key.

mod isolation;
mod options;

pub(crate) use isolation::{Isolation, IsolationLevel, Limits};
pub(crate) use options::RunOptions;

use crate::error::{Error, Result};
use crate::json::reader::{self, Section};
use crate::json::{self, Value};
use crate::tool::{self, names, ToolSpec};
use std::path::PathBuf;
use std::time::Duration;

/// The longest time that a limit in seconds may name: a year, far below where clocks overflow.
const MAX_SECONDS: f64 = 31_536_000.0;
/// The most that is kept of one stream.
const MAX_KEPT_BYTES: u64 = 1 << 30;
/// The bounds of one message: room for any refusal, and lengths that every language's 32-bit integers hold.
const MESSAGE_BYTES: std::ops::RangeInclusive<u64> = 1024..=(1 << 31) - 1;

const MODES: [(&str, Mode); 2] = [("project", Mode::Project), ("strict", Mode::Strict)];
const ON_TOOL_ERROR: [(&str, OnToolError); 2] = [
    ("return", OnToolError::Return),
    ("raise", OnToolError::Raise),
];
const TERMINAL_ENV: [(&str, TerminalEnv); 2] = [
    ("scrubbed", TerminalEnv::Scrubbed),
    ("host", TerminalEnv::Host),
];

const CODE_EXECUTION_KEYS: [&str; 16] = [
    "mode",
    "timeout",
    "kill_grace",
    "max_tool_calls",
    "max_parallel_calls",
    "max_stdout_bytes",
    "max_stderr_bytes",
    "max_message_bytes",
    "spill_dir",
    "max_spill_bytes",
    "module_name",
    "on_tool_error",
    "isolation",
    "warm",
    "allow_mcp",
    // An old key of the peers that chose between a child per call and a session; accepted and without effect.
    "kernel_mode",
];
const TERMINAL_KEYS: [&str; 3] = ["env_passthrough", "cwd", "env"];

/// Which interpreter and working directory a script gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// The session's directory and the active virtual environment.
    Project,
    /// The staging directory and the host's own interpreter.
    Strict,
}

impl Mode {
    pub(crate) fn name(self) -> &'static str {
        name_of(self, &MODES)
    }
}

/// What a script sees of a tool call that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnToolError {
    /// A value, `{"error": …}`.
    Return,
    /// The exception `ToolError`.
    Raise,
}

impl OnToolError {
    pub(crate) fn name(self) -> &'static str {
        name_of(self, &ON_TOOL_ERROR)
    }
}

/// Which environment the commands of the built-in `terminal` get.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TerminalEnv {
    /// The script's own, scrubbed.
    Scrubbed,
    /// All that the host has.
    Host,
}

/// A time limit, and how it was written.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Seconds {
    pub(crate) duration: Duration,
    /// The number as configured: `300` for "timed out after 300s".
    pub(crate) text: String,
}

impl Seconds {
    fn whole(seconds: u64) -> Self {
        Seconds {
            duration: Duration::from_secs(seconds),
            text: seconds.to_string(),
        }
    }
}

/// An engine's configuration.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    pub(crate) mode: Mode,
    pub(crate) timeout: Seconds,
    pub(crate) kill_grace: Seconds,
    pub(crate) max_tool_calls: u64,
    pub(crate) max_parallel_calls: usize,
    pub(crate) max_stdout_bytes: usize,
    pub(crate) max_stderr_bytes: usize,
    pub(crate) max_message_bytes: usize,
    pub(crate) spill_dir: Option<PathBuf>,
    pub(crate) max_spill_bytes: u64,
    pub(crate) module_name: String,
    pub(crate) on_tool_error: OnToolError,
    pub(crate) isolation: Isolation,
    pub(crate) env_passthrough: Vec<String>,
    /// Absolute; `None`: the host's own at the start of a run.
    pub(crate) cwd: Option<PathBuf>,
    pub(crate) terminal_env: TerminalEnv,
    /// A path (absolute) or a name to be found on PATH; `None`: the first `python3` on PATH.
    pub(crate) python: Option<String>,
    /// The folders that bound the built-in file tools, absolute; empty: no bound.
    pub(crate) roots: Vec<PathBuf>,
    /// All that a script can call, in the order of the configuration, built-in tools last.
    pub(crate) tools: Vec<ToolSpec>,
}

impl Config {
    /// Reads a configuration; text without anything in it means the defaults.
    pub(crate) fn parse(json: &str) -> Result<Config> {
        let document = parse_document("configuration", json)?;
        let root = Section::new("", &document)?;
        let code = root.section("code_execution")?;
        code.only(&CODE_EXECUTION_KEYS, |_| false)?;
        let terminal = root.section("terminal")?;
        terminal.only(&TERMINAL_KEYS, is_foreign_terminal_key)?;
        let allow_mcp = code.boolean("allow_mcp")?.unwrap_or(false);
        check_warm(&code)?;
        Ok(Config {
            mode: code.choice("mode", &MODES)?.unwrap_or(Mode::Project),
            timeout: timeout(&code)?.unwrap_or_else(|| Seconds::whole(300)),
            kill_grace: kill_grace(&code)?.unwrap_or_else(|| Seconds::whole(5)),
            max_tool_calls: max_tool_calls(&code)?.unwrap_or(50),
            max_parallel_calls: size(&code, "max_parallel_calls", 1..=1024, 16)?,
            max_stdout_bytes: size(&code, "max_stdout_bytes", 1..=MAX_KEPT_BYTES, 50_000)?,
            max_stderr_bytes: size(&code, "max_stderr_bytes", 0..=MAX_KEPT_BYTES, 10_000)?,
            max_message_bytes: size(&code, "max_message_bytes", MESSAGE_BYTES, 64 << 20)?,
            spill_dir: code.path("spill_dir")?,
            max_spill_bytes: code
                .integer("max_spill_bytes", 1..=1 << 40)?
                .unwrap_or(5_000_000),
            module_name: module_name(&code)?,
            on_tool_error: code
                .choice("on_tool_error", &ON_TOOL_ERROR)?
                .unwrap_or(OnToolError::Return),
            isolation: Isolation::parse(&code, "isolation")?,
            env_passthrough: env_names(&terminal, "env_passthrough")?,
            cwd: terminal.path("cwd")?,
            terminal_env: terminal
                .choice("env", &TERMINAL_ENV)?
                .unwrap_or(TerminalEnv::Scrubbed),
            python: python(&root)?,
            roots: root.paths("roots")?,
            tools: tool::parse_all(&root, allow_mcp)?,
        })
    }
}

/// Parses a document whose root has to be an object; empty text is an empty object.
fn parse_document(what: &str, json: &str) -> Result<Value> {
    // Editors on Windows like to begin a file with a byte order mark.
    let json = json.trim_start_matches('\u{feff}').trim();
    if json.is_empty() {
        return Ok(Value::Object(Vec::new()));
    }
    match json::parse(json) {
        Ok(Value::Null) => Ok(Value::Object(Vec::new())),
        Ok(value @ Value::Object(_)) => Ok(value),
        Ok(value) => Err(reader::mismatch(what, "a JSON object", &value)),
        Err(e) => Err(Error::config(what, format_args!("not valid JSON: {e}"))),
    }
}

/// Whether `key` is one by which the peers set up their own command backend. Their values mean nothing to us and are
/// not looked at.
fn is_foreign_terminal_key(key: &str) -> bool {
    const NAMES: [&str; 9] = [
        "backend",
        "env_type",
        "timeout",
        "lifetime_seconds",
        "persistent_shell",
        "home_mode",
        "auto_source_bashrc",
        "modal_mode",
        "host_cwd",
    ];
    const FAMILIES: [&str; 9] = [
        "container_",
        "docker_",
        "singularity_",
        "modal_",
        "daytona_",
        "vercel_",
        "ssh_",
        "sudo_",
        "shell_",
    ];
    NAMES.contains(&key) || FAMILIES.iter().any(|family| key.starts_with(family))
}

fn timeout(section: &Section) -> Result<Option<Seconds>> {
    seconds(
        section,
        "timeout",
        "a number of seconds > 0",
        MAX_SECONDS,
        |d| !d.is_zero(),
    )
}

fn kill_grace(section: &Section) -> Result<Option<Seconds>> {
    seconds(
        section,
        "kill_grace",
        "a number of seconds >= 0",
        3600.0,
        |_| true,
    )
}

/// A run that may not call tools at all is a reasonable thing to want, hence 0.
fn max_tool_calls(section: &Section) -> Result<Option<u64>> {
    section.integer("max_tool_calls", 0..=1_000_000_000)
}

/// A number of seconds that `fits`, at most `most`.
fn seconds(
    section: &Section,
    key: &str,
    expected: &str,
    most: f64,
    fits: impl Fn(Duration) -> bool,
) -> Result<Option<Seconds>> {
    let Some(value) = section.get(key) else {
        return Ok(None);
    };
    let Value::Number(text) = value else {
        return Err(section.mismatch(key, expected));
    };
    let number: f64 = text.parse().map_err(|_| section.mismatch(key, expected))?;
    if number > most {
        return Err(section.mismatch(key, format_args!("{expected} and at most {most}")));
    }
    match Duration::try_from_secs_f64(number)
        .ok()
        .filter(|d| fits(*d))
    {
        Some(duration) => Ok(Some(Seconds {
            duration,
            text: text.clone(),
        })),
        None => Err(section.mismatch(key, expected)),
    }
}

fn size(
    section: &Section,
    key: &str,
    range: std::ops::RangeInclusive<u64>,
    default: usize,
) -> Result<usize> {
    let number = section.integer(key, range)?;
    Ok(number.map_or(default, |n| usize::try_from(n).unwrap_or(usize::MAX)))
}

fn module_name(code: &Section) -> Result<String> {
    let Some(name) = code.string("module_name")? else {
        return Ok("hermes_tools".to_string());
    };
    match names::module_name_problem(name) {
        None => Ok(name.to_string()),
        Some(problem) => Err(code.mismatch(
            "module_name",
            format_args!("a name that scripts can import ({problem})"),
        )),
    }
}

/// The fork server's settings. There is none yet, so that every run starts cold: slower, and otherwise the same.
fn check_warm(code: &Section) -> Result<()> {
    let expected = "true, false or an object with `preload`";
    match code.get("warm") {
        None | Some(Value::Bool(_)) => Ok(()),
        Some(Value::String(word)) if word == "off" || word == "on" => Ok(()),
        Some(Value::Object(_)) => {
            let section = code.section("warm")?;
            section.only(&["preload"], |_| false)?;
            section
                .strings("preload", "module name", names::is_dotted_name)
                .map(drop)
        }
        Some(_) => Err(code.mismatch("warm", expected)),
    }
}

fn python(root: &Section) -> Result<Option<String>> {
    let Some(text) = root.string("python")? else {
        return Ok(None);
    };
    if text.trim().is_empty() || text.contains('\0') {
        return Err(root.mismatch("python", "the path or name of a Python interpreter"));
    }
    // A bare name is looked up on PATH and must stay bare.
    if !text.contains('/') && !text.starts_with('~') {
        return Ok(Some(text.to_string()));
    }
    let path = root.path("python")?;
    Ok(path.map(|path| path.to_string_lossy().into_owned()))
}

/// A list of names of environment variables, each once.
fn env_names(section: &Section, key: &str) -> Result<Vec<String>> {
    let mut names = section.strings(key, "environment variable name", is_env_name)?;
    let mut seen = std::collections::HashSet::new();
    names.retain(|name| seen.insert(name.clone()));
    Ok(names)
}

fn is_env_name(name: &str) -> bool {
    !name.is_empty() && !name.contains(['=', '\0'])
}

fn name_of<T: Copy + PartialEq>(value: T, choices: &[(&'static str, T)]) -> &'static str {
    let found = choices.iter().find(|(_, choice)| *choice == value);
    found.map_or("", |(name, _)| name)
}

#[cfg(test)]
mod tests;

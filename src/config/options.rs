//! The options of one run, laid over the engine's configuration.

use super::{
    env_names, is_env_name, max_tool_calls, parse_document, timeout, Config, Mode, Seconds, MODES,
};
use crate::error::{Error, Result};
use crate::json::reader::{mismatch, Section};
use crate::suggest::did_you_mean;
use std::path::PathBuf;

const KEYS: [&str; 8] = [
    "mode",
    "cwd",
    "timeout",
    "max_tool_calls",
    "tools",
    "env_passthrough",
    "env",
    "session",
];

/// What holds for one run: its own options, and the configuration where it has none.
#[derive(Debug, Clone)]
pub(crate) struct RunOptions {
    pub(crate) mode: Mode,
    /// Absolute; `None`: the host's own.
    pub(crate) cwd: Option<PathBuf>,
    pub(crate) timeout: Seconds,
    pub(crate) max_tool_calls: u64,
    /// The names of the tools that this run may call, in the engine's order; `None`: all. An empty list is none at all.
    pub(crate) tools: Option<Vec<String>>,
    /// The engine's names and the run's.
    pub(crate) env_passthrough: Vec<String>,
    /// Pairs that the child gets on top of the scrubbed environment.
    pub(crate) env: Vec<(String, String)>,
    /// The session in whose interpreter the script runs.
    pub(crate) session: Option<String>,
}

impl RunOptions {
    /// Reads the options of a run of an engine with `config`; text without anything in it means the engine's settings.
    pub(crate) fn parse(json: &str, config: &Config) -> Result<RunOptions> {
        let document = parse_document("options", json)?;
        let options = Section::new("options", &document)?;
        options.only(&KEYS, |_| false)?;
        Ok(RunOptions {
            mode: options.choice("mode", &MODES)?.unwrap_or(config.mode),
            cwd: options.path("cwd")?.or_else(|| config.cwd.clone()),
            timeout: timeout(&options)?.unwrap_or_else(|| config.timeout.clone()),
            max_tool_calls: max_tool_calls(&options)?.unwrap_or(config.max_tool_calls),
            tools: tools(&options, config)?,
            env_passthrough: passthrough(&options, config)?,
            env: env(&options)?,
            session: session(&options)?,
        })
    }
}

/// The subset of the engine's tools, in the engine's order, so that the same set is the same list.
fn tools(options: &Section, config: &Config) -> Result<Option<Vec<String>>> {
    if options.get("tools").is_none() {
        return Ok(None);
    }
    let known = || config.tools.iter().map(|tool| tool.name.as_str());
    let chosen = options.strings("tools", "tool name", |name| !name.is_empty())?;
    for (i, name) in chosen.iter().enumerate() {
        if !known().any(|k| k == name) {
            let available = known().collect::<Vec<_>>().join(", ");
            return Err(Error::config(
                &options.item("tools", i),
                format_args!(
                    "this engine has no tool {name:?}{}; it has: {}",
                    did_you_mean(name, known()),
                    if available.is_empty() {
                        "none"
                    } else {
                        &available
                    }
                ),
            ));
        }
    }
    let subset = known().filter(|k| chosen.iter().any(|name| name == k));
    Ok(Some(subset.map(str::to_string).collect()))
}

fn passthrough(options: &Section, config: &Config) -> Result<Vec<String>> {
    let mut names = config.env_passthrough.clone();
    for name in env_names(options, "env_passthrough")? {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    Ok(names)
}

fn env(options: &Section) -> Result<Vec<(String, String)>> {
    let section = options.section("env")?;
    let mut pairs: Vec<(String, String)> = Vec::new();
    for (name, value) in section.members() {
        let at = section.at(name);
        if !is_env_name(name) {
            return Err(Error::config(&at, "is no name of an environment variable"));
        }
        let text = value.as_str().filter(|text| !text.contains('\0'));
        let text = text.ok_or_else(|| mismatch(&at, "a string without NUL characters", value))?;
        // Of two members with one name the last one counts, as everywhere.
        pairs.retain(|(known, _)| known != name);
        pairs.push((name.to_string(), text.to_string()));
    }
    Ok(pairs)
}

fn session(options: &Section) -> Result<Option<String>> {
    let name = options.string("session")?;
    match name {
        Some(name) if name.is_empty() || name.len() > 256 || name.contains(char::is_control) => {
            Err(options.mismatch(
                "session",
                "a name of 1 to 256 bytes without control characters",
            ))
        }
        _ => Ok(name.map(str::to_string)),
    }
}

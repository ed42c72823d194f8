//! The tool definition of `execute_code`: what a host shows its model.
//!
//! Its text depends on nothing but the configuration, in a fixed order whatever order the host listed its tools in,
//! so that a prompt cache keeps it. With many tools it grows no further than [`MAX_BYTES`]: entries get shorter, and
//! what no longer fits is found from inside a script with `tools.search` and `tools.describe`.

use crate::config::{Config, Mode, OnToolError};
use crate::error::{Code, Error, Result};
use crate::json::{quote, ObjectWriter};
use crate::python::stubs::summary;
use crate::suggest::did_you_mean;
use crate::tool::schema::one_line;
use crate::tool::standard::STANDARD;
use crate::tool::ToolSpec;
use std::path::Path;

/// The name under which the tool is offered.
pub(crate) const NAME: &str = "execute_code";
/// The most that a definition takes, in bytes of its JSON: 4,000 tokens at four bytes each.
pub(crate) const MAX_BYTES: usize = 16_000;
/// What stands around the description in the longest of the formats.
const ENVELOPE: usize = 800;
/// The bounds of one tool's entry, in characters.
const MAX_SIGNATURE: usize = 400;
const MAX_DESCRIPTION: usize = 400;
const MAX_SHAPE: usize = 300;

const CODE_ARGUMENT: &str = "The Python script. Whatever it prints is the result.";

/// What a definition is written for.
#[derive(Debug, Clone)]
pub(crate) struct DefinitionContext<'a> {
    pub(crate) config: &'a Config,
    pub(crate) mode: Mode,
    /// The working directory, where it is known beforehand.
    pub(crate) cwd: Option<&'a Path>,
    /// The interpreter, where it is known beforehand.
    pub(crate) interpreter: Option<&'a str>,
}

impl<'a> DefinitionContext<'a> {
    /// What `config` says of itself.
    pub(crate) fn of(config: &'a Config) -> Self {
        DefinitionContext {
            config,
            mode: config.mode,
            cwd: config.cwd.as_deref(),
            interpreter: None,
        }
    }
}

#[derive(Clone, Copy)]
enum Format {
    Anthropic,
    OpenAi,
    Mcp,
    Text,
}

const FORMATS: [(&str, Format); 4] = [
    ("anthropic", Format::Anthropic),
    ("openai", Format::OpenAi),
    ("mcp", Format::Mcp),
    ("text", Format::Text),
];

/// How large a definition is and what it shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct DefinitionStats {
    /// The size of the whole, in bytes.
    pub bytes: usize,
    /// What a model will count, about: four bytes each.
    pub tokens: usize,
    /// How many tools scripts can call.
    pub tools: usize,
    /// How many of them have their signature in it; the others are only counted.
    pub tools_shown: usize,
}

/// The definition in `format`: `anthropic`, `openai` and `mcp` are JSON objects as those interfaces expect them,
/// `text` is the description alone.
///
/// # Errors
/// [`Code::InvalidArgument`] for any other format.
pub(crate) fn definition(format: &str, context: &DefinitionContext) -> Result<String> {
    let format = parse_format(format)?;
    Ok(envelope(format, &description(context).0))
}

/// The size of the definition in `format`.
pub(crate) fn stats(format: &str, context: &DefinitionContext) -> Result<DefinitionStats> {
    let format = parse_format(format)?;
    let (text, tools_shown) = description(context);
    let bytes = envelope(format, &text).len();
    Ok(DefinitionStats {
        bytes,
        tokens: bytes.div_ceil(4),
        tools: context.config.tools.len(),
        tools_shown,
    })
}

fn parse_format(name: &str) -> Result<Format> {
    let found = FORMATS.iter().find(|(known, _)| *known == name);
    found.map(|(_, format)| *format).ok_or_else(|| {
        let names = FORMATS.map(|(known, _)| known);
        let hint = did_you_mean(name, names);
        let message = format!("format: expected {}, got {name:?}{hint}", names.join(", "));
        Error::new(Code::InvalidArgument, message)
    })
}

fn envelope(format: Format, description: &str) -> String {
    let schema = schema();
    let mut out = ObjectWriter::default();
    match format {
        Format::Text => return description.to_string(),
        Format::Anthropic => out
            .string("name", NAME)
            .string("description", description)
            .raw("input_schema", schema),
        Format::Mcp => out
            .string("name", NAME)
            .string("title", "Execute code")
            .string("description", description)
            .raw("inputSchema", schema),
        Format::OpenAi => {
            let mut function = ObjectWriter::default();
            function
                .string("name", NAME)
                .string("description", description)
                .raw("parameters", schema);
            out.string("type", "function")
                .raw("function", function.finish())
        }
    };
    out.finish()
}

fn schema() -> String {
    let mut code = ObjectWriter::default();
    code.string("type", "string")
        .string("description", CODE_ARGUMENT);
    let mut properties = ObjectWriter::default();
    properties.raw("code", code.finish());
    let mut schema = ObjectWriter::default();
    schema
        .string("type", "object")
        .raw("properties", properties.finish())
        .raw("required", r#"["code"]"#)
        .raw("additionalProperties", false);
    schema.finish()
}

/// The description, and how many tools have their signature in it.
fn description(context: &DefinitionContext) -> (String, usize) {
    let tools = in_order(&context.config.tools);
    let before = opening(&tools);
    let after = [
        example(context, &tools),
        results(context, &tools),
        limits(context),
        place(context),
    ]
    .into_iter()
    .filter(|part| !part.is_empty())
    .collect::<Vec<_>>()
    .join("\n\n");
    let room = MAX_BYTES.saturating_sub(ENVELOPE + weight(&before) + weight(&after));
    let (listing, shown) = listing(context, &tools, room);
    (format!("{before}\n\n{listing}\n\n{after}"), shown)
}

/// What `text` takes inside a JSON string.
fn weight(text: &str) -> usize {
    quote(text).len()
}

/// The standard tools in their own order, then the others by name.
fn in_order(tools: &[ToolSpec]) -> Vec<&ToolSpec> {
    let place = |tool: &ToolSpec| {
        STANDARD
            .iter()
            .position(|standard| standard.name == tool.name)
    };
    let mut sorted: Vec<&ToolSpec> = tools.iter().collect();
    sorted.sort_by_key(|tool| (place(tool).unwrap_or(STANDARD.len()), tool.name.as_str()));
    sorted
}

fn has(tools: &[&ToolSpec], name: &str) -> bool {
    tools.iter().any(|tool| tool.name == name)
}

fn opening(tools: &[&ToolSpec]) -> String {
    let command = match has(tools, "terminal") {
        true => "call the terminal tool for it",
        false => "a script around it (subprocess, os.system) adds nothing",
    };
    let calls = match tools.is_empty() {
        true => "Run a Python script. Only what it prints comes back to you.".to_string(),
        false => "Run a Python script that calls tools as ordinary functions. Only what the script prints comes back to \
                  you; the results of the calls inside it stay out of the conversation."
            .to_string(),
    };
    format!(
        "{calls}\n\n\
         Use it for three or more tool calls with logic between them, to filter or condense large results before you \
         read them, for loops over many items, and for branches that depend on what a call returned.\n\
         Do not use it for a single tool call, nor where you have to read and judge each result yourself before the \
         next step: call the tool directly. Do not wrap a single shell command in a script: {command}."
    )
}

/// The tools that a script can call, in as much detail as `room` bytes of JSON allow, and how many of them.
fn listing(context: &DefinitionContext, tools: &[&ToolSpec], room: usize) -> (String, usize) {
    let module = &context.config.module_name;
    if tools.is_empty() {
        return ("No tools can be called from this script.".to_string(), 0);
    }
    let head = format!("Tools, imported from {module}:\n");
    let join = |entry: fn(&ToolSpec) -> String| {
        let entries: Vec<String> = tools.iter().map(|tool| entry(tool)).collect();
        head.clone() + &entries.join("\n")
    };
    for text in [join(full_entry), join(short_entry)] {
        if weight(&text) <= room {
            return (text, tools.len());
        }
    }
    shortened(head, tools, room)
}

/// As many short entries as fit, and how to find the others.
fn shortened(head: String, tools: &[&ToolSpec], room: usize) -> (String, usize) {
    // Room for the sentence about the others.
    const REST: usize = 250;
    let mut text = head;
    let mut left = room.saturating_sub(weight(&text) + REST);
    let mut shown = 0;
    for tool in tools {
        let entry = short_entry(tool) + "\n";
        let cost = weight(&entry);
        if cost > left {
            break;
        }
        left -= cost;
        shown += 1;
        text.push_str(&entry);
    }
    let rest = tools.len() - shown;
    text.push_str(&format!(
        "… and {rest} more. Find them from inside a script: tools.search(\"words\") lists names with summaries, \
         tools.describe(\"name\") prints signature and documentation."
    ));
    (text, shown)
}

/// A tool with its description and the shape of its result.
fn full_entry(tool: &ToolSpec) -> String {
    let mut entry = format!("- {}", signature(tool));
    let described = clipped(&one_line(&tool.description), MAX_DESCRIPTION);
    if !described.is_empty() {
        entry.push_str(&format!("\n    {described}"));
    }
    let shape = &tool.function.return_shape;
    if !shape.is_empty() && shape.chars().count() <= MAX_SHAPE {
        entry.push_str(&format!("\n    Returns {shape}"));
    }
    entry
}

/// A tool on one line.
fn short_entry(tool: &ToolSpec) -> String {
    match summary(tool) {
        text if text.is_empty() => format!("- {}", signature(tool)),
        text => format!("- {}: {text}", signature(tool)),
    }
}

fn signature(tool: &ToolSpec) -> String {
    let signature = tool.function.signature();
    match signature.chars().count() > MAX_SIGNATURE {
        true => format!(
            "{}(…), see tools.describe({})",
            tool.function.name,
            quote(&tool.name)
        ),
        false => signature,
    }
}

fn clipped(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((cut, _)) => format!("{}…", text[..cut].trim_end()),
        None => text.to_string(),
    }
}

/// An import that works, with the tools that most scripts want.
fn example(context: &DefinitionContext, tools: &[&ToolSpec]) -> String {
    let mut names: Vec<&str> = ["web_search", "terminal"]
        .into_iter()
        .filter(|name| has(tools, name))
        .collect();
    if names.is_empty() {
        names = tools
            .iter()
            .map(|tool| tool.function.name.as_str())
            .collect();
        names.sort_unstable();
        names.truncate(2);
    }
    if names.is_empty() {
        return String::new();
    }
    let module = &context.config.module_name;
    format!(
        "Begin with: from {module} import {}\nPrint a summary of what you found, not the raw results.",
        names.join(", ")
    )
}

/// What calls return and what else the module has.
fn results(context: &DefinitionContext, tools: &[&ToolSpec]) -> String {
    if tools.is_empty() {
        return String::new();
    }
    let module = &context.config.module_name;
    let failed = match context.config.on_tool_error {
        OnToolError::Return => "A call that failed returns {\"error\": \"…\"}: check for it.",
        OnToolError::Raise => "A call that failed raises ToolError, which has .tool and .message.",
    };
    format!(
        "Results are Python values already (dict, list, str): no json.loads. {failed}\n\
         In parallel: parallel([lambda: f(1), lambda: f(2)]) returns the results in order; threads and \
         `await aio.f(1)` work as well.\n\
         Also in {module}: json_parse(text) for untidy JSON, shell_quote(text), retry(function) with growing pauses, \
         tools.search(\"words\") and tools.describe(\"name\")."
    )
}

/// The limits in force, as configured.
fn limits(context: &DefinitionContext) -> String {
    let config = context.config;
    let calls = match config.max_tool_calls {
        0 => "no tool calls".to_string(),
        1 => "1 tool call".to_string(),
        n => format!("{n} tool calls"),
    };
    format!(
        "Limits: {}, {calls}, {} of printed output (the middle is cut out beyond that).",
        time_limit(config.timeout.duration.as_secs_f64(), &config.timeout.text),
        size(config.max_stdout_bytes)
    )
}

/// `5 minutes (300 s)`, or the seconds alone.
fn time_limit(seconds: f64, text: &str) -> String {
    match seconds / 60.0 {
        1.0 => format!("1 minute ({text} s)"),
        minutes if minutes > 1.0 && minutes.fract() == 0.0 => {
            format!("{minutes} minutes ({text} s)")
        }
        _ => format!("{text} seconds"),
    }
}

fn size(bytes: usize) -> String {
    match bytes {
        0..=999 => format!("{bytes} bytes"),
        1000..=999_999 => format!("{}KB", bytes / 1000),
        _ => format!("{}MB", bytes / 1_000_000),
    }
}

/// Where the script runs and what with.
fn place(context: &DefinitionContext) -> String {
    let interpreter = context
        .interpreter
        .map_or(String::new(), |path| format!(" ({path})"));
    match context.mode {
        Mode::Project => {
            let cwd = context.cwd.map_or(String::new(), |path| format!(" ({})", path.display()));
            format!(
                "The script runs in the session's working directory{cwd} with the project's Python{interpreter}, that \
                 of the active venv or conda environment if there is one: relative paths and the project's packages work. \
                 Standard input is empty."
            )
        }
        Mode::Strict => format!(
            "The script runs in a temp dir of its own, removed afterwards, with the host's Python{interpreter}: use \
             absolute paths for the user's files, and the standard library only. Standard input is empty."
        ),
    }
}

#[cfg(test)]
#[path = "definition_tests.rs"]
mod tests;

//! The module that scripts import: the runtime, its configuration, and one function for each tool.
//!
//! The functions are real `def`s with the schema's names, types and defaults, so that `help`, `inspect.signature` and
//! an editor show what a person would have written, and the whole is compiled beforehand like any module. No value of
//! a schema is ever evaluated as Python: whatever comes from outside stands in a string literal or was mapped to an
//! identifier, so a tool's specification cannot run code.
//!
//! **Defaults are shown and not sent.** An optional argument that the script leaves out is left out of the call, and
//! whoever serves the tool applies its default: the engine neither doubles the tool's own defaults nor makes calls
//! longer than what the script wrote. `None` for an optional argument whose schema has no null means left out too.

use crate::config::Config;
use crate::tool::schema::{escaped, is_invisible, one_line, python_string};
use crate::tool::signature::{Function, Parameter};
use crate::tool::{Origin, ToolSpec};
use std::fmt::Write as _;

/// What stands between the runtime and the functions.
const PRELUDE: &str = include_str!("stubs.py");
/// The line of the runtime that the configuration takes the place of.
const CONFIG_LINE: &str = "_CONFIG = {}";
/// The longest summary of a tool, in characters.
const MAX_SUMMARY: usize = 100;

/// Arguments that the standard `terminal` has elsewhere and not here.
const TERMINAL_REFUSED: [&str; 6] = [
    "background",
    "pty",
    "notify",
    "notify_on_complete",
    "watch_patterns",
    "check_interval",
];
const FOREGROUND_ONLY: &str = "commands run in the foreground only and end before the call returns";

/// The source of the generated module: the text `runtime` with its configuration filled in, then the functions of the
/// tools.
pub(crate) fn module_source(runtime: &str, config: &Config) -> String {
    let tools = config.tools.as_slice();
    let settings = settings(config);
    let mut source = String::with_capacity(runtime.len() + PRELUDE.len() + settings.len() * 3);
    for line in runtime.lines() {
        source.push_str(if line.trim_end() == CONFIG_LINE {
            &settings
        } else {
            line
        });
        source.push('\n');
    }
    source.push_str(PRELUDE);
    for tool in tools {
        source.push_str(&definition(tool));
    }
    source
}

/// The first sentence of a tool's description, on one line.
pub(crate) fn summary(tool: &ToolSpec) -> String {
    let text = one_line(&tool.description);
    let sentence = text.find(". ").map_or(text.as_str(), |end| &text[..=end]);
    match sentence.char_indices().nth(MAX_SUMMARY) {
        Some((cut, _)) => format!("{}…", sentence[..cut].trim_end()),
        None => sentence.to_string(),
    }
}

/// The statement that assigns `_CONFIG`.
fn settings(config: &Config) -> String {
    let mut text = format!(
        "_CONFIG = {{\n    \"module\": {},\n    \"max_message_bytes\": {},\n    \"on_tool_error\": {},\n    \"tools\": {{\n",
        python_string(&config.module_name),
        config.max_message_bytes,
        python_string(config.on_tool_error.name()),
    );
    for tool in &config.tools {
        let _ = writeln!(
            text,
            "        {}: {{\n            \"function\": {},\n            \"summary\": {},\n            \"signature\": {},\n            \"description\": {},\n        }},",
            python_string(&tool.name),
            python_string(&tool.function.name),
            python_string(&summary(tool)),
            python_string(&tool.function.signature()),
            // The same text as the function's docstring: a compiler stores equal strings once.
            python_string(&docstring(tool)),
        );
    }
    text + "    },\n}"
}

fn docstring(tool: &ToolSpec) -> String {
    tool.function.docstring(&tool.name, &tool.description)
}

/// The function of one tool.
fn definition(tool: &ToolSpec) -> String {
    let function = &tool.function;
    let returns = match function.returns.as_str() {
        "" => String::new(),
        kind => format!(" -> {}", annotation(kind)),
    };
    format!(
        "\n\n@_tool({}{})\ndef {}({}){returns}:\n    {}\n    return _call({}, {})\n",
        python_string(&tool.name),
        refused(tool),
        function.name,
        parameters(function),
        docstring_literal(&docstring(tool)),
        python_string(&tool.name),
        arguments(function),
    )
}

/// What the decorator is told about arguments that deserve an explanation.
fn refused(tool: &ToolSpec) -> String {
    if tool.origin == Origin::Host || tool.name != "terminal" {
        return String::new();
    }
    let pairs = TERMINAL_REFUSED.map(|name| {
        format!(
            "{}: {}",
            python_string(name),
            python_string(FOREGROUND_ONLY)
        )
    });
    format!(", {{{}}}", pairs.join(", "))
}

fn parameters(function: &Function) -> String {
    let mut parts = Vec::new();
    for (i, parameter) in function.parameters.iter().enumerate() {
        if i == function.positional {
            parts.push("*".to_string());
        }
        let declared = format!("{}: {}", parameter.name, annotation(&parameter.kind));
        parts.push(if parameter.required {
            declared
        } else {
            format!("{declared} = {}", default(parameter))
        });
    }
    if function.open {
        parts.push("**_more".to_string());
    }
    parts.join(", ")
}

/// A type as an annotation: a built-in type itself, anything else in quotes, since older interpreters cannot evaluate
/// it and no interpreter should have to.
fn annotation(kind: &str) -> String {
    match kind {
        "str" | "int" | "float" | "bool" | "list" | "dict" | "None" => kind.to_string(),
        _ => python_string(kind),
    }
}

fn default(parameter: &Parameter) -> String {
    match parameter.default.as_str() {
        "None" if !parameter.nullable => "None".to_string(),
        text => format!("_Default({})", python_string(text)),
    }
}

/// The expression for the arguments that were given.
fn arguments(function: &Function) -> String {
    let entries = |wanted: &dyn Fn(&Parameter) -> bool| {
        let chosen = function
            .parameters
            .iter()
            .filter(|parameter| wanted(parameter));
        let pairs: Vec<String> = chosen
            .map(|parameter| format!("{}: {}", python_string(&parameter.wire), parameter.name))
            .collect();
        pairs.join(", ")
    };
    let always = entries(&|p| p.required);
    let unless_none = entries(&|p| !p.required && !p.nullable);
    let unless_absent = entries(&|p| !p.required && p.nullable);
    let always = match (function.open, always.as_str()) {
        (false, pairs) => format!("{{{pairs}}}"),
        (true, "") => "_more".to_string(),
        (true, pairs) => format!("{{**_more, {pairs}}}"),
    };
    match (unless_none.as_str(), unless_absent.as_str()) {
        ("", "") => always,
        (some, "") => format!("_given({always}, {{{some}}})"),
        (some, absent) => format!("_given({always}, {{{some}}}, {{{absent}}})"),
    }
}

/// `text` as a docstring that reads well in the source too.
fn docstring_literal(text: &str) -> String {
    let mut out = String::from("\"\"\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push('\n'),
            _ if c.is_control() || is_invisible(c) => out.push_str(&escaped(c)),
            _ => out.push(c),
        }
    }
    out + "\"\"\""
}

#[cfg(test)]
#[path = "stubs_tests.rs"]
mod tests;

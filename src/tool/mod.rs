//! Tools: what a script may call, and how each call is written in Python.
//!
//! A script can call what is in `tools` and `builtin_tools` and nothing else. Every tool that comes out of here has a
//! name that is allowed, a schema that makes sense and a Python signature that collides with nothing.

pub(crate) mod names;
pub(crate) mod schema;
pub(crate) mod signature;
pub(crate) mod standard;

use crate::error::{Error, Result};
use crate::json::reader::{mismatch, Section};
use crate::json::{self, Value};
use crate::suggest::did_you_mean;
use signature::Function;
use standard::{Standard, STANDARD};
use std::collections::HashMap;

const KEYS: [&str; 5] = [
    "name",
    "description",
    "input_schema",
    "output_schema",
    "parallel",
];
/// The longest name that a host may give to a tool, in bytes.
const MAX_NAME: usize = 200;

/// Who serves a tool, and who wrote its signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The host's dispatch, with the host's schema.
    Host,
    /// The host's dispatch, with the standard signature.
    Standard,
    /// The engine itself.
    BuiltIn,
}

/// One tool that scripts can call.
#[derive(Debug, Clone)]
pub(crate) struct ToolSpec {
    /// The name on the wire and for the host.
    pub(crate) name: String,
    pub(crate) description: String,
    /// Whether calls of it may overlap.
    pub(crate) parallel: bool,
    pub(crate) origin: Origin,
    /// Its Python side.
    pub(crate) function: Function,
}

/// Reads `tools` and `builtin_tools` of the configuration `root`.
pub(crate) fn parse_all(root: &Section, allow_mcp: bool) -> Result<Vec<ToolSpec>> {
    let mut found = Vec::new();
    for (i, item) in host_tools(root)?.iter().enumerate() {
        let at = root.item("tools", i);
        found.push((parse_tool(&at, item, allow_mcp)?, at));
    }
    let listed = found.len();
    for (tool, at) in built_in_tools(root)? {
        let all = at == root.at("builtin_tools");
        // "all" leaves room for the host's own version of a tool; a name does not.
        if !(all && found[..listed].iter().any(|(own, _)| own.name == tool.name)) {
            found.push((tool, at));
        }
    }
    refuse_collisions(&found)?;
    Ok(found.into_iter().map(|(tool, _)| tool).collect())
}

/// The list `tools`. Some agents keep settings of a search over their tools under the same name; that object is theirs.
fn host_tools<'a>(root: &Section<'a>) -> Result<&'a [Value]> {
    match root.get("tools") {
        Some(Value::Object(members)) if members.iter().all(|(key, _)| key == "tool_search") => {
            Ok(&[])
        }
        _ => root.array("tools", "a list of tools"),
    }
}

fn parse_tool(at: &str, item: &Value, allow_mcp: bool) -> Result<ToolSpec> {
    match item {
        Value::String(name) => {
            refuse_name(at, name, allow_mcp)?;
            let known = STANDARD.iter().map(|tool| tool.name);
            let tool = standard::find(name).ok_or_else(|| unknown_standard(at, name, known))?;
            from_standard(at, tool, Origin::Standard)
        }
        Value::Object(_) => from_object(&Section::new(at, item)?, allow_mcp),
        _ => Err(mismatch(
            at,
            "a tool (an object, or the name of a standard tool)",
            item,
        )),
    }
}

fn unknown_standard<'a>(
    at: &str,
    name: &str,
    known: impl Iterator<Item = &'a str> + Clone,
) -> Error {
    let hint = did_you_mean(name, known.clone());
    let list = known.collect::<Vec<_>>().join(", ");
    Error::config(
        at,
        format_args!("{name:?} is no standard tool{hint}; those are {list}; any other tool is an object with `name`, `description` and `input_schema`"),
    )
}

fn from_object(section: &Section, allow_mcp: bool) -> Result<ToolSpec> {
    section.only(&KEYS, |_| false)?;
    let name = section
        .string("name")?
        .ok_or_else(|| Error::config(&section.at("name"), "missing"))?;
    refuse_name(&section.at("name"), name, allow_mcp)?;
    let standard = standard::find(name);
    let own_schema = section.get("input_schema").cloned();
    let origin = if standard.is_some() && own_schema.is_none() {
        Origin::Standard
    } else {
        Origin::Host
    };
    let input_schema = match (own_schema, standard) {
        (Some(schema), _) => schema,
        (None, Some(standard)) => literal(standard.input_schema),
        (None, None) => Value::Object(Vec::new()),
    };
    let own_output = section.get("output_schema").cloned();
    let output_schema = own_output.or_else(|| match origin {
        Origin::Host => None,
        _ => standard.map(|tool| literal(tool.output_schema)),
    });
    let description = section
        .string("description")?
        .or(standard.map(|tool| tool.description));
    let function = Function::new(section, name, &input_schema, output_schema.as_ref())?;
    Ok(ToolSpec {
        name: name.to_string(),
        description: description.unwrap_or_default().trim().to_string(),
        parallel: section.boolean("parallel")?.unwrap_or(true),
        origin,
        function,
    })
}

fn from_standard(at: &str, tool: &Standard, origin: Origin) -> Result<ToolSpec> {
    let input_schema = literal(tool.input_schema);
    let output_schema = Some(literal(tool.output_schema));
    let function = Function::new(
        &Section::empty(at),
        tool.name,
        &input_schema,
        output_schema.as_ref(),
    )?;
    Ok(ToolSpec {
        name: tool.name.to_string(),
        description: tool.description.to_string(),
        parallel: true,
        origin,
        function,
    })
}

/// A JSON text of our own; a test parses each of them.
fn literal(text: &str) -> Value {
    json::parse(text).unwrap_or(Value::Null)
}

/// `builtin_tools`, each with the path at which it was asked for.
fn built_in_tools(root: &Section) -> Result<Vec<(ToolSpec, String)>> {
    let at = root.at("builtin_tools");
    let built_in = || STANDARD.iter().filter(|tool| tool.built_in);
    let names = match root.get("builtin_tools") {
        None => return Ok(Vec::new()),
        Some(Value::String(word)) if word == "all" => {
            let all =
                built_in().map(|tool| Ok((from_standard(&at, tool, Origin::BuiltIn)?, at.clone())));
            return all.collect();
        }
        Some(Value::Array(names)) => names,
        Some(other) => return Err(mismatch(&at, "\"all\" or a list of names", other)),
    };
    let read = |(i, item): (usize, &Value)| {
        let at = root.item("builtin_tools", i);
        let name = item
            .as_str()
            .ok_or_else(|| mismatch(&at, "the name of a built-in tool", item))?;
        match standard::find(name) {
            Some(tool) if tool.built_in => Ok((from_standard(&at, tool, Origin::BuiltIn)?, at)),
            Some(_) => Err(Error::config(
                &at,
                format_args!("{name:?} is always served by the host; list it in `tools` instead"),
            )),
            None => {
                let known = || built_in().map(|tool| tool.name);
                let hint = did_you_mean(name, known());
                let list = known().collect::<Vec<_>>().join(", ");
                Err(Error::config(
                    &at,
                    format_args!("no built-in tool is called {name:?}{hint}; known: {list}"),
                ))
            }
        }
    };
    names.iter().enumerate().map(read).collect()
}

/// The allowlist's own rules: what a script must never be able to call, whatever the host lists.
fn refuse_name(at: &str, name: &str, allow_mcp: bool) -> Result<()> {
    let refusal = match name {
        "" => "a tool needs a name",
        "execute_code" => "\"execute_code\" is refused: a script must not run scripts",
        "delegate_task" => {
            "\"delegate_task\" is refused: a script must not delegate to other agents"
        }
        _ if name.len() > MAX_NAME => "the name of a tool has at most 200 bytes",
        _ if name.contains(char::is_control) => "the name of a tool has no control characters",
        _ if name.starts_with("mcp_") && !allow_mcp => {
            let message = format_args!(
                "{name:?} is refused: scripts do not reach MCP servers; \"code_execution\": {{\"allow_mcp\": true}} admits them"
            );
            return Err(Error::config(at, message));
        }
        _ => return Ok(()),
    };
    Err(Error::config(at, refusal))
}

/// No two tools share a name, neither as they are nor in Python, and none takes a helper's place.
fn refuse_collisions(tools: &[(ToolSpec, String)]) -> Result<()> {
    let mut taken: HashMap<&str, (&str, &str)> = HashMap::new();
    for (tool, at) in tools {
        let function = tool.function.name.as_str();
        if names::HELPERS.contains(&function) {
            return Err(Error::config(
                at,
                format_args!("the tool {:?} would hide the helper {function} that every script has; rename it", tool.name),
            ));
        }
        if let Some((other, where_)) = taken.insert(function, (&tool.name, at)) {
            return Err(Error::config(
                at,
                if other == tool.name {
                    format!("the tool {other:?} is listed twice, here and at {where_}; remove one")
                } else {
                    format!(
                        "the tools {other:?} (at {where_}) and {:?} would both be the Python function {function}; rename one",
                        tool.name
                    )
                },
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;

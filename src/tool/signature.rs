//! The Python function of a tool: its parameters in an order that cannot mislead, their types, and its docstring.

use super::names::{argument_name, function_name};
use super::schema::{describe, python_string, short_literal, Document};
use crate::error::{Error, Result};
use crate::json::reader::{mismatch, Section};
use crate::json::Value;
use std::collections::HashMap;

/// One parameter of a generated function.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Parameter {
    /// The argument's name in the schema and on the wire.
    pub(crate) wire: String,
    /// Its name in Python.
    pub(crate) name: String,
    /// Its Python type, as text.
    pub(crate) kind: String,
    pub(crate) required: bool,
    /// What an optional parameter shows as its default: the schema's own, or `None`.
    pub(crate) default: String,
    /// Whether null is a value of it. Where it is not, `None` for an optional argument means "left out".
    pub(crate) nullable: bool,
    pub(crate) description: String,
    /// What is inside it, one member a line.
    pub(crate) outline: Vec<String>,
}

/// The Python side of one tool.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Function {
    pub(crate) name: String,
    /// Required ones first.
    pub(crate) parameters: Vec<Parameter>,
    /// How many parameters can be given by position; the others need their name.
    pub(crate) positional: usize,
    /// Whether it takes arguments that the schema does not name.
    pub(crate) open: bool,
    /// The Python type of the result; empty when nothing is known.
    pub(crate) returns: String,
    /// The result's shape on one line; empty when it says no more than the type.
    pub(crate) return_shape: String,
    /// What is inside the result, one member a line.
    pub(crate) return_outline: Vec<String>,
}

impl Function {
    /// Makes the function of the tool `name`, whose specification is `section`.
    pub(crate) fn new(
        section: &Section,
        name: &str,
        input: &Value,
        output: Option<&Value>,
    ) -> Result<Function> {
        let at = section.at("input_schema");
        let document = Document::new(input);
        check_input(&at, &document, input)?;
        let mut parameters = parameters(&document, input);
        refuse_collisions(&at, &parameters)?;
        let positional = arrange(&mut parameters, &document.required(input));
        let mut function = Function {
            name: function_name(name),
            parameters,
            positional,
            open: is_open(&document, input),
            returns: String::new(),
            return_shape: String::new(),
            return_outline: Vec::new(),
        };
        if let Some(output) = output {
            if output.as_object().is_none() && output.as_bool().is_none() {
                return Err(mismatch(
                    &section.at("output_schema"),
                    "a JSON Schema (an object)",
                    output,
                ));
            }
            function.set_returns(output);
        }
        Ok(function)
    }

    fn set_returns(&mut self, output: &Value) {
        let document = Document::new(output);
        self.returns = document.type_of(output);
        self.return_shape = Some(document.shape(output))
            .filter(|shape| *shape != self.returns)
            .unwrap_or_default();
        self.return_outline = document.outline(output);
        if self.returns == "Any" {
            self.returns.clear();
        }
    }

    /// `web_search(query: str, limit: int = 5) -> dict`
    pub(crate) fn signature(&self) -> String {
        let mut parts = Vec::new();
        for (i, parameter) in self.parameters.iter().enumerate() {
            if i == self.positional {
                parts.push("*".to_string());
            }
            let default = if parameter.required {
                String::new()
            } else {
                format!(" = {}", parameter.default)
            };
            parts.push(format!("{}: {}{default}", parameter.name, parameter.kind));
        }
        if self.open {
            parts.push("**more".to_string());
        }
        let returns = if self.returns.is_empty() {
            String::new()
        } else {
            format!(" -> {}", self.returns)
        };
        format!("{}({}){returns}", self.name, parts.join(", "))
    }

    /// The docstring: the tool's `description`, its arguments, its result.
    pub(crate) fn docstring(&self, tool: &str, description: &str) -> String {
        let mut lines: Vec<String> = Vec::new();
        let description = description.trim();
        if description.is_empty() {
            lines.push(format!("Call the tool {tool}."));
        } else {
            lines.extend(plain_lines(description));
        }
        if !self.parameters.is_empty() {
            lines.extend([String::new(), "Args:".to_string()]);
            for parameter in &self.parameters {
                lines.push(format!("    {}", parameter.line()));
                lines.extend(
                    parameter
                        .outline
                        .iter()
                        .map(|line| format!("        {line}")),
                );
            }
        }
        if !self.returns.is_empty() {
            lines.extend([
                String::new(),
                "Returns:".to_string(),
                format!("    {}", self.returns),
            ]);
            lines.extend(
                self.return_outline
                    .iter()
                    .map(|line| format!("        {line}")),
            );
        }
        lines.join("\n")
    }
}

impl Parameter {
    fn line(&self) -> String {
        let mut line = format!("{} ({}", self.name, self.kind);
        if !self.required {
            line.push_str(match self.default.as_str() {
                "None" => ", optional",
                _ => ", default ",
            });
            if self.default != "None" {
                line.push_str(&self.default);
            }
        }
        line.push(')');
        if self.name != self.wire {
            line.push_str(&format!(" [sent as {}]", python_string(&self.wire)));
        }
        if !self.description.is_empty() {
            line.push_str(&format!(": {}", self.description));
        }
        line
    }
}

/// The lines of `text` without what an interpreter or a terminal would make something else of: tabs, which newer
/// compilers expand in docstrings, and control characters.
fn plain_lines(text: &str) -> impl Iterator<Item = String> + '_ {
    let plain = |line: &str| {
        line.trim_end()
            .replace('\t', "    ")
            .replace(char::is_control, "")
    };
    text.lines().map(plain)
}

/// Refuses an input schema that is none, at the place where it goes wrong.
fn check_input(at: &str, document: &Document, input: &Value) -> Result<()> {
    let schema = Section::new(at, input)?;
    let resolved = document.resolve(input);
    let kinds = match resolved.get("type") {
        Some(Value::Array(names)) => names.iter().collect(),
        Some(name) => vec![name],
        None => Vec::new(),
    };
    if !kinds.is_empty() && !kinds.iter().any(|kind| kind.as_str() == Some("object")) {
        return Err(
            Section::new(at, resolved)?.mismatch("type", "\"object\", since arguments have names")
        );
    }
    for (name, property) in schema.section("properties")?.members() {
        if property.as_object().is_none() && property.as_bool().is_none() {
            let at = schema.section("properties")?.at(name);
            return Err(mismatch(&at, "a JSON Schema (an object)", property));
        }
    }
    schema.strings("required", "name", |_| true)?;
    Ok(())
}

/// The parameters in the schema's order; names that are only required come last.
fn parameters(document: &Document, input: &Value) -> Vec<Parameter> {
    let mut found: Vec<Parameter> = Vec::new();
    for (name, schema, required) in document.properties(input) {
        // An outer description next to a reference is about this use of it.
        let described = Some(describe(schema)).filter(|text| !text.is_empty());
        let resolved = document.resolve(schema);
        let default = schema.get("default").or(resolved.get("default"));
        found.push(Parameter {
            wire: name.to_string(),
            name: argument_name(name),
            kind: document.type_of(schema),
            required,
            default: default.map_or("None".to_string(), short_literal),
            nullable: document.admits_null(schema),
            description: described.unwrap_or_else(|| describe(resolved)),
            outline: document.outline(schema),
        });
    }
    for name in document.required(input) {
        if !found.iter().any(|parameter| parameter.wire == name) {
            found.push(Parameter {
                wire: name.to_string(),
                name: argument_name(name),
                kind: "Any".to_string(),
                required: true,
                default: "None".to_string(),
                nullable: true,
                description: String::new(),
                outline: Vec::new(),
            });
        }
    }
    found
}

fn refuse_collisions(at: &str, parameters: &[Parameter]) -> Result<()> {
    let mut taken: HashMap<&str, &str> = HashMap::new();
    for parameter in parameters {
        if let Some(other) = taken.insert(&parameter.name, &parameter.wire) {
            return Err(Error::config(
                &format!("{at}.properties"),
                format_args!(
                    "the arguments {other:?} and {:?} would both be the Python parameter {}; rename one",
                    parameter.wire, parameter.name
                ),
            ));
        }
    }
    Ok(())
}

/// Puts the required parameters first and returns how many can be given by position.
///
/// Only an order that the schema's author can have meant is offered: where an optional argument stands before a
/// required one, the optional ones need their names; where `required` lists the names in another order than
/// `properties`, all do. A value in the wrong place would be a wrong call that looks right.
fn arrange(parameters: &mut [Parameter], required: &[&str]) -> usize {
    let needed = required.len();
    let in_order = parameters
        .iter()
        .take(needed)
        .all(|parameter| parameter.required);
    let by_properties = parameters
        .iter()
        .filter(|p| p.required)
        .map(|p| p.wire.as_str());
    let agreed = by_properties.eq(required.iter().copied());
    parameters.sort_by_key(|parameter| !parameter.required);
    match (agreed, in_order) {
        (false, _) => 0,
        (true, false) => needed,
        (true, true) => parameters.len(),
    }
}

/// Whether the schema says that there may be other arguments, or says nothing about them at all.
fn is_open(document: &Document, input: &Value) -> bool {
    let schema = document.resolve(input);
    match schema.get("additionalProperties") {
        Some(Value::Bool(open)) => *open,
        Some(Value::Object(_)) => true,
        _ => {
            schema.get("patternProperties").is_some()
                || (schema.get("properties").is_none() && schema.get("allOf").is_none())
        }
    }
}

#[cfg(test)]
#[path = "signature_tests.rs"]
mod tests;

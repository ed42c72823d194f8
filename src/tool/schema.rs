//! JSON Schema, as far as a reader of Python wants to know it: types, unions, enums, shapes of objects.
//!
//! Schemas come from anywhere, so nothing here fails: what is not understood is `Any`, references that go round in
//! circles end, and a schema of any size gives a text of bounded size.

use crate::json::Value;
use std::cell::Cell;

/// How deep a type or shape is described.
const MAX_DEPTH: usize = 6;
/// How many schemas are looked at for one description.
const BUDGET: usize = 400;
/// The longest `Literal[…]`; beyond it only the type of the values is given.
const MAX_LITERAL: usize = 120;

/// A schema document, which local references (`#/$defs/…`) are resolved in.
pub(crate) struct Document<'a> {
    root: &'a Value,
    left: Cell<usize>,
}

impl<'a> Document<'a> {
    pub(crate) fn new(root: &'a Value) -> Self {
        Document {
            root,
            left: Cell::new(BUDGET),
        }
    }

    /// The schema that `schema` stands for.
    pub(crate) fn resolve(&self, schema: &'a Value) -> &'a Value {
        let mut schema = schema;
        // A chain of references is short or goes round.
        for _ in 0..16 {
            let target = schema
                .get("$ref")
                .and_then(Value::as_str)
                .and_then(|r| self.target(r));
            match target {
                Some(target) => schema = target,
                None => break,
            }
        }
        schema
    }

    fn target(&self, reference: &str) -> Option<&'a Value> {
        let pointer = reference.strip_prefix('#')?;
        pointer
            .split('/')
            .skip(1)
            .try_fold(self.root, |value, step| {
                let step = step.replace("~1", "/").replace("~0", "~");
                match value {
                    Value::Array(items) => items.get(step.parse::<usize>().ok()?),
                    _ => value.get(&step),
                }
            })
    }

    /// The Python type of `schema`: `list[str] | None`, `Literal['a', 'b']`.
    pub(crate) fn type_of(&self, schema: &'a Value) -> String {
        self.left.set(BUDGET);
        self.alternatives(schema, 0).join(" | ")
    }

    /// Whether null is a value of `schema`, or nothing is known about it.
    pub(crate) fn admits_null(&self, schema: &'a Value) -> bool {
        self.left.set(BUDGET);
        let alternatives = self.alternatives(schema, 0);
        alternatives.iter().any(|t| t == "None" || t == "Any")
    }

    /// The members of `schema` and whether each is required, in their order. Parts of an `allOf` count as well.
    pub(crate) fn properties(&self, schema: &'a Value) -> Vec<(&'a str, &'a Value, bool)> {
        let parts = self.parts(schema);
        let required: Vec<&str> = parts.iter().flat_map(|part| required(part)).collect();
        let mut found: Vec<(&str, &Value, bool)> = Vec::new();
        for (name, property) in parts.iter().flat_map(|part| members(part, "properties")) {
            let entry = (name.as_str(), property, required.contains(&name.as_str()));
            match found.iter_mut().find(|(known, ..)| known == name) {
                Some(known) => *known = entry,
                None => found.push(entry),
            }
        }
        found
    }

    /// The names that `schema` requires, in the order in which it lists them.
    pub(crate) fn required(&self, schema: &'a Value) -> Vec<&'a str> {
        let mut names: Vec<&str> = Vec::new();
        for name in self.parts(schema).into_iter().flat_map(required) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    /// `schema` and what its `allOf` adds.
    fn parts(&self, schema: &'a Value) -> Vec<&'a Value> {
        let schema = self.resolve(schema);
        let more = schema.get("allOf").and_then(Value::as_array).unwrap_or(&[]);
        let resolved = more.iter().take(20).map(|part| self.resolve(part));
        std::iter::once(schema).chain(resolved).collect()
    }

    /// A schema's shape on one line: `{"url": str, "error"?: str | None}`.
    pub(crate) fn shape(&self, schema: &'a Value) -> String {
        self.left.set(BUDGET);
        self.shape_at(schema, 0)
    }

    fn shape_at(&self, schema: &'a Value, depth: usize) -> String {
        let resolved = self.resolve(schema);
        if depth < MAX_DEPTH && self.left.get() > 0 {
            if let Some(items) = resolved.get("items").filter(|_| is_type(resolved, "array")) {
                return format!("[{}]", self.shape_at(items, depth + 1));
            }
            let properties = self.properties(resolved);
            if !properties.is_empty() {
                let member = |(name, property, required): &(&str, &'a Value, bool)| {
                    let mark = if *required { "" } else { "?" };
                    format!(
                        "{}{mark}: {}",
                        python_string(name),
                        self.shape_at(property, depth + 1)
                    )
                };
                let members: Vec<String> = properties.iter().map(member).collect();
                return format!("{{{}}}", members.join(", "));
            }
        }
        self.alternatives(resolved, depth).join(" | ")
    }

    /// The members of the objects in `schema`, one a line, indented by their depth: what a docstring says about an
    /// argument that is a dict or a list of dicts.
    pub(crate) fn outline(&self, schema: &'a Value) -> Vec<String> {
        self.left.set(BUDGET);
        let mut lines = Vec::new();
        self.outline_at(schema, 0, &mut lines);
        const MAX_LINES: usize = 60;
        if lines.len() > MAX_LINES {
            lines.truncate(MAX_LINES);
            lines.push("…".to_string());
        }
        lines
    }

    fn outline_at(&self, schema: &'a Value, depth: usize, lines: &mut Vec<String>) {
        let Some(object) = self.inner_object(schema, 0).filter(|_| depth < 4) else {
            return;
        };
        for (name, property, required) in self.properties(object) {
            if !self.spend() {
                return;
            }
            let kind = self.alternatives(property, 0).join(" | ");
            let optional = if required { "" } else { ", optional" };
            let described = describe(self.resolve(property));
            let described = if described.is_empty() {
                described
            } else {
                format!(": {described}")
            };
            let indent = "    ".repeat(depth);
            lines.push(format!(
                "{indent}{} ({kind}{optional}){described}",
                python_string(name)
            ));
            self.outline_at(property, depth + 1, lines);
        }
    }

    /// The object schema that values of `schema` are, or are lists or dicts of; the first one of a union.
    fn inner_object(&self, schema: &'a Value, depth: usize) -> Option<&'a Value> {
        let schema = self.resolve(schema);
        if depth > MAX_DEPTH || !self.spend() {
            return None;
        }
        if !self.properties(schema).is_empty() {
            return Some(schema);
        }
        let inside = ["items", "additionalProperties"]
            .iter()
            .filter_map(|key| schema.get(key));
        let unions = ["anyOf", "oneOf"]
            .iter()
            .filter_map(|key| schema.get(key)?.as_array());
        inside
            .chain(unions.flatten())
            .find_map(|inner| self.inner_object(inner, depth + 1))
    }

    /// The types of a union, each once, `None` last.
    fn alternatives(&self, schema: &'a Value, depth: usize) -> Vec<String> {
        let schema = self.resolve(schema);
        if depth > MAX_DEPTH || !self.spend() || schema.as_object().is_none() {
            return vec!["Any".to_string()];
        }
        let mut found = self.types(schema, depth);
        if schema.get("nullable").and_then(Value::as_bool) == Some(true) {
            found.push("None".to_string());
        }
        let mut unique: Vec<String> = Vec::new();
        for name in found {
            if !unique.contains(&name) {
                unique.push(name);
            }
        }
        if unique.iter().any(|name| name == "Any") {
            return vec!["Any".to_string()];
        }
        unique.sort_by_key(|name| name == "None");
        unique
    }

    fn types(&self, schema: &'a Value, depth: usize) -> Vec<String> {
        if let Some(values) = schema.get("enum").and_then(Value::as_array) {
            return literals(values);
        }
        if let Some(value) = schema.get("const") {
            return literals(std::slice::from_ref(value));
        }
        let union = ["anyOf", "oneOf"]
            .iter()
            .find_map(|key| schema.get(key)?.as_array());
        if let Some(members) = union.filter(|members| !members.is_empty()) {
            let typed = members.iter().filter(|member| !is_bare_condition(member));
            let types: Vec<String> = typed
                .flat_map(|member| self.alternatives(member, depth + 1))
                .collect();
            if !types.is_empty() {
                return types;
            }
        }
        match schema.get("type") {
            Some(Value::String(name)) => vec![self.named(name, schema, depth)],
            Some(Value::Array(names)) if !names.is_empty() => {
                let names = names.iter().filter_map(Value::as_str);
                names.map(|name| self.named(name, schema, depth)).collect()
            }
            _ => self.guessed(schema, depth),
        }
    }

    fn named(&self, name: &str, schema: &'a Value, depth: usize) -> String {
        match name {
            "string" => "str".to_string(),
            "integer" => "int".to_string(),
            "number" => "float".to_string(),
            "boolean" => "bool".to_string(),
            "null" => "None".to_string(),
            "array" => match schema
                .get("items")
                .filter(|items| items.as_object().is_some())
            {
                Some(items) => format!("list[{}]", self.alternatives(items, depth + 1).join(" | ")),
                None => "list".to_string(),
            },
            "object" => {
                let values = schema
                    .get("additionalProperties")
                    .filter(|v| v.as_object().is_some());
                match values.filter(|_| schema.get("properties").is_none()) {
                    Some(values) => format!(
                        "dict[str, {}]",
                        self.alternatives(values, depth + 1).join(" | ")
                    ),
                    None => "dict".to_string(),
                }
            }
            _ => "Any".to_string(),
        }
    }

    /// The type of a schema that does not say it, by the other keywords.
    fn guessed(&self, schema: &'a Value, depth: usize) -> Vec<String> {
        let has = |keys: &[&str]| keys.iter().any(|key| schema.get(key).is_some());
        if has(&["properties", "additionalProperties", "patternProperties"]) {
            return vec![self.named("object", schema, depth)];
        }
        if has(&[
            "items",
            "prefixItems",
            "minItems",
            "maxItems",
            "uniqueItems",
        ]) {
            return vec![self.named("array", schema, depth)];
        }
        if has(&["pattern", "minLength", "maxLength", "format"]) {
            return vec!["str".to_string()];
        }
        if has(&[
            "minimum",
            "maximum",
            "multipleOf",
            "exclusiveMinimum",
            "exclusiveMaximum",
        ]) {
            return vec!["float".to_string()];
        }
        let parts = schema.get("allOf").and_then(Value::as_array).unwrap_or(&[]);
        let known = parts.iter().map(|part| self.alternatives(part, depth + 1));
        known
            .into_iter()
            .find(|types| types.iter().any(|name| name != "Any"))
            .unwrap_or_else(|| vec!["Any".to_string()])
    }

    /// Whether there was something left of the budget.
    fn spend(&self) -> bool {
        let left = self.left.get();
        self.left.set(left.saturating_sub(1));
        left > 0
    }
}

/// The first of the description and title of `schema`, with what its constraints say, on one line.
pub(crate) fn describe(schema: &Value) -> String {
    let text = ["description", "title"]
        .iter()
        .find_map(|key| schema.get(key)?.as_str());
    let mut parts: Vec<String> = Vec::new();
    parts.extend(text.map(one_line).filter(|text| !text.is_empty()));
    let values = schema.get("enum").and_then(Value::as_array);
    // Where the type could not hold all of them.
    if let Some(values) = values.filter(|values| !literals(values)[0].starts_with("Literal")) {
        parts.push(format!("One of {}.", listed_values(values)));
    }
    parts.join(" ")
}

/// `values` as Python writes them, as many as are worth reading.
fn listed_values(values: &[Value]) -> String {
    const MAX_LENGTH: usize = 1000;
    let mut text = String::new();
    for value in values {
        if text.len() > MAX_LENGTH {
            return text + ", ...";
        }
        let separator = if text.is_empty() { "" } else { ", " };
        text = text + separator + &short_literal(value);
    }
    text
}

/// `text` with every run of white space as one space, and without control characters.
pub(crate) fn one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").replace(char::is_control, "")
}

/// `value` as Python writes it, or dots in its place where that is too long to be read.
pub(crate) fn short_literal(value: &Value) -> String {
    const MAX_LENGTH: usize = 60;
    let text = python_literal(value);
    if text.chars().count() <= MAX_LENGTH {
        return text;
    }
    match value {
        Value::Array(_) => "[...]".to_string(),
        Value::Object(_) => "{...}".to_string(),
        _ => "...".to_string(),
    }
}

/// `value` as Python writes it.
fn python_literal(value: &Value) -> String {
    let list = |items: Vec<String>| items.join(", ");
    match value {
        Value::Null => "None".to_string(),
        Value::Bool(true) => "True".to_string(),
        Value::Bool(false) => "False".to_string(),
        Value::Number(text) => text.clone(),
        Value::String(text) => python_string(text),
        Value::Array(items) => format!("[{}]", list(items.iter().map(python_literal).collect())),
        Value::Object(members) => {
            let member = |(key, value): &(String, Value)| {
                format!("{}: {}", python_string(key), python_literal(value))
            };
            format!("{{{}}}", list(members.iter().map(member).collect()))
        }
    }
}

/// `text` as a Python string literal on one line. Letters of any script stay as they are, everything invisible is
/// escaped.
pub(crate) fn python_string(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            _ if c.is_control() || is_invisible(c) => out.push_str(&escaped(c)),
            _ => out.push(c),
        }
    }
    out.push('"');
    out
}

/// `c` as an escape sequence.
pub(crate) fn escaped(c: char) -> String {
    match u32::from(c) {
        code @ 0..=0xff => format!("\\x{code:02x}"),
        code @ 0x100..=0xffff => format!("\\u{code:04x}"),
        code => format!("\\U{code:08x}"),
    }
}

/// Characters that change how a line looks without being seen: marks of direction, joiners, separators, the byte order
/// mark.
pub(crate) fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// The type of one of `values`: `Literal[…]` and `None` apart, or their plain types where that would be too long.
fn literals(values: &[Value]) -> Vec<String> {
    let others = || values.iter().filter(|value| **value != Value::Null);
    let null = values.contains(&Value::Null).then(|| "None".to_string());
    let plain = |value: &Value| !matches!(value, Value::Array(_) | Value::Object(_) | Value::Null);
    let listed = others().map(python_literal).collect::<Vec<_>>().join(", ");
    let mut found: Vec<String> = if listed.is_empty() {
        Vec::new()
    } else if others().all(plain) && listed.len() <= MAX_LITERAL {
        vec![format!("Literal[{listed}]")]
    } else {
        others().map(|value| kind(value).to_string()).collect()
    };
    found.extend(null);
    if found.is_empty() {
        found.push("Any".to_string());
    }
    found
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "None",
        Value::Bool(_) => "bool",
        Value::Number(text) if text.contains(['.', 'e', 'E']) => "float",
        Value::Number(_) => "int",
        Value::String(_) => "str",
        Value::Array(_) => "list",
        Value::Object(_) => "dict",
    }
}

fn is_type(schema: &Value, name: &str) -> bool {
    schema.get("type").and_then(Value::as_str) == Some(name)
}

/// Whether a member of a union only says which members are needed (`{"required": ["a"]}`).
fn is_bare_condition(schema: &Value) -> bool {
    let keys = schema.as_object().unwrap_or(&[]);
    !keys.is_empty()
        && keys
            .iter()
            .all(|(key, _)| key == "required" || key == "not")
}

fn members<'a>(schema: &'a Value, key: &str) -> &'a [(String, Value)] {
    schema.get(key).and_then(Value::as_object).unwrap_or(&[])
}

fn required(schema: &Value) -> impl Iterator<Item = &str> {
    let listed = schema
        .get("required")
        .and_then(Value::as_array)
        .unwrap_or(&[]);
    listed.iter().filter_map(Value::as_str)
}

#[cfg(test)]
#[path = "schema_tests.rs"]
mod tests;

//! JSON that keeps what `serde_json::Value` loses: the order of an object's members and the exact text of numbers.
//!
//! `serde_json` does the validating, so the small walker here only ever sees well-formed text. Order matters because
//! a tool's properties become the parameters of a Python function, and exact text because an integer of any size
//! has to pass through unchanged.

pub(crate) mod reader;

use serde_json::value::RawValue;
use std::fmt::{self, Write as _};
use std::time::Duration;

/// How deep a document that we interpret (configuration, schema) may nest. Tool arguments and results are passed on as
/// text and are not bound by this.
const MAX_DEPTH: usize = 100;

/// A JSON value with its members in the order in which they were written.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    Null,
    Bool(bool),
    /// The number as it was written.
    Number(String),
    String(String),
    Array(Vec<Value>),
    Object(Vec<(String, Value)>),
}

/// Checks that `text` is one JSON value and returns it without the white space around it.
pub(crate) fn validate(text: &str) -> Result<&str, String> {
    serde_json::from_str::<&RawValue>(text)
        .map(RawValue::get)
        .map_err(|e| e.to_string())
}

/// Parses `text`; the error says what is wrong with line and column.
pub(crate) fn parse(text: &str) -> Result<Value, String> {
    build(validate(text)?, 0)
}

/// The members of the JSON object `text` in their order, each value as its own text; `None` when it is no object.
/// `text` must be valid JSON.
pub(crate) fn members(text: &str) -> Option<Vec<(String, &str)>> {
    let inner = text.trim().strip_prefix('{')?.strip_suffix('}')?;
    let mut members = Vec::new();
    for piece in split_top_level(inner) {
        let key_end = string_end(piece.as_bytes())?;
        let key = decode_string(&piece[..key_end])?;
        let value = piece[key_end..].trim_start().strip_prefix(':')?.trim();
        members.push((key, value));
    }
    Some(members)
}

/// The elements of the JSON array `text`, each as its own text; `None` when it is no array. `text` must be valid JSON.
pub(crate) fn elements(text: &str) -> Option<Vec<&str>> {
    let inner = text.trim().strip_prefix('[')?.strip_suffix(']')?;
    Some(split_top_level(inner))
}

/// The string that the JSON string literal `text` stands for; a lone surrogate becomes U+FFFD.
pub(crate) fn decode_string(text: &str) -> Option<String> {
    serde_json::from_str(text)
        .or_else(|_| serde_json::from_str(&replace_lone_surrogates(text)))
        .ok()
}

/// `text` as a JSON string literal.
pub(crate) fn quote(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// A duration as JSON seconds with microseconds.
pub(crate) fn seconds(duration: Duration) -> String {
    format!("{:.6}", duration.as_secs_f64())
}

/// Rewrites the lone surrogates of a JSON string literal (`\ud800`, valid JSON but no Unicode) to `\ufffd`.
fn replace_lone_surrogates(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        out.push_str(before);
        let len = match (surrogate(escape), surrogate(escape.get(6..).unwrap_or(""))) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => 12,
            (Some(_), _) => 0,
            (None, _) => 2,
        };
        if len == 0 {
            out.push_str("\\ufffd");
            rest = &escape[6..];
        } else {
            out.push_str(&escape[..len]);
            rest = &escape[len..];
        }
    }
    out + rest
}

/// The surrogate that an escape at the start of `text` stands for.
fn surrogate(text: &str) -> Option<u32> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    let unit = u32::from_str_radix(digits, 16).ok()?;
    (0xd800..=0xdfff).contains(&unit).then_some(unit)
}

fn build(text: &str, depth: usize) -> Result<Value, String> {
    if depth > MAX_DEPTH {
        return Err(format!("nested more than {MAX_DEPTH} levels deep"));
    }
    Ok(match text.as_bytes().first() {
        Some(b'n') => Value::Null,
        Some(b't') => Value::Bool(true),
        Some(b'f') => Value::Bool(false),
        Some(b'"') => Value::String(decode_string(text).ok_or("a string that is no Unicode")?),
        Some(b'[') => Value::Array(
            elements(text)
                .ok_or("an array without an end")?
                .into_iter()
                .map(|item| build(item, depth + 1))
                .collect::<Result<_, _>>()?,
        ),
        Some(b'{') => Value::Object(
            members(text)
                .ok_or("an object key that is no Unicode")?
                .into_iter()
                .map(|(key, value)| Ok((key, build(value, depth + 1)?)))
                .collect::<Result<_, String>>()?,
        ),
        _ => Value::Number(text.to_string()),
    })
}

/// The pieces between the commas of the outermost level, trimmed; nothing for an empty list.
fn split_top_level(inner: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let bytes = inner.as_bytes();
    let (mut depth, mut start, mut at) = (0usize, 0, 0);
    while at < bytes.len() {
        match bytes[at] {
            b'"' => at += string_end(&bytes[at..]).unwrap_or(1) - 1,
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => {
                pieces.push(inner[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
        at += 1;
    }
    let last = inner[start..].trim();
    if !last.is_empty() {
        pieces.push(last);
    }
    pieces
}

/// The length of the string literal that `bytes` begin with, both quotes included.
fn string_end(bytes: &[u8]) -> Option<usize> {
    let mut at = 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'"' => return Some(at + 1),
            _ => at += 1,
        }
    }
    None
}

impl Value {
    /// The member `key`; the last one where it is written twice, as `serde_json` and Python have it.
    pub(crate) fn get(&self, key: &str) -> Option<&Value> {
        match self {
            Value::Object(members) => members.iter().rev().find(|(k, _)| k == key).map(|(_, v)| v),
            _ => None,
        }
    }

    pub(crate) fn as_str(&self) -> Option<&str> {
        match self {
            Value::String(s) => Some(s),
            _ => None,
        }
    }

    pub(crate) fn as_array(&self) -> Option<&[Value]> {
        match self {
            Value::Array(items) => Some(items),
            _ => None,
        }
    }

    pub(crate) fn as_bool(&self) -> Option<bool> {
        match self {
            Value::Bool(b) => Some(*b),
            _ => None,
        }
    }

    pub(crate) fn as_object(&self) -> Option<&[(String, Value)]> {
        match self {
            Value::Object(members) => Some(members),
            _ => None,
        }
    }
}

/// Compact JSON; members and numbers as they were parsed.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Null => f.write_str("null"),
            Value::Bool(b) => write!(f, "{b}"),
            Value::Number(n) => f.write_str(n),
            Value::String(s) => f.write_str(&quote(s)),
            Value::Array(items) => {
                f.write_str("[")?;
                for (i, item) in items.iter().enumerate() {
                    write!(f, "{}{item}", if i > 0 { "," } else { "" })?;
                }
                f.write_str("]")
            }
            Value::Object(members) => {
                f.write_str("{")?;
                for (i, (key, value)) in members.iter().enumerate() {
                    write!(f, "{}{}:{value}", if i > 0 { "," } else { "" }, quote(key))?;
                }
                f.write_str("}")
            }
        }
    }
}

/// Writes one JSON object, members in the order in which they are added.
#[derive(Default)]
pub(crate) struct ObjectWriter(String);

impl ObjectWriter {
    /// Adds a member whose value is JSON text already (or prints as JSON: integers, booleans).
    pub(crate) fn raw(&mut self, key: &str, json: impl fmt::Display) -> &mut Self {
        let separator = if self.0.is_empty() { '{' } else { ',' };
        // Writing to a String cannot fail.
        let _ = write!(self.0, "{separator}{}:{json}", quote(key));
        self
    }

    /// Adds a string.
    pub(crate) fn string(&mut self, key: &str, text: &str) -> &mut Self {
        self.raw(key, quote(text))
    }

    pub(crate) fn finish(mut self) -> String {
        if self.0.is_empty() {
            self.0.push('{');
        }
        self.0.push('}');
        self.0
    }
}

/// A JSON array of strings.
pub(crate) fn string_array<S: AsRef<str>>(items: impl IntoIterator<Item = S>) -> String {
    let quoted: Vec<String> = items.into_iter().map(|s| quote(s.as_ref())).collect();
    format!("[{}]", quoted.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_numbers_and_nesting_survive() {
        let text = r#" {"z": [1, {"b":[],"a":{}}], "a": 12345678901234567890123, "s":"],\"}\\", "f": -1.50e+2} "#;
        let value = parse(text).unwrap();
        assert_eq!(
            value.to_string(),
            r#"{"z":[1,{"b":[],"a":{}}],"a":12345678901234567890123,"s":"],\"}\\","f":-1.50e+2}"#
        );
        assert_eq!(value.get("s").unwrap().as_str(), Some("],\"}\\"));
    }

    #[test]
    fn the_last_of_two_members_counts() {
        assert_eq!(
            parse(r#"{"a":1,"a":2}"#).unwrap().get("a"),
            Some(&Value::Number("2".into()))
        );
    }

    #[test]
    fn bad_text_and_deep_text_are_errors() {
        for bad in ["", "{", "[1,]", "nul", "{\"a\" 1}", "\"\u{1}\"", "1 2"] {
            assert!(parse(bad).is_err(), "{bad:?}");
        }
        let deep = "[".repeat(5000) + &"]".repeat(5000);
        assert!(parse(&deep).unwrap_err().contains("nested"));
        assert!(validate(&deep).is_ok());
    }

    #[test]
    fn lone_surrogates_are_replaced_and_pairs_kept() {
        let cases = [
            (r#""a\ud800b""#, "a\u{fffd}b"),
            (r#""\udc00\ud83d\ude00""#, "\u{fffd}\u{1f600}"),
            (r#""\\ud800\ud800\ud800""#, "\\ud800\u{fffd}\u{fffd}"),
            (r#""\n\u0041""#, "\nA"),
        ];
        for (text, expected) in cases {
            assert_eq!(decode_string(text).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn an_object_is_written_in_order() {
        let mut w = ObjectWriter::default();
        w.string("b", "x\"y").raw("a", 1);
        assert_eq!(w.finish(), r#"{"b":"x\"y","a":1}"#);
        assert_eq!(ObjectWriter::default().finish(), "{}");
    }
}

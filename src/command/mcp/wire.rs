//! JSON-RPC 2.0 in lines: a line is cut off the stream, told apart into messages, and messages are put into lines.
//!
//! Nothing that a client sends ends the server: what cannot be understood becomes a [`Problem`], which is an answer. An
//! identifier goes back as it came, number or string; a line that is written has no line break inside of it, since all
//! text in it is a JSON string or was a single line before.

use crate::json::{self, ObjectWriter, Value};
use std::io::{self, BufRead};

pub(super) const PARSE_ERROR: i32 = -32700;
pub(super) const INVALID_REQUEST: i32 = -32600;
pub(super) const METHOD_NOT_FOUND: i32 = -32601;
pub(super) const INVALID_PARAMS: i32 = -32602;
pub(super) const INTERNAL_ERROR: i32 = -32603;

/// The longest line that is kept in memory; a script is a few thousand bytes.
pub(super) const MAX_LINE: usize = 16 << 20;

/// What identifies a request: the text of a JSON string or number.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Id(String);

impl Id {
    pub(super) fn of(value: &Value) -> Option<Id> {
        // An escape more or less makes no other string.
        let is_one = matches!(value, Value::String(_) | Value::Number(_));
        is_one.then(|| Id(value.to_string()))
    }

    pub(super) fn json(&self) -> &str {
        &self.0
    }
}

/// What a client said.
#[derive(Debug, PartialEq)]
pub(super) enum Message {
    Request {
        id: Id,
        method: String,
        params: Value,
    },
    Notification {
        method: String,
        params: Value,
    },
    /// An answer, although nothing was asked.
    Response,
}

/// What is wrong with something that a client said.
#[derive(Debug, PartialEq)]
pub(super) struct Problem {
    /// `None`: nobody can tell which request it was.
    pub(super) id: Option<Id>,
    pub(super) code: i32,
    pub(super) message: String,
}

impl Problem {
    fn new(id: Option<Id>, code: i32, message: impl Into<String>) -> Self {
        let message = message.into();
        Problem { id, code, message }
    }

    pub(super) fn to_json(&self) -> String {
        let id = self.id.as_ref().map_or("null", Id::json);
        let mut error = ObjectWriter::default();
        error
            .raw("code", self.code)
            .string("message", &self.message);
        let mut out = ObjectWriter::default();
        out.string("jsonrpc", "2.0")
            .raw("id", id)
            .raw("error", error.finish());
        out.finish()
    }
}

pub(super) type Read = Result<Message, Problem>;

/// What a line holds.
#[derive(Debug, PartialEq)]
pub(super) enum Content {
    Nothing,
    One(Read),
    Batch(Vec<Read>),
}

/// A line without its end.
#[derive(Debug, PartialEq)]
pub(super) enum Line {
    Whole(Vec<u8>),
    /// It was longer than `limit` and is gone.
    TooLong {
        limit: usize,
    },
}

/// The next line; `None` at the end of the stream. What stands behind the last line break is a line too.
pub(super) fn next_line(stream: &mut impl BufRead, limit: usize) -> io::Result<Option<Line>> {
    let mut line = Vec::new();
    let mut is_too_long = false;
    loop {
        let chunk = match stream.fill_buf() {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            other => other?,
        };
        let (taken, is_end) = match crate::sys::fd::find_byte(chunk, b'\n') {
            Some(at) => (at + 1, true),
            None => (chunk.len(), chunk.is_empty()),
        };
        let part = &chunk[..taken];
        let text = part.strip_suffix(b"\n").unwrap_or(part);
        is_too_long |= line.len() + text.len() > limit;
        if is_too_long {
            line = Vec::new();
        } else {
            line.extend_from_slice(text);
        }
        stream.consume(taken);
        if is_end {
            let is_nothing = taken == 0 && line.is_empty() && !is_too_long;
            return Ok(match (is_nothing, is_too_long) {
                (true, _) => None,
                (false, true) => Some(Line::TooLong { limit }),
                (false, false) => Some(Line::Whole(line)),
            });
        }
    }
}

/// What `line` says.
pub(super) fn read(line: Line) -> Content {
    let bytes = match line {
        Line::Whole(bytes) => bytes,
        Line::TooLong { limit } => {
            let message = format!("the message is longer than {limit} bytes and was not read");
            return Content::One(Err(Problem::new(None, PARSE_ERROR, message)));
        }
    };
    let parse_error = |message: String| Content::One(Err(Problem::new(None, PARSE_ERROR, message)));
    let text = match std::str::from_utf8(&bytes) {
        Ok(text) => text.trim(),
        Err(e) => return parse_error(format!("the message is not UTF-8: {e}")),
    };
    if text.is_empty() {
        return Content::Nothing;
    }
    let valid = match json::validate(text) {
        Ok(valid) => valid,
        Err(e) => return parse_error(format!("the message is not JSON: {e}")),
    };
    match json::elements(valid) {
        Some(items) => Content::Batch(items.into_iter().map(message).collect()),
        None => Content::One(message(valid)),
    }
}

/// The message that the JSON value `text` is.
fn message(text: &str) -> Read {
    let invalid = |id, message: &str| Err(Problem::new(id, INVALID_REQUEST, message));
    let Some(members) = json::members(text) else {
        return invalid(None, "a message is a JSON object");
    };
    // The last one counts where a member is written twice, as everywhere.
    let member = |name: &str| {
        let found = members.iter().rev().find(|(key, _)| key == name);
        found.map(|(_, value)| *value)
    };
    let value = |name: &str| member(name).and_then(|text| json::parse(text).ok());
    let id = value("id").as_ref().and_then(Id::of);
    if value("jsonrpc").as_ref().and_then(Value::as_str) != Some("2.0") {
        return invalid(id, r#"a message has the member "jsonrpc": "2.0""#);
    }
    let Some(method) = member("method") else {
        return match member("result").or(member("error")) {
            Some(_) => Ok(Message::Response),
            None => invalid(id, "a request names its method"),
        };
    };
    let Some(method) = value("method").and_then(|m| m.as_str().map(str::to_string)) else {
        return invalid(
            id,
            &format!("method: expected a string, got {}", clip(method)),
        );
    };
    let params = parameters(member("params"));
    match (member("id"), id) {
        (None, _) => Ok(Message::Notification {
            method,
            params: params.unwrap_or(Value::Null),
        }),
        (Some(_), Some(id)) => match params {
            Ok(params) => Ok(Message::Request { id, method, params }),
            Err(message) => Err(Problem::new(Some(id), INVALID_PARAMS, message)),
        },
        (Some(other), None) => invalid(
            None,
            &format!("id: expected a string or a number, got {}", clip(other)),
        ),
    }
}

/// Parameters as an object, which is empty where none were given.
fn parameters(text: Option<&str>) -> Result<Value, String> {
    let value = match text {
        None | Some("null") => return Ok(Value::Object(Vec::new())),
        Some(text) => json::parse(text).map_err(|e| format!("params: {e}"))?,
    };
    match value {
        Value::Object(_) => Ok(value),
        _ => Err("params: expected an object".into()),
    }
}

/// The beginning of `text`, for a message.
fn clip(text: &str) -> String {
    match text.char_indices().nth(60) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_string(),
    }
}

pub(super) fn response(id: &Id, result: &str) -> String {
    let mut out = ObjectWriter::default();
    out.string("jsonrpc", "2.0")
        .raw("id", id.json())
        .raw("result", result);
    out.finish()
}

pub(super) fn failure(id: &Id, code: i32, message: &str) -> String {
    Problem::new(Some(id.clone()), code, message).to_json()
}

pub(super) fn notification(method: &str, params: &str) -> String {
    let mut out = ObjectWriter::default();
    out.string("jsonrpc", "2.0")
        .string("method", method)
        .raw("params", params);
    out.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::BufReader;

    fn lines(text: &[u8], limit: usize, buffer: usize) -> Vec<Line> {
        let mut stream = BufReader::with_capacity(buffer, text);
        std::iter::from_fn(|| next_line(&mut stream, limit).unwrap()).collect()
    }

    #[test]
    fn lines_are_cut_wherever_the_chunks_are() {
        let whole = |text: &str| Line::Whole(text.into());
        for buffer in [1, 2, 3, 100] {
            assert_eq!(
                lines(b"ab\n\n1234\n12345\nx", 4, buffer),
                [
                    whole("ab"),
                    whole(""),
                    whole("1234"),
                    Line::TooLong { limit: 4 },
                    whole("x"),
                ]
            );
            assert_eq!(lines(b"12345", 4, buffer), [Line::TooLong { limit: 4 }]);
            assert_eq!(lines(b"", 4, buffer), []);
        }
    }

    fn read_text(text: &str) -> Content {
        read(Line::Whole(text.into()))
    }

    fn problem(text: &str) -> (Option<String>, i32) {
        match read_text(text) {
            Content::One(Err(problem)) => (problem.id.map(|id| id.0), problem.code),
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn identifiers_go_back_as_they_came() {
        for (written, expected) in [
            ("7", "7"),
            ("12345678901234567890123", "12345678901234567890123"),
            (r#""a\u0062""#, r#""ab""#),
            ("-1", "-1"),
        ] {
            let text = format!(r#"{{"jsonrpc":"2.0","id":{written},"method":"ping"}}"#);
            match read_text(&text) {
                Content::One(Ok(Message::Request { id, .. })) => assert_eq!(id.0, expected),
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn what_is_no_request_is_a_problem_with_its_identifier() {
        let seven = || Some("7".to_string());
        for (text, expected) in [
            ("{", (None, PARSE_ERROR)),
            ("1", (None, INVALID_REQUEST)),
            (r#"{"id":7,"method":"ping"}"#, (seven(), INVALID_REQUEST)),
            (
                r#"{"jsonrpc":"1.0","id":7,"method":"ping"}"#,
                (seven(), INVALID_REQUEST),
            ),
            (r#"{"jsonrpc":"2.0","id":7}"#, (seven(), INVALID_REQUEST)),
            (
                r#"{"jsonrpc":"2.0","id":7,"method":1}"#,
                (seven(), INVALID_REQUEST),
            ),
            (
                r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
                (None, INVALID_REQUEST),
            ),
            (
                r#"{"jsonrpc":"2.0","id":[],"method":"ping"}"#,
                (None, INVALID_REQUEST),
            ),
            (
                r#"{"jsonrpc":"2.0","id":7,"method":"ping","params":[]}"#,
                (seven(), INVALID_PARAMS),
            ),
        ] {
            assert_eq!(problem(text), expected, "{text}");
        }
        assert_eq!(read_text(" \r"), Content::Nothing);
        let answer = r#"{"jsonrpc":"2.0","id":7,"result":{}}"#;
        assert_eq!(read_text(answer), Content::One(Ok(Message::Response)));
    }

    #[test]
    fn a_deep_document_is_a_problem_of_its_request() {
        let deep = "[".repeat(120) + &"]".repeat(120);
        let text = format!(r#"{{"jsonrpc":"2.0","id":7,"method":"ping","params":{{"a":{deep}}}}}"#);
        assert_eq!(problem(&text), (Some("7".into()), INVALID_PARAMS));
    }

    #[test]
    fn what_is_written_is_one_line() {
        let id = Id("1".into());
        let text = failure(&id, INTERNAL_ERROR, "two\nlines\r");
        assert!(!text.contains(['\n', '\r']), "{text}");
    }
}

//! Frames: newline-delimited JSON, bounded in size, every bad line answered by name.

use crate::json;
use crate::sys;
use std::fmt;

/// How much of an oversized line is kept to find out which request it was.
const HEAD_BYTES: usize = 256;

/// How many bytes a connection asks the kernel for at a time, at least.
const READ_CHUNK: usize = 64 * 1024;

/// Collects bytes into lines of at most `limit` bytes, without ever holding more of a longer one than its head.
pub(crate) struct LineBuffer {
    /// Initialised room; the bytes received and not yet handed out are `start..end`.
    bytes: Vec<u8>,
    start: usize,
    end: usize,
    /// How far the unfinished line was searched for its end.
    scanned: usize,
    limit: usize,
    /// Bytes dropped so far of a line that is too long.
    dropped: Option<usize>,
}

impl fmt::Debug for LineBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The bytes hold arguments and tokens.
        f.debug_struct("LineBuffer").finish_non_exhaustive()
    }
}

/// What [`LineBuffer::next_line`] found.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// A complete line without its newline.
    Complete(Vec<u8>),
    /// A line over the limit: its size, and its first bytes.
    TooLong { size: usize, head: Vec<u8> },
}

impl LineBuffer {
    pub(crate) fn new(limit: usize) -> Self {
        LineBuffer {
            bytes: Vec::new(),
            start: 0,
            end: 0,
            scanned: 0,
            limit,
            dropped: None,
        }
    }

    pub(crate) fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// Lets `read` append to the buffer's spare room, which grows while a long line arrives.
    pub(crate) fn fill<E>(
        &mut self,
        read: impl FnOnce(&mut [u8]) -> Result<usize, E>,
    ) -> Result<usize, E> {
        if self.start == self.end {
            (self.start, self.end, self.scanned) = (0, 0, 0);
        }
        if self.bytes.len() - self.end < READ_CHUNK / 2 {
            // Doubling keeps the number of reads of a long line small.
            let room = READ_CHUNK.max(self.end.min(1 << 20));
            self.bytes.resize(self.end + room, 0);
        }
        let got = read(&mut self.bytes[self.end..])?;
        self.end += got;
        Ok(got)
    }

    /// The next complete line, if there is one.
    pub(crate) fn next_line(&mut self) -> Option<Line> {
        let from = self.scanned.max(self.start);
        let Some(at) = sys::fd::find_byte(&self.bytes[from..self.end], b'\n') else {
            self.scanned = self.end;
            self.drop_excess();
            return None;
        };
        let newline = from + at;
        let line = &self.bytes[self.start..newline];
        let dropped = self.dropped.take();
        let found = if dropped.is_some() || line.len() > self.limit {
            Line::TooLong {
                size: dropped.unwrap_or(0) + line.len(),
                head: line[..line.len().min(HEAD_BYTES)].to_vec(),
            }
        } else if self.start == 0 && newline + 1 == self.end && line.len() >= READ_CHUNK {
            // A long line that fills the buffer is handed over instead of copied.
            let mut whole = std::mem::take(&mut self.bytes);
            whole.truncate(newline);
            (self.end, self.scanned) = (0, 0);
            return Some(Line::Complete(whole));
        } else {
            Line::Complete(line.to_vec())
        };
        self.start = newline + 1;
        self.scanned = self.start;
        Some(found)
    }

    /// Forgets all but the head of an unfinished line that is already too long.
    fn drop_excess(&mut self) {
        let pending = self.end - self.start;
        if pending <= self.limit && self.dropped.is_none() {
            return;
        }
        let keep = HEAD_BYTES.min(pending);
        self.dropped = Some(self.dropped.unwrap_or(0) + pending - keep);
        self.end = self.start + keep;
        self.scanned = self.end;
        self.bytes.truncate(self.end);
        self.bytes.shrink_to(READ_CHUNK);
    }
}

/// A tool call as it came over the wire.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Request {
    /// The caller's id, as JSON text, given back untouched.
    pub id: String,
    pub tool: String,
    /// A JSON object, as text.
    pub args: String,
}

/// Why a line is no request, with the id if one could be read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Malformed {
    pub id: String,
    pub message: String,
}

/// The token in a connection's first line.
pub(crate) fn parse_token(line: &[u8]) -> Option<String> {
    let text = json::validate(std::str::from_utf8(line).ok()?).ok()?;
    member(text, "token").and_then(json::decode_string)
}

/// Reads `{"id": n, "tool": "…", "args": {…}}`; unknown members are ignored so that the protocol can grow.
pub(crate) fn parse_request(line: Vec<u8>) -> Result<Request, Malformed> {
    let malformed = |id: &str, message: String| Malformed {
        id: id.to_string(),
        message,
    };
    let line = String::from_utf8(line)
        .map_err(|_| malformed("null", "Malformed request: not valid UTF-8".into()))?;
    let text = json::validate(&line)
        .map_err(|e| malformed("null", format!("Malformed request: not valid JSON: {e}")))?;
    let members = json::members(text).ok_or_else(|| {
        malformed(
            "null",
            "Malformed request: expected an object {\"id\", \"tool\", \"args\"}".into(),
        )
    })?;
    let get = |key| {
        members
            .iter()
            .rev()
            .find(|(k, _)| k == key)
            .map(|(_, v)| *v)
    };
    let id = match get("id") {
        Some(id) if is_scalar(id) => id,
        Some(_) => {
            let message = "Malformed request: \"id\" must be a number or a string";
            return Err(malformed("null", message.into()));
        }
        None => {
            return Err(malformed(
                "null",
                "Malformed request: \"id\" is missing".into(),
            ))
        }
    };
    let tool = match get("tool").map(json::decode_string) {
        Some(Some(tool)) => tool,
        Some(None) => {
            return Err(malformed(
                id,
                "Malformed request: \"tool\" must be a string".into(),
            ))
        }
        None => {
            return Err(malformed(
                id,
                "Malformed request: \"tool\" is missing".into(),
            ))
        }
    };
    let args = match get("args") {
        Some(args) if args.starts_with('{') => args,
        None => "{}",
        Some(_) => {
            return Err(malformed(
                id,
                "Malformed request: \"args\" must be an object".into(),
            ))
        }
    };
    Ok(Request {
        id: id.to_string(),
        tool,
        args: args.to_string(),
    })
}

/// The id in the first bytes of a line that was too long to keep: our own client writes it first.
pub(crate) fn id_in_head(head: &[u8]) -> String {
    let text = String::from_utf8_lossy(head);
    let after_key = text
        .trim_start()
        .strip_prefix('{')
        .and_then(|t| t.trim_start().strip_prefix("\"id\""))
        .and_then(|t| t.trim_start().strip_prefix(':'));
    let id = after_key
        .and_then(|t| t.split([',', '}']).next())
        .map_or("", str::trim);
    match json::validate(id) {
        Ok(valid) if is_scalar(valid) => valid.to_string(),
        _ => "null".to_string(),
    }
}

/// `{"id": …, "result": …}` as one line. `result` must be valid JSON; line breaks between its tokens become spaces.
pub(crate) fn result_frame(id: &str, result: &str) -> Vec<u8> {
    let mut frame = Vec::with_capacity(result.len() + id.len() + 24);
    frame.extend_from_slice(b"{\"id\":");
    frame.extend_from_slice(id.as_bytes());
    frame.extend_from_slice(b",\"result\":");
    let start = frame.len();
    frame.extend_from_slice(result.as_bytes());
    // Within strings JSON allows no raw line break, so every one found here is white space.
    let mut from = start;
    while let Some(at) = sys::fd::find_byte(&frame[from..], b'\n') {
        frame[from + at] = b' ';
        from += at + 1;
    }
    frame.extend_from_slice(b"}\n");
    frame
}

/// `{"id": …, "error": "…"}` as one line.
pub(crate) fn error_frame(id: &str, message: &str) -> Vec<u8> {
    format!("{{\"id\":{id},\"error\":{}}}\n", json::quote(message)).into_bytes()
}

/// An error frame with what helps to do better: the text of a JSON object.
pub(crate) fn detailed_error_frame(id: &str, message: &str, details: &str) -> Vec<u8> {
    let message = json::quote(message);
    format!("{{\"id\":{id},\"error\":{message},\"details\":{details}}}\n").into_bytes()
}

fn member<'a>(object: &'a str, key: &str) -> Option<&'a str> {
    let members = json::members(object)?;
    members
        .into_iter()
        .rev()
        .find(|(k, _)| k == key)
        .map(|(_, v)| v)
}

fn is_scalar(json: &str) -> bool {
    !json.starts_with(['{', '['])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn feed(buffer: &mut LineBuffer, bytes: &[u8]) {
        let mut rest = bytes;
        while !rest.is_empty() {
            let got = buffer.fill(|room| {
                let n = room.len().min(rest.len());
                room[..n].copy_from_slice(&rest[..n]);
                Ok::<usize, ()>(n)
            });
            rest = &rest[got.unwrap()..];
        }
    }

    fn lines(buffer: &mut LineBuffer) -> Vec<Line> {
        std::iter::from_fn(|| buffer.next_line()).collect()
    }

    #[test]
    fn lines_are_found_whatever_the_borders() {
        let text = b"first\n\nthird\n";
        for cut in 0..text.len() {
            let mut buffer = LineBuffer::new(100);
            feed(&mut buffer, &text[..cut]);
            let mut found = lines(&mut buffer);
            feed(&mut buffer, &text[cut..]);
            found.extend(lines(&mut buffer));
            let expected: Vec<Line> = [&b"first"[..], b"", b"third"]
                .iter()
                .map(|l| Line::Complete(l.to_vec()))
                .collect();
            assert_eq!(found, expected, "cut at {cut}");
        }
    }

    #[test]
    fn the_limit_is_exact_and_the_next_line_is_intact() {
        for (size, too_long) in [
            (0, false),
            (9, false),
            (10, false),
            (11, true),
            (5000, true),
        ] {
            for chunk in [1, 7, 100_000] {
                let mut buffer = LineBuffer::new(10);
                let mut text = vec![b'x'; size];
                text.extend_from_slice(b"\nnext\n");
                let mut found = Vec::new();
                for piece in text.chunks(chunk) {
                    feed(&mut buffer, piece);
                    found.extend(lines(&mut buffer));
                }
                assert_eq!(found.len(), 2, "{size} {chunk}");
                match &found[0] {
                    Line::TooLong { size: told, .. } => assert!(too_long && *told == size),
                    Line::Complete(line) => assert!(!too_long && line.len() == size),
                }
                assert_eq!(found[1], Line::Complete(b"next".to_vec()));
            }
        }
    }

    #[test]
    fn an_endless_line_is_not_held() {
        let mut buffer = LineBuffer::new(1000);
        for _ in 0..100 {
            feed(&mut buffer, &[b'y'; 100_000]);
            assert_eq!(buffer.next_line(), None);
            assert!(
                buffer.bytes.capacity() < 1 << 20,
                "{}",
                buffer.bytes.capacity()
            );
        }
        feed(&mut buffer, b"\n");
        assert!(matches!(
            buffer.next_line(),
            Some(Line::TooLong {
                size: 10_000_000,
                ..
            })
        ));
    }

    #[test]
    fn requests_are_read_and_bad_ones_named() {
        let request =
            parse_request(br#"{"id": 7, "tool": "t", "args": {"a": 1}, "more": []}"#.to_vec());
        assert_eq!(
            request.unwrap(),
            Request {
                id: "7".into(),
                tool: "t".into(),
                args: r#"{"a": 1}"#.into()
            }
        );
        let bad: [(&[u8], &str, &str); 8] = [
            (b"", "null", "not valid JSON"),
            (b"\xff", "null", "not valid UTF-8"),
            (b"[1]", "null", "expected an object"),
            (br#"{"tool":"t"}"#, "null", "\"id\" is missing"),
            (br#"{"id":[1],"tool":"t"}"#, "null", "\"id\" must be"),
            (br#"{"id":"a"}"#, "\"a\"", "\"tool\" is missing"),
            (br#"{"id":2,"tool":5}"#, "2", "\"tool\" must be a string"),
            (
                br#"{"id":3,"tool":"t","args":[]}"#,
                "3",
                "\"args\" must be an object",
            ),
        ];
        for (line, id, message) in bad {
            let error = parse_request(line.to_vec()).unwrap_err();
            assert_eq!(error.id, id);
            assert!(error.message.contains(message), "{}", error.message);
        }
    }

    #[test]
    fn frames_are_single_lines() {
        let frame = result_frame("1", "{\n \"a\": \"x\\ny\"\r\n}");
        let text = String::from_utf8(frame).unwrap();
        assert_eq!(text.matches('\n').count(), 1);
        assert!(text.contains("x\\ny"));
        assert_eq!(
            error_frame("null", "a\nb"),
            b"{\"id\":null,\"error\":\"a\\nb\"}\n"
        );
    }

    #[test]
    fn the_id_of_a_cut_line_is_found() {
        assert_eq!(id_in_head(br#"{"id":12,"tool":"#), "12");
        assert_eq!(id_in_head(br#"{ "id" : "a b" , "tool"#), "\"a b\"");
        for head in [&b"{\"tool\":1"[..], b"", b"{\"id\":{\"x\"", b"{\"id\":"] {
            assert_eq!(id_in_head(head), "null");
        }
    }
}

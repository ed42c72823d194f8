//! `read_file`: some lines of a text file, in memory that does not depend on the file's size.

use super::place::{self, Place};
use super::{required, Answer, Context, Failure};
use crate::json::reader::Section;
use crate::json::ObjectWriter;
use std::io::{self, Read};

const LINES: u64 = 2000;
/// Characters of a line; what is longer is cut.
const LINE_CHARS: usize = 2000;
/// More bytes than that many characters have.
const LINE_BYTES: usize = LINE_CHARS * 4 + 4;
/// Of a message's bytes one in so many: a control character becomes six in JSON.
const ESCAPED: usize = 8;
/// Where a byte 0 means that this is no text.
const BINARY_CHECK: usize = 8192;
const CHUNK: usize = 64 * 1024;
/// So many chunks are read between two looks whether anybody still wants to know.
const CHUNKS_A_LOOK: usize = 64;

pub(super) fn read_file(context: &Context<'_>, arguments: &Section<'_>) -> Answer {
    arguments.only(&["path", "offset", "limit"], |_| false)?;
    let place = place::find(context, required(arguments, "path")?)?;
    let offset = arguments.integer("offset", 1..=u64::MAX)?.unwrap_or(1);
    let limit = arguments.integer("limit", 1..=u64::MAX)?.unwrap_or(LINES);
    let mut window = Window::new(offset, limit, context.config.max_message_bytes / ESCAPED);
    let size = scan(context, &place, &mut window)?;
    Ok(window.finish(size))
}

/// Reads the file to its end, since `total_lines` is to be known. Its size.
fn scan(context: &Context<'_>, place: &Place<'_>, window: &mut Window) -> Result<u64, Failure> {
    let mut file = place.open_file()?;
    let mut chunk = vec![0; CHUNK];
    let mut size = 0;
    for turn in 1.. {
        let n = match file.read(&mut chunk) {
            Ok(0) => break,
            Ok(n) => n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => return Err(place.explain(&e)),
        };
        if size == 0 {
            refuse_binary(place, &chunk[..n.min(BINARY_CHECK)])?;
        }
        size += n as u64;
        window.push(&chunk[..n]);
        if turn % CHUNKS_A_LOOK == 0 && !context.call.is_wanted() {
            return Err("the run has ended".into());
        }
    }
    window.end();
    Ok(size)
}

fn refuse_binary(place: &Place<'_>, start: &[u8]) -> Result<(), Failure> {
    let given = place.given;
    if start.starts_with(b"\xff\xfe") || start.starts_with(b"\xfe\xff") {
        return Err(format!(
            "{given}: UTF-16 text, which read_file does not decode; use open({given:?}, encoding=\"utf-16\")"
        )
        .into());
    }
    match start.iter().position(|byte| *byte == 0) {
        None => Ok(()),
        Some(at) => Err(format!(
            "{given}: binary (byte {at} is 0), not text; use open({given:?}, \"rb\")"
        )
        .into()),
    }
}

/// The lines that were asked for, on their way past.
struct Window {
    first: u64,
    limit: u64,
    most_bytes: usize,
    content: String,
    /// Lines in `content`.
    taken: u64,
    /// Lines that have begun.
    lines: u64,
    /// The beginning of the line that is being read, if it is to be taken.
    line: Vec<u8>,
    /// Bytes of that line which are not in `line`.
    beyond: u64,
    in_line: bool,
    cut_lines: u64,
    bad_bytes: bool,
    is_full: bool,
}

impl Window {
    fn new(first: u64, limit: u64, most_bytes: usize) -> Self {
        Window {
            first,
            limit,
            most_bytes,
            content: String::new(),
            taken: 0,
            lines: 0,
            line: Vec::new(),
            beyond: 0,
            in_line: false,
            cut_lines: 0,
            bad_bytes: false,
            is_full: false,
        }
    }

    fn push(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self.is_past() {
                self.count(bytes);
                return;
            }
            let end = bytes.iter().position(|byte| *byte == b'\n');
            let (piece, rest) = bytes.split_at(end.map_or(bytes.len(), |at| at + 1));
            bytes = rest;
            self.begin_line();
            if self.lines >= self.first {
                let room = LINE_BYTES - self.line.len();
                self.line.extend_from_slice(&piece[..piece.len().min(room)]);
                self.beyond += piece.len().saturating_sub(room) as u64;
            }
            if end.is_some() {
                self.end_line(true);
            }
        }
    }

    /// Whether nothing that follows can belong to the window.
    fn is_past(&self) -> bool {
        self.is_full || self.taken == self.limit
    }

    fn begin_line(&mut self) {
        if !self.in_line {
            self.in_line = true;
            self.lines += 1;
        }
    }

    fn count(&mut self, bytes: &[u8]) {
        self.begin_line();
        self.lines += bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
        if bytes.ends_with(b"\n") {
            self.lines -= 1;
            self.in_line = false;
        }
    }

    fn end(&mut self) {
        if self.in_line && !self.is_past() {
            self.end_line(false);
        }
    }

    fn end_line(&mut self, has_end: bool) {
        self.in_line = false;
        if self.lines < self.first {
            return;
        }
        let line = std::mem::take(&mut self.line);
        let beyond = std::mem::take(&mut self.beyond);
        // The end of a line that is longer than what was kept of it is not in there.
        let text = match (beyond, has_end) {
            (0, true) => &line[..line.len() - 1],
            _ => &line[..],
        };
        let ending = if has_end { "\n" } else { "" };
        let shown = self.shown(text, beyond - u64::from(has_end && beyond > 0));
        if self.content.len() + shown.len() + ending.len() > self.most_bytes {
            self.is_full = true;
            return;
        }
        self.content.push_str(&shown);
        self.content.push_str(ending);
        self.taken += 1;
    }

    /// A line as it is returned; `beyond` bytes of it are not in `line`.
    fn shown(&mut self, line: &[u8], beyond: u64) -> String {
        // A character that the cut has divided is no bad byte.
        let whole = match std::str::from_utf8(line) {
            Err(e) if beyond > 0 && e.error_len().is_none() => &line[..e.valid_up_to()],
            _ => line,
        };
        let text = String::from_utf8_lossy(whole);
        self.bad_bytes |= matches!(text, std::borrow::Cow::Owned(_));
        match text.char_indices().nth(LINE_CHARS) {
            None if beyond == 0 => text.into_owned(),
            cut => {
                self.cut_lines += 1;
                let kept = cut.map_or(text.len(), |(at, _)| at);
                let missing = (line.len() - kept) as u64 + beyond;
                format!("{}… [{missing} bytes of this line cut]", &text[..kept])
            }
        }
    }

    fn finish(self, size: u64) -> String {
        let last = self.first.saturating_add(self.taken).saturating_sub(1);
        let truncated = self.lines > last || self.cut_lines > 0;
        let mut hints = Vec::new();
        if self.lines == 0 {
            hints.push("The file is empty.".to_string());
        } else if self.first > self.lines {
            hints.push(format!("The file has only {} lines.", self.lines));
        } else if self.lines > last {
            let next = last + 1;
            hints.push(format!(
                "Lines {} to {last} of {}; continue with offset={next}.",
                self.first, self.lines
            ));
        }
        if self.cut_lines > 0 {
            hints.push(format!(
                "{} lines are longer than {LINE_CHARS} characters and were cut.",
                self.cut_lines
            ));
        }
        if self.bad_bytes {
            hints.push("The file is not UTF-8: bad bytes were replaced by U+FFFD.".into());
        }
        let mut result = ObjectWriter::default();
        result
            .string("content", &self.content)
            .raw("total_lines", self.lines)
            .raw("file_size", size)
            .raw("truncated", truncated);
        if !hints.is_empty() {
            result.string("hint", &hints.join(" "));
        }
        result.finish()
    }
}

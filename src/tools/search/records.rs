//! The stream that both searchers write, and what is kept of it.
//!
//! A record is `PATH NUL`, then for a search in contents `LINE` and `:` (a match) or `-` (context), the text of the line
//! and LF. It is taken byte by byte and bounded: of a line of any length only what is shown is kept.

use super::glob::Glob;
use super::report::{Found, Match, Page, Unit};
use std::collections::{HashMap, VecDeque};
use std::ops::Range;

/// Characters of a line that are shown.
const LINE_CHARS: usize = 2000;
const LINE_BYTES: usize = LINE_CHARS * 4 + 4;
/// Longer than any path and any number.
const MOST_PATH: usize = 64 * 1024;
/// How the one searcher says that what it has told of a file does not count.
const BINARY: &[u8] = b": WARNING: stopped searching binary file";

/// What the stream is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// Paths alone.
    Paths,
    /// Lines with their paths.
    Lines,
}

/// Which results are kept; all are counted.
#[derive(Debug)]
pub(super) enum Choice {
    /// Those of a page, in the order of the stream.
    Page(Page),
    /// Of each of these files the matches with these numbers.
    Of(HashMap<String, Range<u64>>),
}

/// Reads the stream and keeps what was chosen.
pub(super) struct Collector<'a> {
    form: Form,
    unit: Unit,
    choice: Choice,
    context: usize,
    glob: Option<&'a Glob>,
    /// What stands before the paths of the results, and what the searcher put before its own.
    prefix: String,
    state: State,
    field: Vec<u8>,
    /// Bytes of the line that were not kept.
    beyond: u64,
    number: u64,
    is_match: bool,
    file: File,
    matches: Vec<Match>,
    files: Vec<(String, u64)>,
    total_matches: u64,
    total_files: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Path,
    Number,
    Text,
}

/// The file that the stream is in.
#[derive(Debug, Default)]
struct File {
    /// As the searcher writes it; empty before the first one.
    raw: Vec<u8>,
    /// `None`: it was not asked for.
    path: Option<String>,
    matches: u64,
    shown: Vec<Match>,
    /// The last lines that were no match, for the next one.
    recent: VecDeque<(u64, String)>,
}

impl<'a> Collector<'a> {
    /// `prefix` stands before every path that is told.
    pub(super) fn new(
        (form, unit): (Form, Unit),
        choice: Choice,
        context: usize,
        glob: Option<&'a Glob>,
        prefix: &str,
    ) -> Self {
        Collector {
            form,
            unit,
            choice,
            context,
            glob,
            prefix: prefix.to_string(),
            state: State::Path,
            field: Vec::new(),
            beyond: 0,
            number: 0,
            is_match: false,
            file: File::default(),
            matches: Vec::new(),
            files: Vec::new(),
            total_matches: 0,
            total_files: 0,
        }
    }

    pub(super) fn push(&mut self, mut bytes: &[u8]) {
        while let Some(first) = bytes.first() {
            match self.state {
                State::Path => bytes = self.take_path(bytes),
                State::Number => {
                    bytes = &bytes[1..];
                    self.take_digit(*first);
                }
                State::Text => bytes = self.take_text(bytes),
            }
        }
    }

    fn take_path<'b>(&mut self, bytes: &'b [u8]) -> &'b [u8] {
        let end = bytes.iter().position(|b| *b == 0);
        let (piece, rest) = bytes.split_at(end.unwrap_or(bytes.len()));
        let room = MOST_PATH.saturating_sub(self.field.len());
        self.field
            .extend_from_slice(&piece[..piece.len().min(room)]);
        match end {
            None => rest,
            Some(_) => {
                self.begin_record();
                &rest[1..]
            }
        }
    }

    fn begin_record(&mut self) {
        let mut raw = std::mem::take(&mut self.field);
        if let Some(at) = self.end_of_warning(&raw) {
            self.file.matches = 0;
            raw.drain(..at);
        }
        if self.form == Form::Paths {
            self.enter(raw);
            self.file.matches = 1;
            return;
        }
        if raw != self.file.raw {
            self.enter(raw);
        }
        self.number = 0;
        self.state = State::Number;
    }

    /// Where the next path begins if `raw` begins with a warning about the file before it.
    fn end_of_warning(&self, raw: &[u8]) -> Option<usize> {
        let rest = raw.strip_prefix(&self.file.raw[..])?;
        if self.file.raw.is_empty() || !rest.starts_with(BINARY) {
            return None;
        }
        raw.iter().position(|b| *b == b'\n').map(|at| at + 1)
    }

    fn enter(&mut self, raw: Vec<u8>) {
        self.leave();
        let path = String::from_utf8_lossy(raw.strip_prefix(b"./").unwrap_or(&raw)).into_owned();
        let wanted = self.glob.is_none_or(|glob| glob.fits(&path));
        self.file = File {
            path: wanted.then(|| format!("{}{path}", self.prefix)),
            raw,
            ..File::default()
        };
    }

    /// Counts the file that ends here.
    fn leave(&mut self) {
        let file = std::mem::take(&mut self.file);
        let Some(path) = file.path.filter(|_| file.matches > 0) else {
            return;
        };
        if self.wants_file() {
            self.files.push((path, file.matches));
        }
        self.total_files += 1;
        self.total_matches += file.matches;
        self.matches.extend(file.shown);
    }

    fn wants_file(&self) -> bool {
        match &self.choice {
            Choice::Page(page) => self.unit != Unit::Match && page.holds(self.total_files),
            Choice::Of(_) => false,
        }
    }

    /// Whether the next match in this file is to be kept.
    fn wants_match(&self) -> bool {
        if self.unit != Unit::Match {
            return false;
        }
        match &self.choice {
            Choice::Page(page) => page.holds(self.total_matches + self.file.matches),
            Choice::Of(files) => {
                let path = self.file.path.as_ref();
                let numbers = path.and_then(|path| files.get(path));
                numbers.is_some_and(|numbers| numbers.contains(&self.file.matches))
            }
        }
    }

    fn take_digit(&mut self, byte: u8) {
        match byte {
            b'0'..=b'9' => {
                let digit = u64::from(byte - b'0');
                self.number = self.number.saturating_mul(10).saturating_add(digit);
            }
            _ => {
                self.is_match = byte == b':';
                self.state = State::Text;
            }
        }
    }

    fn take_text<'b>(&mut self, bytes: &'b [u8]) -> &'b [u8] {
        let end = bytes.iter().position(|b| *b == b'\n');
        let (piece, rest) = bytes.split_at(end.unwrap_or(bytes.len()));
        let room = LINE_BYTES.saturating_sub(self.field.len());
        self.field
            .extend_from_slice(&piece[..piece.len().min(room)]);
        self.beyond += piece.len().saturating_sub(room) as u64;
        match end {
            None => rest,
            Some(_) => {
                self.end_record();
                &rest[1..]
            }
        }
    }

    fn end_record(&mut self) {
        self.state = State::Path;
        let line = std::mem::take(&mut self.field);
        let beyond = std::mem::take(&mut self.beyond);
        let text = || shown(&line, beyond);
        if self.file.path.is_none() {
            return;
        }
        if self.is_match {
            let wanted = self.wants_match();
            self.file.matches += 1;
            if wanted {
                let before = self.file.take_recent(self.number, self.context);
                let path = self.file.path.clone().unwrap_or_default();
                self.file.add_after(self.number, self.context, &text());
                self.file.shown.push(Match {
                    path,
                    line: self.number,
                    content: text(),
                    before,
                    after: Vec::new(),
                });
                self.file.remember(self.number, self.context, text());
                return;
            }
        }
        if self.context > 0 {
            self.file.add_after(self.number, self.context, &text());
            self.file.remember(self.number, self.context, text());
        }
    }

    pub(super) fn finish(mut self) -> Found {
        self.leave();
        Found {
            matches: self.matches,
            files: self.files,
            total_matches: self.total_matches,
            total_files: self.total_files,
        }
    }
}

impl File {
    /// The lines just before line `number`.
    fn take_recent(&self, number: u64, context: usize) -> Vec<String> {
        let near = |line: &&(u64, String)| line.0 + context as u64 >= number && line.0 < number;
        self.recent
            .iter()
            .filter(near)
            .map(|(_, text)| text.clone())
            .collect()
    }

    fn remember(&mut self, number: u64, context: usize, text: String) {
        if context == 0 {
            return;
        }
        if self.recent.len() == context {
            self.recent.pop_front();
        }
        self.recent.push_back((number, text));
    }

    /// Gives line `number` to the matches that it follows closely.
    fn add_after(&mut self, number: u64, context: usize, text: &str) {
        for found in self.shown.iter_mut().rev() {
            if found.line >= number || found.line + (context as u64) < number {
                break;
            }
            found.after.push(text.to_string());
        }
    }
}

/// A line as it is shown.
fn shown(line: &[u8], beyond: u64) -> String {
    let line = match beyond {
        0 => line.strip_suffix(b"\r").unwrap_or(line),
        _ => line,
    };
    let text = String::from_utf8_lossy(line);
    match text.char_indices().nth(LINE_CHARS) {
        None if beyond == 0 => text.into_owned(),
        cut => format!("{}…", &text[..cut.map_or(text.len(), |(at, _)| at)]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::{self, Value};

    const ALL: Page = Page {
        offset: 0,
        limit: u64::MAX,
    };

    fn collect(kind: (Form, Unit), page: Page, context: usize, stream: &[u8]) -> Value {
        let mut whole = None;
        for size in [1, 3, stream.len().max(1)] {
            let choice = Choice::Page(page);
            let mut collector = Collector::new(kind, choice, context, None, "");
            for piece in stream.chunks(size) {
                collector.push(piece);
            }
            let report = collector.finish().report(kind.1, page, context, None);
            let result = json::parse(&report).unwrap();
            assert_eq!(*whole.get_or_insert(result.clone()), result);
        }
        whole.unwrap()
    }

    #[test]
    fn records_become_matches_wherever_the_stream_is_cut() {
        let stream = b"./a\x001:one\x00\r\na\x002-no\n./a\x003:th\xffree\n./d/b\n\x0010:x:y\n";
        let lines = collect((Form::Lines, Unit::Match), ALL, 0, stream);
        assert_eq!(
            lines.get("matches").unwrap().to_string(),
            "[{\"path\":\"a\",\"line\":1,\"content\":\"one\\u0000\"},{\"path\":\"a\",\"line\":3,\"content\":\"th\u{fffd}ree\"},\
             {\"path\":\"d/b\\n\",\"line\":10,\"content\":\"x:y\"}]"
        );
        let counts = collect(
            (Form::Lines, Unit::Count),
            ALL,
            0,
            b"a\x001:\na\x002:\nb\x003:\n",
        );
        assert_eq!(
            counts.get("counts").unwrap().to_string(),
            "{\"a\":2,\"b\":1}"
        );
        assert_eq!(counts.get("total_count").unwrap().to_string(), "3");
        let files = collect((Form::Paths, Unit::File), ALL, 0, b"./a\x00b c\x00");
        assert_eq!(files.get("files").unwrap().to_string(), "[\"a\",\"b c\"]");
    }

    #[test]
    fn a_file_that_turns_out_binary_does_not_count() {
        let stream = b"./a\x001:x\n./a: WARNING: stopped searching binary file after match (found \"\\0\" byte around offset 9)\n./b\x001:y\n";
        let found = collect((Form::Lines, Unit::Match), ALL, 0, stream);
        assert_eq!(
            found.get("matches").unwrap().to_string(),
            "[{\"path\":\"b\",\"line\":1,\"content\":\"y\"}]"
        );
        assert_eq!(found.get("total_count").unwrap().to_string(), "1");
    }

    #[test]
    fn lines_around_a_match_go_with_it() {
        let stream = b"a\x001-1\na\x002-2\na\x003:3\na\x004-4\na\x005:5\na\x006-6\na\x007-7\na\x0020-20\na\x0021:21\n";
        let found = collect((Form::Lines, Unit::Match), ALL, 2, stream);
        let shown = found.get("matches").unwrap().to_string();
        for part in [
            "\"content\":\"3\",\"before\":[\"1\",\"2\"],\"after\":[\"4\",\"5\"]",
            "\"content\":\"5\",\"before\":[\"3\",\"4\"],\"after\":[\"6\",\"7\"]",
            "\"content\":\"21\",\"before\":[\"20\"],\"after\":[]",
        ] {
            assert!(shown.contains(part), "{shown}");
        }
    }

    #[test]
    fn a_page_is_cut_out_and_the_rest_counted() {
        let stream: Vec<u8> = (1..=7)
            .flat_map(|i| format!("a\0{i}:{i}\n").into_bytes())
            .collect();
        for (offset, limit, expected, truncated) in [
            (0, 7, 7, false),
            (0, 6, 6, true),
            (3, 4, 4, false),
            (6, 9, 1, false),
            (7, 9, 0, false),
            (9, 1, 0, false),
        ] {
            let page = Page { offset, limit };
            let found = collect((Form::Lines, Unit::Match), page, 0, &stream);
            assert_eq!(
                found.get("matches").unwrap().as_array().unwrap().len(),
                expected
            );
            assert_eq!(found.get("total_count").unwrap().to_string(), "7");
            assert_eq!(found.get("truncated").unwrap().as_bool(), Some(truncated));
        }
    }

    #[test]
    fn of_an_endless_line_only_the_beginning_is_kept() {
        let kind = (Form::Lines, Unit::Match);
        let mut collector = Collector::new(kind, Choice::Page(ALL), 0, None, "");
        collector.push(b"a\x001:");
        for _ in 0..1000 {
            collector.push(&[b'x'; 10_000]);
            assert!(collector.field.len() <= LINE_BYTES);
        }
        collector.push(b"\n");
        let expected = format!("{}…", "x".repeat(LINE_CHARS));
        assert_eq!(collector.finish().matches[0].content, expected);
    }
}

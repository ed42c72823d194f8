//! One text for another in a file.

use super::lines::{self, Likeness};
use crate::json::ObjectWriter;
use crate::tools::write_file::Manner;
use crate::tools::Failure;
use std::borrow::Cow;
use std::ops::Range;

/// How many places are listed where there should be one.
const LISTED: usize = 10;

#[derive(Debug, Clone, Copy)]
pub(super) struct Edit<'a> {
    pub(super) old: &'a str,
    pub(super) new: &'a str,
    pub(super) all: bool,
}

/// A part of the file and what to put there.
type Replacement = (Range<usize>, Vec<u8>);

impl Edit<'_> {
    /// The file's new text, and what is to be said of how it came about.
    pub(super) fn apply(
        &self,
        path: &str,
        text: &[u8],
    ) -> Result<(Vec<u8>, Option<String>), Failure> {
        if self.old.is_empty() {
            return Err("patch.old_string: empty; give the text to replace, or use write_file for a new file".into());
        }
        if self.old == self.new {
            return Err(
                "patch.new_string: the same as old_string; there is nothing to change".into(),
            );
        }
        let manner = Manner::of_text(text);
        let plain = if manner.crlf {
            without_cr(text)
        } else {
            text.into()
        };
        let (old, new) = (
            self.line_ends(&manner, self.old),
            self.line_ends(&manner, self.new),
        );
        let (found, note) = find(&plain, &old, &new);
        if found.is_empty() {
            return Err(not_found(path, &plain, &old));
        }
        if found.len() > 1 && !self.all {
            return Err(too_many(path, &plain, &found));
        }
        let mut out = Vec::with_capacity(plain.len() + new.len());
        let mut at = 0;
        for (range, replacement) in found {
            out.extend_from_slice(&plain[at..range.start]);
            out.extend_from_slice(&replacement);
            at = range.end;
        }
        out.extend_from_slice(&plain[at..]);
        Ok((if manner.crlf { with_cr(&out) } else { out }, note))
    }

    /// In a file with CRLF line ends both texts may be written with either kind.
    fn line_ends(&self, manner: &Manner, text: &str) -> Vec<u8> {
        match manner.crlf {
            true => text.replace("\r\n", "\n").into_bytes(),
            false => text.as_bytes().to_vec(),
        }
    }
}

fn without_cr(text: &[u8]) -> Cow<'_, [u8]> {
    let mut out = Vec::with_capacity(text.len());
    for (at, byte) in text.iter().enumerate() {
        if !(*byte == b'\r' && text.get(at + 1) == Some(&b'\n')) {
            out.push(*byte);
        }
    }
    out.into()
}

/// Every line end as CRLF; for a text in which none is left.
pub(super) fn with_cr(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() + text.len() / 16);
    for byte in text {
        if *byte == b'\n' {
            out.push(b'\r');
        }
        out.push(*byte);
    }
    out
}

/// The places of `old`: as it is, else lines that are the same but for white space.
fn find(text: &[u8], old: &[u8], new: &[u8]) -> (Vec<Replacement>, Option<String>) {
    let exact = occurrences(text, old);
    if !exact.is_empty() {
        let replace = |at| (at..at + old.len(), new.to_vec());
        return (exact.into_iter().map(replace).collect(), None);
    }
    let starts = line_starts(text);
    let (have, want) = (lines::split(text), lines::split(old));
    for likeness in &Likeness::ALL[1..] {
        let found: Vec<usize> = lines::find(&have, &want, 0, *likeness).collect();
        let blank = want.iter().all(|line| line.trim_ascii().is_empty());
        if found.is_empty() || blank {
            continue;
        }
        let replace = |at: usize| {
            let last = at + want.len();
            let mut end = starts.get(last).copied().unwrap_or(text.len());
            // Without a line end in what was looked for, the file's own stays.
            if !old.ends_with(b"\n") && text[..end].ends_with(b"\n") {
                end -= 1;
            }
            (starts[at]..end, indented(new, &want, &have[at..last]))
        };
        let name = likeness.name();
        let note = format!(
            "old_string matched but for {name}; new_string was indented like what it replaces."
        );
        return (found.into_iter().map(replace).collect(), Some(note));
    }
    (Vec::new(), None)
}

fn occurrences(text: &[u8], wanted: &[u8]) -> Vec<usize> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(next) = position(&text[at..], wanted) {
        found.push(at + next);
        at += next + wanted.len();
    }
    found
}

fn position(text: &[u8], wanted: &[u8]) -> Option<usize> {
    let first = *wanted.first()?;
    let mut at = 0;
    while let Some(next) = crate::sys::fd::find_byte(&text[at..], first) {
        at += next;
        if text[at..].starts_with(wanted) {
            return Some(at);
        }
        at += 1;
    }
    None
}

fn line_starts(text: &[u8]) -> Vec<usize> {
    let ends = text.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
    std::iter::once(0)
        .chain(ends.map(|(at, _)| at + 1))
        .collect()
}

/// `new` with the indentation of the file, where `want` had another one.
fn indented(new: &[u8], want: &[&[u8]], have: &[&[u8]]) -> Vec<u8> {
    let with_words = |(line, _): &(&&[u8], &&[u8])| !line.trim_ascii().is_empty();
    let pairs: Vec<(&[u8], &[u8])> = want
        .iter()
        .zip(have)
        .filter(with_words)
        .map(|(want, have)| (indentation(want), indentation(have)))
        .collect();
    let mut out = Vec::with_capacity(new.len());
    for line in new.split_inclusive(|byte| *byte == b'\n') {
        let known = pairs.iter().filter(|(theirs, _)| line.starts_with(theirs));
        match known.max_by_key(|(theirs, _)| theirs.len()) {
            Some((theirs, ours)) if !line.trim_ascii().is_empty() => {
                out.extend_from_slice(ours);
                out.extend_from_slice(&line[theirs.len()..]);
            }
            _ => out.extend_from_slice(line),
        }
    }
    out
}

fn indentation(line: &[u8]) -> &[u8] {
    let end = line.iter().position(|byte| !matches!(byte, b' ' | b'\t'));
    &line[..end.unwrap_or(line.len())]
}

fn too_many(path: &str, text: &[u8], found: &[Replacement]) -> Failure {
    let starts = line_starts(text);
    let line = |(range, _): &Replacement| {
        starts
            .partition_point(|start| *start <= range.start)
            .to_string()
    };
    let lines: Vec<String> = found.iter().take(LISTED).map(line).collect();
    let more = if found.len() > LISTED { ", …" } else { "" };
    format!(
        "{path}: old_string occurs {} times (lines {}{more}); give more of the text around it, or replace_all=True",
        found.len(),
        lines.join(", ")
    )
    .into()
}

fn not_found(path: &str, text: &[u8], old: &[u8]) -> Failure {
    let (have, want) = (lines::split(text), lines::split(old));
    let Some(nearest) = lines::nearest(&have, &want) else {
        return format!(
            "{path}: old_string does not occur, nor anything like it; read the file first"
        )
        .into();
    };
    let shown = lines::explain(&have, &want, &nearest);
    let mut details = ObjectWriter::default();
    details.raw("nearest_line", nearest.line + 1);
    Failure {
        message: format!("{path}: old_string does not occur; the nearest place is{shown}"),
        details: Some(details.finish()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn apply(text: &str, old: &str, new: &str, all: bool) -> Result<(String, String), String> {
        let edit = Edit { old, new, all };
        let applied = edit.apply("f", text.as_bytes());
        applied
            .map(|(text, note)| (String::from_utf8(text).unwrap(), note.unwrap_or_default()))
            .map_err(|failure| failure.message)
    }

    #[test]
    fn one_place_is_replaced_and_the_rest_stays() {
        for (text, old, new, expected) in [
            ("a b c", "b", "x", "a x c"),
            ("a\nb\n", "a\n", "", "b\n"),
            ("a\r\nb\r\nc", "a\nb", "x\ny\nz", "x\r\ny\r\nz\r\nc"),
            ("a\r\nb\r\n", "a\r\nb", "x\r\ny", "x\r\ny\r\n"),
            ("a\r\nb\nc\n", "b\n", "x\n", "a\r\nx\nc\n"),
            ("\u{feff}a\n", "a", "b", "\u{feff}b\n"),
            ("no end", "end", "end\n", "no end\n"),
        ] {
            assert_eq!(
                apply(text, old, new, false),
                Ok((expected.into(), String::new())),
                "{text:?}"
            );
        }
        assert_eq!(apply("aaaa", "aa", "b", true).unwrap().0, "bb");
        let edit = Edit {
            old: "x",
            new: "y",
            all: false,
        };
        assert_eq!(edit.apply("f", b"\xffx\xfe").unwrap().0, b"\xffy\xfe");
    }

    #[test]
    fn white_space_may_differ_where_the_place_is_clear() {
        let text = "class A:\n    def f(self):\n        return 1   \n";
        for (old, new, expected, note) in [
            (
                "        return 1\n",
                "        return 2\n",
                "class A:\n    def f(self):\n        return 2\n",
                "ends of lines",
            ),
            (
                "def f(self):\n    return 1",
                "def g(self):\n    x = 1\n\n    return x",
                "class A:\n    def g(self):\n        x = 1\n\n        return x\n",
                "indentation",
            ),
            (
                "def  f(self):\n",
                "def g(self):\n",
                "class A:\n    def g(self):\n        return 1   \n",
                "white space",
            ),
        ] {
            let (out, said) = apply(text, old, new, false).unwrap();
            assert_eq!(out, expected);
            assert!(said.contains(note), "{said}");
        }
        assert!(apply("  a\n    a\n", "a \n", "b", false)
            .unwrap_err()
            .contains("occurs 2 times (lines 1, 2)"));
        assert!(apply("a\n\n\nb\n", " \n", "x", false).is_err());
    }

    #[test]
    fn what_cannot_be_done_says_why() {
        for (text, old, new, why) in [
            ("a", "", "x", "old_string: empty"),
            ("a", "a", "a", "the same as old_string"),
            ("a\na\na\n", "a", "b", "occurs 3 times (lines 1, 2, 3); give more of the text"),
            ("zzz", "completely different", "b", "nor anything like it"),
            ("def two(x):\n    pass\n", "def two(y):\n    pass", "b", "Line 1: it differs: the file has \"def two(x):\", and what was looked for is \"def two(y):\""),
            ("", "x", "b", "nor anything like it"),
        ] {
            let error = apply(text, old, new, false).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }
}

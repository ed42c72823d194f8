//! What a script writes: always drained, bounded in memory, its beginning and its end kept.

use crate::text;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The first bytes and the last bytes of a stream, `limit` of them together.
#[derive(Debug)]
pub(crate) struct Capture {
    limit: usize,
    head_limit: usize,
    head: Vec<u8>,
    /// A ring: once it is full, the oldest byte is at `tail_start`.
    tail: Vec<u8>,
    tail_start: usize,
    total: u64,
}

/// A finished capture as text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Captured {
    pub text: String,
    pub truncated: bool,
}

impl Capture {
    pub(crate) fn new(limit: usize) -> Self {
        Capture {
            limit,
            head_limit: limit / 5 * 2 + limit % 5 * 2 / 5,
            head: Vec::new(),
            tail: Vec::new(),
            tail_start: 0,
            total: 0,
        }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let to_head = bytes.len().min(self.head_limit - self.head.len());
        self.head.extend_from_slice(&bytes[..to_head]);
        self.push_tail(&bytes[to_head..]);
    }

    fn push_tail(&mut self, bytes: &[u8]) {
        let room = self.limit - self.head_limit;
        let bytes = &bytes[bytes.len().saturating_sub(room)..];
        let grow = bytes.len().min(room - self.tail.len());
        self.tail.extend_from_slice(&bytes[..grow]);
        let rest = &bytes[grow..];
        if rest.is_empty() {
            return;
        }
        let (to_end, to_start) = rest.split_at(rest.len().min(room - self.tail_start));
        self.tail[self.tail_start..self.tail_start + to_end.len()].copy_from_slice(to_end);
        self.tail[..to_start.len()].copy_from_slice(to_start);
        self.tail_start = (self.tail_start + rest.len()) % room;
    }

    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    pub(crate) fn is_over(&self) -> bool {
        self.total > self.limit as u64
    }

    /// All that was pushed, as long as it is all still there.
    fn everything(&self) -> Option<[&[u8]; 2]> {
        (!self.is_over()).then_some([&self.head, &self.tail])
    }

    fn ordered_tail(&self) -> Vec<u8> {
        [&self.tail[self.tail_start..], &self.tail[..self.tail_start]].concat()
    }

    /// The text, with a line in the middle where bytes are missing. `where_all` is said in that line.
    pub(crate) fn finish(&self, where_all: Option<&Path>) -> Captured {
        let tail = self.ordered_tail();
        if !self.is_over() {
            return Captured {
                text: text::to_text(&[&self.head[..], &tail].concat()),
                truncated: false,
            };
        }
        let head = &self.head[..self.head.len() - cut_length(&self.head)];
        let tail = &tail[text::ceil_char(&tail, 0)..];
        let missing = self.total - (head.len() + tail.len()) as u64;
        let mut out = text::to_text(head);
        if !out.is_empty() && !out.ends_with('\n') {
            out.push('\n');
        }
        out.push_str(&format!(
            "[output truncated at {}] {missing} of {} bytes are missing here",
            size_label(self.limit),
            self.total
        ));
        if let Some(path) = where_all {
            out.push_str(&format!("; the whole output is in {}", path.display()));
        }
        out.push('\n');
        out.push_str(&text::to_text(tail));
        Captured {
            text: out,
            truncated: true,
        }
    }
}

/// The length of an incomplete UTF-8 sequence at the end of `bytes`.
fn cut_length(bytes: &[u8]) -> usize {
    let lead = (1..=bytes.len().min(3)).find(|&n| bytes[bytes.len() - n] & 0xc0 != 0x80);
    match lead {
        Some(n) => {
            let needed = match bytes[bytes.len() - n] {
                0xc2..=0xdf => 2,
                0xe0..=0xef => 3,
                0xf0..=0xf4 => 4,
                _ => 1,
            };
            if needed > n {
                n
            } else {
                0
            }
        }
        None => 0,
    }
}

fn size_label(bytes: usize) -> String {
    match bytes {
        n if n >= 1_000_000 && n % 1_000_000 == 0 => format!("{}MB", n / 1_000_000),
        n if n >= 1000 && n % 1000 == 0 => format!("{}KB", n / 1000),
        n => format!("{n} bytes"),
    }
}

/// The file that takes a stream's full text once it is more than is kept.
#[derive(Debug)]
pub(crate) struct Spill {
    dir: PathBuf,
    name: String,
    limit: u64,
    state: SpillState,
}

#[derive(Debug)]
enum SpillState {
    /// All is still in the capture.
    NotNeeded,
    Writing {
        file: File,
        written: u64,
    },
    Full,
    Failed(io::Error),
}

impl Spill {
    /// `name` must be new in `dir`; nothing is created before something is cut.
    pub(crate) fn new(dir: PathBuf, name: String, limit: u64) -> Self {
        Spill {
            dir,
            name,
            limit,
            state: SpillState::NotNeeded,
        }
    }

    /// To be called after `capture` was given `bytes`, with what it held `before` them.
    pub(crate) fn push(&mut self, before: Option<[Vec<u8>; 2]>, bytes: &[u8]) {
        if let (SpillState::NotNeeded, Some(before)) = (&self.state, before) {
            self.state = match self.create() {
                Ok(file) => SpillState::Writing { file, written: 0 },
                Err(e) => SpillState::Failed(e),
            };
            for part in before {
                self.write(&part);
            }
        }
        self.write(bytes);
    }

    fn create(&self) -> io::Result<File> {
        std::fs::create_dir_all(&self.dir)?;
        OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(self.path())
    }

    fn path(&self) -> PathBuf {
        self.dir.join(&self.name)
    }

    fn write(&mut self, bytes: &[u8]) {
        let SpillState::Writing { file, written } = &mut self.state else {
            return;
        };
        let room = usize::try_from(self.limit - *written).unwrap_or(usize::MAX);
        let part = &bytes[..bytes.len().min(room)];
        let mut result = file.write_all(part);
        *written += part.len() as u64;
        let full = part.len() < bytes.len();
        if full && result.is_ok() {
            result = writeln!(file, "\n[spill capped at {} bytes]", self.limit);
        }
        match result {
            Err(e) => self.state = SpillState::Failed(e),
            Ok(()) if full => self.state = SpillState::Full,
            Ok(()) => {}
        }
    }

    /// Where the stream's text is, if any was written; or why it could not be.
    pub(crate) fn finish(self) -> Result<Option<PathBuf>, String> {
        match &self.state {
            SpillState::NotNeeded => Ok(None),
            SpillState::Writing { .. } | SpillState::Full => Ok(Some(self.path())),
            SpillState::Failed(e) => Err(format!(
                "the full output could not be written to {} (code_execution.spill_dir): {e}",
                self.path().display()
            )),
        }
    }
}

/// A capture together with the file that takes what it cannot keep.
#[derive(Debug)]
pub(crate) struct Recorder {
    pub capture: Capture,
    pub spill: Option<Spill>,
}

impl Recorder {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let Some(spill) = &mut self.spill else {
            return self.capture.push(bytes);
        };
        let goes_over = !self.capture.is_over()
            && self.capture.total() + bytes.len() as u64 > self.capture.limit as u64;
        let before = if goes_over {
            self.capture
                .everything()
                .map(|parts| parts.map(<[u8]>::to_vec))
        } else {
            None
        };
        self.capture.push(bytes);
        if goes_over || self.capture.is_over() {
            spill.push(before, bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn capture(limit: usize, text: &[u8], chunk: usize) -> Captured {
        let mut capture = Capture::new(limit);
        for piece in text.chunks(chunk) {
            capture.push(piece);
        }
        capture.finish(None)
    }

    #[test]
    fn up_to_the_limit_nothing_changes() {
        for size in [0, 1, 99, 100] {
            let text = "x".repeat(size);
            for chunk in [1, 7, 1000] {
                let captured = capture(100, text.as_bytes(), chunk);
                assert_eq!(
                    captured,
                    Captured {
                        text: text.clone(),
                        truncated: false
                    }
                );
            }
        }
    }

    #[test]
    fn one_byte_more_keeps_both_ends_and_says_so() {
        let text: Vec<u8> = (0..1001u32).map(|i| b'a' + (i % 26) as u8).collect();
        for limit in [0, 1, 5, 10, 100, 1000] {
            for chunk in [1, 13, 400, 2000] {
                let captured = capture(limit, &text, chunk);
                assert!(captured.truncated);
                let (head, rest) = captured.text.split_once("[output truncated at ").unwrap();
                let (notice, tail) = rest.split_once('\n').unwrap();
                let head = head.trim_end();
                assert_eq!(
                    (head.len(), tail.len()),
                    (limit * 2 / 5, limit - limit * 2 / 5)
                );
                assert!(text.starts_with(head.as_bytes()) && text.ends_with(tail.as_bytes()));
                let missing = 1001 - limit;
                assert!(
                    notice.contains(&format!("{missing} of 1001 bytes")),
                    "{notice}"
                );
            }
        }
    }

    #[test]
    fn a_character_is_never_cut_in_two() {
        for shift in 0..6 {
            let text = "x".repeat(shift) + &"🎉".repeat(100);
            let captured = capture(50, text.as_bytes(), 3);
            assert!(
                !captured.text.contains('\u{fffd}'),
                "{shift}: {}",
                captured.text
            );
        }
    }

    #[test]
    fn sizes_read_as_people_write_them() {
        assert_eq!(size_label(50000), "50KB");
        assert_eq!(size_label(2_000_000), "2MB");
        assert_eq!(size_label(51200), "51200 bytes");
        assert_eq!(size_label(0), "0 bytes");
    }
}

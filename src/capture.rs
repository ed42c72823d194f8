//! The beginning and the end of a stream, bounded in memory.

use crate::text;
use std::path::Path;

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

    /// How many bytes were pushed.
    #[cfg(test)]
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// Whether so many more bytes can be kept whole.
    pub(crate) fn has_room_for(&self, bytes: usize) -> bool {
        self.total + bytes as u64 <= self.limit as u64
    }

    pub(crate) fn is_over(&self) -> bool {
        self.total > self.limit as u64
    }

    /// All that was pushed, as long as it is all still there.
    pub(crate) fn everything(&self) -> Option<[&[u8]; 2]> {
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

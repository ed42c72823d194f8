//! From the bytes that a script wrote to the text that a model reads: UTF-8 whatever was written, no terminal escape
//! sequences, no secrets.

use crate::json;

/// Text with a NUL behind it, so that C can be shown it without a copy.
#[derive(Debug)]
pub(crate) struct NulText(String);

impl NulText {
    pub(crate) fn new(mut text: String) -> Self {
        text.reserve_exact(1);
        text.push('\0');
        NulText(text)
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0[..self.0.len() - 1]
    }

    pub(crate) fn with_nul(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

/// What stands in the place of a secret.
const REDACTED: &str = "[redacted]";

/// The shortest form of a secret, in characters, that is looked for: what white space leaves of some would be too
/// ordinary a word.
const SHORTEST_FORM: usize = 8;

/// Replaces the values of secret variables wherever they turn up.
#[derive(Debug, Default, Clone)]
pub(crate) struct Redactor {
    /// Longest first, so that a secret which contains another one goes whole.
    secrets: Vec<String>,
}

impl Redactor {
    /// For `secrets` as they are, without the white space around them, and as they look in JSON and in Python's `repr`.
    pub(crate) fn new(mut secrets: Vec<String>) -> Self {
        secrets.retain(|s| !s.is_empty());
        let forms: Vec<String> = secrets.iter().flat_map(|s| written_forms(s)).collect();
        secrets.extend(forms);
        secrets.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        secrets.dedup();
        Redactor { secrets }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.secrets.is_empty()
    }

    /// Bytes of the longest secret; 0 where there is none.
    pub(crate) fn longest(&self) -> usize {
        self.secrets.first().map_or(0, String::len)
    }

    pub(crate) fn redact(&self, text: &str) -> String {
        let mut text = text.to_string();
        for secret in &self.secrets {
            if text.contains(secret.as_str()) {
                text = text.replace(secret.as_str(), REDACTED);
            }
        }
        text
    }

    /// The same for the beginning of a longer text: what could be the beginning of a secret at its end is left out.
    pub(crate) fn redact_head(&self, head: &str) -> String {
        let mut stream = RedactingStream::default();
        let decided = stream.push(self, head.as_bytes());
        // Secrets begin and end where characters do, and so does what is left of text without them.
        String::from_utf8_lossy(&decided).into_owned()
    }

    /// The first secret in `bytes`, from `from` on: where it begins and its length. Of two that begin at the same
    /// place it is the longer one.
    fn find(&self, bytes: &[u8], from: usize) -> Option<(usize, usize)> {
        let mut first: Option<(usize, usize)> = None;
        for secret in &self.secrets {
            let end = first.map_or(bytes.len(), |(at, _)| {
                (at + secret.len() - 1).min(bytes.len())
            });
            if let Some(at) = find_bytes(&bytes[from..end.max(from)], secret.as_bytes()) {
                let at = from + at;
                if first.is_none_or(|(best, _)| at < best) {
                    first = Some((at, secret.len()));
                }
            }
        }
        first
    }

    /// How many bytes at the end of `bytes` could be the beginning of a secret.
    fn open_end(&self, bytes: &[u8]) -> usize {
        let longest = self.secrets.iter().map(|secret| {
            let most = (secret.len() - 1).min(bytes.len());
            (1..=most)
                .rev()
                .find(|&n| bytes.ends_with(&secret.as_bytes()[..n]))
                .unwrap_or(0)
        });
        longest.max().unwrap_or(0)
    }
}

/// Other ways in which programs write a secret down, where they differ from it.
fn written_forms(secret: &str) -> Vec<String> {
    let trimmed = secret.trim();
    let in_json = json::quote(trimmed);
    let in_json = &in_json[1..in_json.len() - 1];
    let mut ascii = String::new();
    for c in in_json.chars() {
        match c.is_ascii() {
            true => ascii.push(c),
            false => {
                let units = c.encode_utf16(&mut [0; 2]).to_vec();
                ascii.extend(units.iter().map(|unit| format!("\\u{unit:04x}")));
            }
        }
    }
    // A repr has single quotes around it, and no reason to escape double ones.
    let repr = in_json.replace("\\\"", "\"");
    [trimmed, in_json, &ascii, &repr]
        .into_iter()
        .filter(|form| *form != secret && form.chars().count() >= SHORTEST_FORM)
        .map(String::from)
        .collect()
}

/// Redacts a stream chunk by chunk: what could be the beginning of a secret is held back until more has come.
#[derive(Debug, Default)]
pub(crate) struct RedactingStream {
    held: Vec<u8>,
}

impl RedactingStream {
    /// The bytes that can go on by now.
    pub(crate) fn push<'a>(
        &mut self,
        redactor: &Redactor,
        chunk: &'a [u8],
    ) -> std::borrow::Cow<'a, [u8]> {
        if redactor.is_empty() {
            return chunk.into();
        }
        let mut bytes = std::mem::take(&mut self.held);
        bytes.extend_from_slice(chunk);
        // A longer secret that begins before a complete one may still be on its way: nothing from there on is decided.
        let undecided = bytes.len() - redactor.open_end(&bytes);
        let (out, decided) = redact_bytes(redactor, &bytes, undecided);
        self.held = bytes.split_off(decided);
        out.into()
    }

    /// What was held back, once the stream has ended.
    pub(crate) fn finish(&mut self, redactor: &Redactor) -> Vec<u8> {
        let held = std::mem::take(&mut self.held);
        redact_bytes(redactor, &held, held.len()).0
    }
}

/// Redacts the secrets that begin before `undecided`; the text up to there and how many bytes it stands for.
fn redact_bytes(redactor: &Redactor, bytes: &[u8], undecided: usize) -> (Vec<u8>, usize) {
    let mut out = Vec::with_capacity(undecided);
    let mut from = 0;
    while let Some((at, len)) = redactor.find(bytes, from).filter(|&(at, _)| at < undecided) {
        out.extend_from_slice(&bytes[from..at]);
        out.extend_from_slice(REDACTED.as_bytes());
        from = at + len;
    }
    let decided = undecided.max(from);
    out.extend_from_slice(&bytes[from..decided]);
    (out, decided)
}

/// `bytes` as text: bad bytes and (WTF-8 encoded) lone surrogates become one U+FFFD each, escape sequences go.
pub(crate) fn to_text(bytes: &[u8]) -> String {
    strip_escapes(&decode(bytes))
}

fn decode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    let mut rest = bytes;
    loop {
        match std::str::from_utf8(rest) {
            Ok(valid) => {
                text.push_str(valid);
                return text;
            }
            Err(error) => {
                let (valid, bad) = rest.split_at(error.valid_up_to());
                // from_utf8 has just said that this part is valid.
                text.push_str(&String::from_utf8_lossy(valid));
                text.push('\u{fffd}');
                let len = match bad {
                    // Python's "surrogatepass" writes a lone surrogate as three bytes: one character was written.
                    [0xed, 0xa0..=0xbf, 0x80..=0xbf, ..] => 3,
                    _ => error.error_len().unwrap_or(bad.len()),
                };
                rest = &bad[len..];
            }
        }
    }
}

/// Removes ANSI escape sequences: CSI, OSC and the other string sequences, and two-character escapes.
fn strip_escapes(text: &str) -> String {
    if !text.contains(['\u{1b}', '\u{9b}']) {
        return text.to_string();
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['\u{1b}', '\u{9b}']) {
        out.push_str(&rest[..at]);
        rest = after_escape(&rest[at..]);
    }
    out + rest
}

/// What follows the escape sequence that `text` begins with. A sequence that never ends loses its introducer only, so
/// that a stray escape byte cannot swallow the output behind it.
fn after_escape(text: &str) -> &str {
    let mut chars = text.chars();
    let introducer = match chars.next() {
        Some('\u{9b}') => Some('['),
        _ => chars.next(),
    };
    let body = chars.as_str();
    match introducer {
        Some('[') => {
            let end = body.find(|c| !matches!(c, '\u{20}'..='\u{3f}'));
            match end.and_then(|at| body[at..].chars().next().map(|c| (at, c))) {
                Some((at, '\u{40}'..='\u{7e}')) => &body[at + 1..],
                Some((at, _)) => &body[at..],
                None => "",
            }
        }
        // Operating system commands and their kin run to BEL or ST.
        Some(']' | 'P' | 'X' | '^' | '_') => match body.find(['\u{7}', '\u{1b}', '\u{9c}', '\n']) {
            Some(at) => match &body[at..] {
                end if end.starts_with("\u{1b}\\") => &end[2..],
                end if end.starts_with('\u{7}') => &end[1..],
                end if end.starts_with('\u{9c}') => &end['\u{9c}'.len_utf8()..],
                end => end,
            },
            None => body,
        },
        Some(' '..='/') => {
            let end = body.find(|c| !matches!(c, ' '..='/'));
            end.and_then(|at| body.get(at + 1..)).unwrap_or("")
        }
        Some('0'..='~') => body,
        _ => &text[1..],
    }
}

/// The first place at or after `from` that is between characters.
pub(crate) fn ceil_char(bytes: &[u8], from: usize) -> usize {
    (from..bytes.len())
        .take(4)
        .find(|&at| !is_continuation(bytes[at]))
        .unwrap_or_else(|| from.min(bytes.len()))
}

fn is_continuation(byte: u8) -> bool {
    byte & 0xc0 == 0x80
}

fn find_bytes(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    let first = *needle.first()?;
    let mut from = 0;
    while haystack.len() - from >= needle.len() {
        let last_start = haystack.len() - needle.len();
        from += crate::sys::fd::find_byte(&haystack[from..=last_start], first)?;
        if haystack[from..].starts_with(needle) {
            return Some(from);
        }
        from += 1;
        if from > last_start {
            return None;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_bytes_become_replacement_characters() {
        let cases: [(&[u8], &str); 6] = [
            (b"a\xffb", "a\u{fffd}b"),
            (b"a\xed\xa0\x80b", "a\u{fffd}b"),
            (b"\xed\xb2\x80\xed\xb2\x80", "\u{fffd}\u{fffd}"),
            (b"\xf0\x9f\x8e", "\u{fffd}"),
            ("中🎉".as_bytes(), "中🎉"),
            (b"\xe4\xb8", "\u{fffd}"),
        ];
        for (bytes, text) in cases {
            assert_eq!(to_text(bytes), text, "{bytes:x?}");
        }
    }

    #[test]
    fn escape_sequences_go_and_text_stays() {
        let cases = [
            ("\u{1b}[31mred\u{1b}[0m", "red"),
            ("\u{1b}]0;title\u{7}x", "x"),
            ("\u{1b}]8;;http://a\u{1b}\\link\u{1b}]8;;\u{1b}\\", "link"),
            ("\u{1b}(Bx\u{1b}=y\u{1b}7z", "xyz"),
            ("\u{9b}1;2Hx", "x"),
            ("a\u{1b}", "a"),
            ("a\u{1b}[", "a"),
            ("a\u{1b}]never ended", "anever ended"),
            ("a\u{1b}]cut\nline", "a\nline"),
            ("\u{1b}[é", "é"),
            ("\u{1b}é", "é"),
            ("plain [31m", "plain [31m"),
        ];
        for (text, expected) in cases {
            assert_eq!(strip_escapes(text), expected, "{text:?}");
        }
    }

    #[test]
    fn cuts_fall_between_characters() {
        let bytes = "a🎉b".as_bytes();
        let ceils: Vec<usize> = (0..=6).map(|n| ceil_char(bytes, n)).collect();
        assert_eq!(ceils, [0, 1, 5, 5, 5, 5, 6]);
    }

    #[test]
    fn a_secret_is_found_across_every_border() {
        let redactor = Redactor::new(vec!["hunter2hunter2".into(), "abcdefgh".into()]);
        let text = b"x hunter2hunter2 hunter2hunter hunter2huabcdefghabcdefg";
        let expected = b"x [redacted] hunter2hunter hunter2hu[redacted]abcdefg";
        for size in 1..text.len() {
            let mut stream = RedactingStream::default();
            let mut out = Vec::new();
            for chunk in text.chunks(size) {
                out.extend_from_slice(&stream.push(&redactor, chunk));
            }
            out.extend_from_slice(&stream.finish(&redactor));
            assert_eq!(out, expected, "chunks of {size}");
        }
        assert_eq!(
            redactor
                .redact(std::str::from_utf8(text).unwrap())
                .as_bytes(),
            expected
        );
    }

    #[test]
    fn a_secret_is_known_by_the_forms_that_programs_give_it() {
        let redactor = Redactor::new(vec!["  pass \"wörd\" \\1\n".into(), "long\nkey".into()]);
        for text in [
            "pass \"wörd\" \\1",
            r#"pass \"wörd\" \\1"#,
            r#"pass \"w\u00f6rd\" \\1"#,
            r#"pass "wörd" \\1"#,
            r"long\nkey",
        ] {
            assert_eq!(redactor.redact(&format!("<{text}>")), "<[redacted]>");
        }
        // Only white space around it: too short to be looked for.
        let short = Redactor::new(vec!["  short    ".into()]);
        assert_eq!(short.redact("short"), "short");
    }

    #[test]
    fn the_head_of_a_text_ends_before_what_could_become_a_secret() {
        let redactor = Redactor::new(vec!["hunter2-hunter2".into()]);
        for (head, expected) in [
            ("a hunter2-hunter2 b", "a [redacted] b"),
            ("a hunter2-hunter", "a "),
            ("hunter2-hunter2h", "[redacted]"),
            ("ä", "ä"),
            ("", ""),
        ] {
            assert_eq!(redactor.redact_head(head), expected);
        }
    }

    #[test]
    fn the_longer_of_two_secrets_goes_whole() {
        let redactor = Redactor::new(vec![
            "password".into(),
            "password-and-more".into(),
            String::new(),
        ]);
        assert_eq!(
            redactor.redact("password-and-more password"),
            "[redacted] [redacted]"
        );
        let mut stream = RedactingStream::default();
        let mut out = stream.push(&redactor, b"password-and-mor").into_owned();
        out.extend_from_slice(&stream.push(&redactor, b"e! password-and"));
        out.extend_from_slice(&stream.finish(&redactor));
        assert_eq!(out, b"[redacted]! [redacted]-and");
    }
}

//! Finding lines in a file: as they are, and as they may have been meant.

/// How far lines that were found differ from those that were looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Likeness {
    Exact,
    /// But for white space at the ends of lines.
    TrailingSpace,
    /// But for the indentation as well.
    Indentation,
    /// But for the amount of white space anywhere.
    Space,
}

impl Likeness {
    pub(super) const ALL: [Likeness; 4] = [
        Likeness::Exact,
        Likeness::TrailingSpace,
        Likeness::Indentation,
        Likeness::Space,
    ];

    /// What they differ in.
    pub(super) fn name(self) -> &'static str {
        match self {
            Likeness::Exact => "nothing",
            Likeness::TrailingSpace => "white space at the ends of lines",
            Likeness::Indentation => "indentation",
            Likeness::Space => "white space",
        }
    }

    pub(super) fn holds(self, a: &[u8], b: &[u8]) -> bool {
        match self {
            Likeness::Exact => a == b,
            Likeness::TrailingSpace => a.trim_ascii_end() == b.trim_ascii_end(),
            Likeness::Indentation => a.trim_ascii() == b.trim_ascii(),
            Likeness::Space => words(a).eq(words(b)),
        }
    }
}

fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(u8::is_ascii_whitespace)
        .filter(|word| !word.is_empty())
}

/// The lines of a text without their ends; none for an empty text.
pub(super) fn split(text: &[u8]) -> Vec<&[u8]> {
    let mut lines: Vec<&[u8]> = text.split(|byte| *byte == b'\n').collect();
    if lines.last().is_some_and(|last| last.is_empty()) {
        lines.pop();
    }
    lines
}

/// Where in `lines`, from line `from` on, `wanted` begins.
pub(super) fn find(
    lines: &[&[u8]],
    wanted: &[&[u8]],
    from: usize,
    likeness: Likeness,
) -> impl Iterator<Item = usize> {
    let last = (lines.len() + 1).saturating_sub(wanted.len());
    let fits = move |at: &usize| {
        let window = &lines[*at..*at + wanted.len()];
        window.iter().zip(wanted).all(|(a, b)| likeness.holds(a, b))
    };
    let fitting: Vec<usize> = (from..last).filter(fits).collect();
    fitting.into_iter()
}

/// A place that is most like what was looked for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Nearest {
    /// Counted from 0.
    pub(super) line: usize,
    pub(super) count: usize,
}

/// Longer texts are not searched for the nearest place.
const MOST_WORK: usize = 20_000_000;

/// The place that is most like `wanted`, if anything is.
pub(super) fn nearest(lines: &[&[u8]], wanted: &[&[u8]]) -> Option<Nearest> {
    // The longest line tells most of where it belongs.
    let (anchor_at, anchor) = wanted
        .iter()
        .enumerate()
        .max_by_key(|(_, line)| line.trim_ascii().len())?;
    let bytes: usize = lines.iter().map(|line| line.len()).sum();
    if anchor.trim_ascii().is_empty() || bytes.saturating_mul(anchor.len() / 64 + 1) > MOST_WORK {
        return None;
    }
    let scores = lines.iter().map(|line| similarity(line, anchor));
    let (at, score) = scores
        .enumerate()
        .max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0)))?;
    if score < 0.5 {
        return None;
    }
    let line = at.saturating_sub(anchor_at);
    Some(Nearest {
        line,
        count: wanted.len().min(lines.len() - line),
    })
}

/// From 0 to 1: how many pairs of neighbouring bytes two lines share.
fn similarity(a: &[u8], b: &[u8]) -> f64 {
    let (a, b) = (a.trim_ascii(), b.trim_ascii());
    if a == b {
        return 1.0;
    }
    let pairs = |text: &[u8]| {
        let mut pairs: Vec<[u8; 2]> = text
            .windows(2)
            .take(2000)
            .map(|pair| [pair[0], pair[1]])
            .collect();
        pairs.sort_unstable();
        pairs
    };
    let (a, b) = (pairs(a), pairs(b));
    let (mut i, mut j, mut shared) = (0, 0, 0);
    while i < a.len() && j < b.len() {
        match a[i].cmp(&b[j]) {
            std::cmp::Ordering::Equal => {
                shared += 1;
                i += 1;
                j += 1;
            }
            std::cmp::Ordering::Less => i += 1,
            std::cmp::Ordering::Greater => j += 1,
        }
    }
    match a.len() + b.len() {
        0 => 0.0,
        all => 2.0 * f64::from(shared) / all as f64,
    }
}

/// In what the place at `line` differs from `wanted`, shown with its lines.
pub(super) fn explain(lines: &[&[u8]], wanted: &[&[u8]], nearest: &Nearest) -> String {
    let place = &lines[nearest.line..nearest.line + nearest.count];
    let mut out = String::new();
    for (number, line) in (nearest.line + 1..).zip(place).take(12) {
        out.push_str(&format!("\n{number:>6}: {}", String::from_utf8_lossy(line)));
    }
    let differs = place.iter().zip(wanted).position(|(a, b)| a != b);
    let Some(at) = differs else {
        return format!("{out}\nThe file ends before the rest of it.");
    };
    let (have, want) = (place[at], wanted[at]);
    let number = nearest.line + at + 1;
    let likeness = Likeness::ALL
        .into_iter()
        .find(|likeness| likeness.holds(have, want));
    let why = match likeness {
        Some(likeness) => format!("it differs in {}", likeness.name()),
        None => "it differs".into(),
    };
    let quoted = |line: &[u8]| format!("{:?}", String::from_utf8_lossy(line));
    out.push_str(&format!(
        "\nLine {number}: {why}: the file has {}, and what was looked for is {}.",
        quoted(have),
        quoted(want)
    ));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_found_by_growing_tolerance() {
        let text = split(b"a\n  b c\t\n\nd\n  b  c\n");
        let at = |wanted: &str, likeness| {
            find(&text, &split(wanted.as_bytes()), 0, likeness).collect::<Vec<_>>()
        };
        assert_eq!(at("  b c\t", Likeness::Exact), [1]);
        assert_eq!(at("  b c", Likeness::Exact), [0; 0]);
        assert_eq!(at("  b c", Likeness::TrailingSpace), [1]);
        assert_eq!(at("b c\n\nd", Likeness::Indentation), [1]);
        assert_eq!(at("b c", Likeness::Space), [1, 4]);
        assert_eq!(
            find(&text, &split(b"b c"), 2, Likeness::Space).collect::<Vec<_>>(),
            [4]
        );
        assert_eq!(at("a\n  b c\t\n\nd\n  b  c\nmore", Likeness::Space), [0; 0]);
    }

    #[test]
    fn the_nearest_place_is_shown_with_what_differs() {
        let text = split(b"def one():\n    return 1\n\ndef two():\n\treturn 22\n");
        for (wanted, line, why) in [
            (
                "def two():\n    return 22",
                3,
                "it differs in indentation: the file has \"\\treturn 22\"",
            ),
            (
                "def too():\n\treturn 22",
                3,
                "Line 4: it differs: the file has \"def two():\"",
            ),
            ("return  1", 1, "white space"),
        ] {
            let wanted = split(wanted.as_bytes());
            let nearest = nearest(&text, &wanted).unwrap();
            assert_eq!(nearest.line, line);
            let shown = explain(&text, &wanted, &nearest);
            assert!(shown.contains(why), "{shown}");
        }
        assert_eq!(nearest(&text, &split(b"completely unrelated words")), None);
        assert_eq!(nearest(&text, &[]), None);
        assert_eq!(nearest(&[], &split(b"x")), None);
    }
}

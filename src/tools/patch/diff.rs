//! Unified diffs of files, bounded in time and in length.

use std::ops::Range;

/// Lines around a change.
const CONTEXT: usize = 3;
/// More changed lines than that are not told apart any more: all between the first and the last is one change.
const MOST_CHANGES: usize = 1000;
/// How much of a diff is shown.
const MOST_BYTES: usize = 100_000;

/// A part of the old lines and what stands in its place.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Change {
    old: Range<usize>,
    new: Range<usize>,
}

/// The diff of one file; `None` is a file that does not exist. Empty where nothing differs.
pub(super) fn unified(
    (old_path, old): (&str, Option<&[u8]>),
    (new_path, new): (&str, Option<&[u8]>),
) -> String {
    let old_lines = lines(old.unwrap_or_default());
    let new_lines = lines(new.unwrap_or_default());
    let changes = changes(&old_lines, &new_lines);
    if changes.is_empty() && old.is_some() == new.is_some() && old_path == new_path {
        return String::new();
    }
    let name = |side: &str, path: &str, content: Option<&[u8]>| match content {
        None => "/dev/null".to_string(),
        Some(_) => format!("{side}/{}", path.trim_start_matches('/')),
    };
    let mut out = format!(
        "--- {}\n+++ {}\n",
        name("a", old_path, old),
        name("b", new_path, new)
    );
    for hunk in hunks(&changes) {
        write_hunk(&mut out, hunk, &old_lines, &new_lines);
        if out.len() > MOST_BYTES {
            let cut = (0..=MOST_BYTES).rev().find(|at| out.is_char_boundary(*at));
            out.truncate(cut.unwrap_or(0));
            out.push_str("\n[the rest of the diff is not shown]\n");
            break;
        }
    }
    out
}

/// Lines with their ends.
fn lines(text: &[u8]) -> Vec<&[u8]> {
    text.split_inclusive(|byte| *byte == b'\n').collect()
}

fn changes(old: &[&[u8]], new: &[&[u8]]) -> Vec<Change> {
    let same = |(a, b): &(&&[u8], &&[u8])| a == b;
    let start = old.iter().zip(new).take_while(same).count();
    let rest = (&old[start..], &new[start..]);
    let end = rest
        .0
        .iter()
        .rev()
        .zip(rest.1.iter().rev())
        .take_while(same)
        .count();
    let middle = (start..old.len() - end, start..new.len() - end);
    if middle.0.is_empty() && middle.1.is_empty() {
        return Vec::new();
    }
    match shortest(&old[middle.0.clone()], &new[middle.1.clone()]) {
        None => vec![Change {
            old: middle.0,
            new: middle.1,
        }],
        Some(found) => found
            .into_iter()
            .map(|change| Change {
                old: change.old.start + start..change.old.end + start,
                new: change.new.start + start..change.new.end + start,
            })
            .collect(),
    }
}

/// The shortest edit script after Myers, "An O(ND) difference algorithm"; `None` where it is longer than anybody reads.
fn shortest(old: &[&[u8]], new: &[&[u8]]) -> Option<Vec<Change>> {
    let most = (old.len() + new.len()).min(MOST_CHANGES);
    // For each diagonal the furthest old line reached; one row for each number of changes.
    let mut rows: Vec<Vec<usize>> = Vec::new();
    for d in 0..=most {
        let mut row = vec![0; 2 * d + 1];
        for (at, furthest) in row.iter_mut().enumerate() {
            let k = at as isize - d as isize;
            let mut x = match rows.last() {
                None => 0,
                Some(before) => step(before, d, k).0,
            };
            let mut y = (x as isize - k) as usize;
            while x < old.len() && y < new.len() && old[x] == new[y] {
                x += 1;
                y += 1;
            }
            *furthest = x;
            if x >= old.len() && y >= new.len() {
                return Some(trace(&rows, d, k, (old.len(), new.len())));
            }
        }
        rows.push(row);
    }
    None
}

/// How diagonal `k` is reached with the `d`th change: the old line after it, and whether a new line was added.
fn step(before: &[usize], d: usize, k: isize) -> (usize, bool) {
    let on = |k: isize| -> Option<usize> {
        let at = k + d as isize - 1;
        usize::try_from(at)
            .ok()
            .and_then(|at| before.get(at).copied())
    };
    match (on(k - 1), on(k + 1)) {
        (Some(removed), Some(added)) if removed < added => (added, true),
        (Some(removed), _) => (removed + 1, false),
        (None, Some(added)) => (added, true),
        (None, None) => (0, true),
    }
}

/// Follows the way back and joins the changes that touch.
fn trace(rows: &[Vec<usize>], d: usize, mut k: isize, end: (usize, usize)) -> Vec<Change> {
    let mut changes: Vec<Change> = Vec::new();
    let (mut x, mut y) = end;
    for d in (1..=d).rev() {
        let (after, added) = step(&rows[d - 1], d, k);
        let after_y = (after as isize - k) as usize;
        let change = match added {
            true => Change {
                old: after..after,
                new: after_y - 1..after_y,
            },
            false => Change {
                old: after - 1..after,
                new: after_y..after_y,
            },
        };
        k += if added { 1 } else { -1 };
        (x, y) = (x.min(change.old.start), y.min(change.new.start));
        match changes.last_mut() {
            Some(last) if last.old.start == change.old.end && last.new.start == change.new.end => {
                last.old.start = change.old.start;
                last.new.start = change.new.start;
            }
            _ => changes.push(change),
        }
    }
    changes.reverse();
    changes
}

/// Changes that are so near to each other that their surroundings touch.
fn hunks(changes: &[Change]) -> Vec<&[Change]> {
    let far = |a: &Change, b: &Change| b.old.start - a.old.end > 2 * CONTEXT;
    changes.chunk_by(|a, b| !far(a, b)).collect()
}

fn write_hunk(out: &mut String, changes: &[Change], old: &[&[u8]], new: &[&[u8]]) {
    let (Some(first), Some(last)) = (changes.first(), changes.last()) else {
        return;
    };
    let before = first.old.start.min(CONTEXT);
    let after = (old.len() - last.old.end).min(CONTEXT);
    let old_range = first.old.start - before..last.old.end + after;
    let new_range = first.new.start - before..last.new.end + after;
    let span = |range: &Range<usize>| match range.len() {
        // Nothing stands behind the line of this number.
        0 => format!("{},0", range.start),
        1 => format!("{}", range.start + 1),
        n => format!("{},{n}", range.start + 1),
    };
    out.push_str(&format!(
        "@@ -{} +{} @@\n",
        span(&old_range),
        span(&new_range)
    ));
    let mut at = old_range.start;
    for change in changes {
        write_lines(out, ' ', &old[at..change.old.start]);
        write_lines(out, '-', &old[change.old.clone()]);
        write_lines(out, '+', &new[change.new.clone()]);
        at = change.old.end;
    }
    write_lines(out, ' ', &old[at..old_range.end]);
}

fn write_lines(out: &mut String, mark: char, lines: &[&[u8]]) {
    for line in lines {
        out.push(mark);
        out.push_str(&String::from_utf8_lossy(line));
        if !line.ends_with(b"\n") {
            out.push_str("\n\\ No newline at end of file\n");
        }
        if out.len() > MOST_BYTES {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn diff(old: &str, new: &str) -> String {
        let diff = unified(("f", Some(old.as_bytes())), ("f", Some(new.as_bytes())));
        diff.strip_prefix("--- a/f\n+++ b/f\n")
            .unwrap_or(&diff)
            .to_string()
    }

    #[test]
    fn diffs_look_as_everybody_knows_them() {
        let ten: String = (1..=10).map(|i| format!("{i}\n")).collect();
        for (old, new, expected) in [
            ("a\n", "a\n", ""),
            ("a\n", "b\n", "@@ -1 +1 @@\n-a\n+b\n"),
            ("", "a\nb\n", "@@ -0,0 +1,2 @@\n+a\n+b\n"),
            ("a\n", "", "@@ -1 +0,0 @@\n-a\n"),
            (
                "a",
                "a\n",
                "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n",
            ),
            (
                &ten,
                &ten.replace("5\n", "five\nV\n"),
                "@@ -2,7 +2,8 @@\n 2\n 3\n 4\n-5\n+five\n+V\n 6\n 7\n 8\n",
            ),
            (
                &ten,
                &ten.replace("1\n2\n", "2\n").replace("9\n", ""),
                "@@ -1,4 +1,3 @@\n-1\n 2\n 3\n 4\n@@ -6,5 +5,4 @@\n 6\n 7\n 8\n-9\n 10\n",
            ),
            (
                "a\nb\nc\n",
                "c\nb\na\n",
                "@@ -1,3 +1,3 @@\n-a\n-b\n c\n+b\n+a\n",
            ),
        ] {
            assert_eq!(diff(old, new), expected, "{old:?} {new:?}");
        }
        assert_eq!(
            unified(("x", None), ("x", Some(b"a\n"))),
            "--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+a\n"
        );
        assert_eq!(
            unified(("/x", Some(b"")), ("/x", None)),
            "--- a/x\n+++ /dev/null\n"
        );
        assert_eq!(
            unified(("x", Some(b"a")), ("y", Some(b"a"))),
            "--- a/x\n+++ b/y\n"
        );
    }

    /// The new text out of the old one and its diff.
    fn apply(old: &str, diff: &str) -> String {
        let old: Vec<&str> = old.split_inclusive('\n').collect();
        let (mut out, mut at) = (String::new(), 0);
        for line in diff.split_inclusive('\n') {
            if let Some(header) = line.strip_prefix("@@ -") {
                let span = header.split(' ').next().unwrap();
                let (start, count) = span.split_once(',').unwrap_or((span, "1"));
                let start: usize = start.parse().unwrap();
                let start = if count == "0" { start } else { start - 1 };
                out.extend(old[at..start].iter().copied());
                at = start;
            } else if let Some(removed) = line.strip_prefix('-') {
                assert_eq!(old[at], removed);
                at += 1;
            } else if let Some(added) = line.strip_prefix('+') {
                out.push_str(added);
            } else {
                assert_eq!(old[at], &line[1..]);
                out.push_str(old[at]);
                at += 1;
            }
        }
        out.extend(old[at..].iter().copied());
        out
    }

    #[test]
    fn a_diff_leads_from_one_text_to_the_other() {
        // A small generator of its own: the same texts in every run.
        let mut seed = 1u32;
        let mut next = |below: u32| {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (seed >> 16) % below
        };
        for _ in 0..500 {
            let mut text = || {
                (0..next(12))
                    .map(|_| format!("{}\n", next(4)))
                    .collect::<String>()
            };
            let (old, new) = (text(), text());
            assert_eq!(apply(&old, &diff(&old, &new)), new, "{old:?}");
        }
    }

    #[test]
    fn large_differences_are_bounded() {
        let old: String = (0..20_000).map(|i| format!("old {i}\n")).collect();
        let new: String = (0..20_000).map(|i| format!("new {i}\n")).collect();
        let diff = diff(&old, &new);
        assert!(
            diff.len() < MOST_BYTES + 1000
                && diff.ends_with("[the rest of the diff is not shown]\n")
        );
        let few = old.replace("old 5\n", "x\n").replace("old 19000\n", "y\n");
        assert_eq!(apply(&old, &super::tests::diff(&old, &few)), few);
    }
}

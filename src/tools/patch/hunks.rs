//! Applying the sections of a V4A patch.

use super::files::Files;
use super::lines::{self, Likeness};
use super::replace::with_cr;
use super::v4a::{Action, Hunk, Mark, Section};
use crate::tools::write_file::Manner;
use crate::tools::Failure;

const BOM: &[u8] = "\u{feff}".as_bytes();

pub(super) fn apply(
    files: &mut Files<'_>,
    section: &Section<'_>,
    notes: &mut Vec<String>,
) -> Result<(), Failure> {
    let path = section.path;
    match &section.action {
        Action::Add(lines) => {
            let text: String = lines.iter().flat_map(|line| [line, "\n"]).collect();
            files.create(path, text.into_bytes())
        }
        Action::Delete => files.delete(path),
        Action::Update { move_to, hunks } => {
            let text = files.read(path)?;
            let text = update(path, &text, hunks, notes)?;
            match move_to {
                Some(to) => files.rename(path, to, text),
                None => files.write(path, text),
            }
        }
    }
}

fn update(
    path: &str,
    text: &[u8],
    hunks: &[Hunk<'_>],
    notes: &mut Vec<String>,
) -> Result<Vec<u8>, Failure> {
    let manner = Manner::of_text(text);
    let (bom, body) = match text.strip_prefix(BOM) {
        Some(body) => (BOM, body),
        None => (&b""[..], text),
    };
    let strip = |line| match manner.crlf {
        true => <[u8]>::strip_suffix(line, b"\r").unwrap_or(line),
        false => line,
    };
    let ends = body.is_empty() || body.ends_with(b"\n");
    let old: Vec<&[u8]> = lines::split(body).into_iter().map(strip).collect();
    let mut new: Vec<&[u8]> = Vec::with_capacity(old.len());
    let mut at = 0;
    for hunk in hunks {
        let wanted = hunk.old();
        let found = locate(path, &old, (hunk, &wanted), at, notes)?;
        new.extend_from_slice(&old[at..found]);
        at = found + wanted.len();
        new.extend(merged(hunk, &old[found..at]));
    }
    new.extend_from_slice(&old[at..]);
    let mut out = new.join(&b'\n');
    if ends && !new.is_empty() {
        out.push(b'\n');
    }
    let out = if manner.crlf { with_cr(&out) } else { out };
    Ok([bom, &out].concat())
}

/// The hunk's new lines; those that are kept are kept as the file has them.
fn merged<'a>(hunk: &Hunk<'a>, have: &[&'a [u8]]) -> Vec<&'a [u8]> {
    let mut have = have.iter();
    let mut out: Vec<&[u8]> = Vec::new();
    for (mark, line) in &hunk.lines {
        match mark {
            Mark::Added => out.push(line.as_bytes()),
            Mark::Kept => out.extend(have.next()),
            Mark::Removed => drop(have.next()),
        }
    }
    out
}

/// The line at which `hunk` begins, from line `from` on.
fn locate(
    path: &str,
    old: &[&[u8]],
    (hunk, wanted): (&Hunk<'_>, &[&[u8]]),
    from: usize,
    notes: &mut Vec<String>,
) -> Result<usize, Failure> {
    let number = hunk.number;
    let mut from = from;
    for header in &hunk.headers {
        let is_it = |line: &&[u8]| line.trim_ascii().starts_with(header.as_bytes());
        let at = old[from..].iter().position(is_it).ok_or_else(|| {
            format!("{path}: the hunk at line {number} of the patch: no line begins with {header:?} after line {from}")
        })?;
        from += at + 1;
    }
    if wanted.is_empty() {
        let in_middle = !hunk.at_end && !hunk.headers.is_empty();
        return Ok(if in_middle { from } else { old.len() });
    }
    for likeness in Likeness::ALL {
        let mut found = lines::find(old, wanted, from, likeness)
            .filter(|at| !hunk.at_end || at + wanted.len() == old.len());
        let Some(at) = found.next() else { continue };
        if likeness != Likeness::Exact {
            notes.push(format!(
                "{path}: the hunk at line {number} of the patch matched but for {}.",
                likeness.name()
            ));
        }
        let others = found.count();
        if others > 0 {
            notes.push(format!(
                "{path}: the hunk at line {number} of the patch fits {} places; the first, line {}, was taken.",
                others + 1,
                at + 1
            ));
        }
        return Ok(at);
    }
    Err(not_found(path, old, hunk, wanted, from))
}

fn not_found(path: &str, old: &[&[u8]], hunk: &Hunk<'_>, wanted: &[&[u8]], from: usize) -> Failure {
    let number = hunk.number;
    let place = match hunk.at_end {
        true => "at the end of the file".to_string(),
        false if from > 0 => format!("after line {from}"),
        false => "in the file".into(),
    };
    let nearest = match lines::nearest(old, wanted) {
        Some(nearest) => format!(
            "; the nearest place is{}",
            lines::explain(old, wanted, &nearest)
        ),
        None => String::new(),
    };
    format!("{path}: the lines of the hunk at line {number} of the patch are not {place}{nearest}; nothing was changed").into()
}

//! The V4A format: what a patch asks for, section by section.

/// What is to be done with one file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Section<'a> {
    pub(super) path: &'a str,
    pub(super) action: Action<'a>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Action<'a> {
    Add(Vec<&'a str>),
    Delete,
    Update {
        move_to: Option<&'a str>,
        hunks: Vec<Hunk<'a>>,
    },
}

/// What a line of a hunk is there for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    Kept,
    Removed,
    Added,
}

/// Lines to find and what to put in their place.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Hunk<'a> {
    /// Its line in the patch, counted from 1.
    pub(super) number: usize,
    /// Lines behind `@@`, to be found one after the other before the hunk itself.
    pub(super) headers: Vec<&'a str>,
    pub(super) lines: Vec<(Mark, &'a str)>,
    /// It stands at the end of the file.
    pub(super) at_end: bool,
}

/// Reads `text`; an error names the line of the patch.
pub(super) fn parse(text: &str) -> Result<Vec<Section<'_>>, String> {
    let lines = body(text)?;
    let mut parser = Parser {
        lines: &lines,
        at: 0,
    };
    let mut sections = Vec::new();
    while let Some((number, line)) = parser.next() {
        if !line.trim().is_empty() {
            sections.push(parser.section(number, line)?);
        }
    }
    match sections.is_empty() {
        true => Err("the patch has no section; write *** Update File: PATH".into()),
        false => Ok(sections),
    }
}

type Line<'a> = (usize, &'a str);

/// The numbered lines between the markers.
fn body(text: &str) -> Result<Vec<Line<'_>>, String> {
    let lines = text
        .split('\n')
        .map(|line| line.strip_suffix('\r').unwrap_or(line));
    let is_noise = |line: &str| line.trim().is_empty() || line.trim_start().starts_with("```");
    let mut lines: Vec<Line> = (1..)
        .zip(lines)
        .skip_while(|(_, line)| is_noise(line))
        .collect();
    while lines.last().is_some_and(|(_, line)| is_noise(line)) {
        lines.pop();
    }
    let Some((number, first)) = lines.first().copied() else {
        return Err("the patch is empty".into());
    };
    if first.trim() == "*** Begin Patch" {
        lines.remove(0);
    } else if !first.starts_with("*** ") {
        return Err(format!(
            "line {number}: expected *** Begin Patch, got {first:?}"
        ));
    }
    if lines
        .last()
        .is_some_and(|(_, line)| line.trim() == "*** End Patch")
    {
        lines.pop();
    }
    match lines
        .iter()
        .find(|(_, line)| matches!(line.trim(), "*** Begin Patch" | "*** End Patch"))
    {
        Some((number, line)) => Err(format!(
            "line {number}: {} in the middle of the patch",
            line.trim()
        )),
        None => Ok(lines),
    }
}

struct Parser<'a, 'b> {
    lines: &'b [Line<'a>],
    at: usize,
}

impl<'a> Parser<'a, '_> {
    fn peek(&self) -> Option<Line<'a>> {
        self.lines.get(self.at).copied()
    }

    fn next(&mut self) -> Option<Line<'a>> {
        let line = self.peek();
        self.at += 1;
        line
    }

    /// The next line, unless it begins a section.
    fn next_of_section(&mut self) -> Option<Line<'a>> {
        let (_, line) = self.peek()?;
        let ends = line.starts_with("*** ")
            && !line.starts_with("*** End of File")
            && !line.starts_with("*** Move to:");
        if ends {
            return None;
        }
        self.next()
    }

    fn section(&mut self, number: usize, line: &'a str) -> Result<Section<'a>, String> {
        let path = |kind: &str| {
            let path = line
                .strip_prefix("*** ")?
                .strip_prefix(kind)?
                .strip_prefix(" File:")?
                .trim();
            Some(path)
        };
        let named = |path: &'a str| match path.is_empty() {
            true => Err(format!("line {number}: the path is missing")),
            false => Ok(path),
        };
        if let Some(path) = path("Add") {
            return Ok(Section {
                path: named(path)?,
                action: Action::Add(self.added()?),
            });
        }
        if let Some(path) = path("Delete") {
            self.nothing()?;
            return Ok(Section {
                path: named(path)?,
                action: Action::Delete,
            });
        }
        if let Some(paths) = path("Move") {
            let (from, to) = paths
                .split_once(" -> ")
                .ok_or_else(|| format!("line {number}: expected *** Move File: FROM -> TO"))?;
            self.nothing()?;
            return Ok(Section {
                path: named(from.trim())?,
                action: Action::Update {
                    move_to: Some(named(to.trim())?),
                    hunks: Vec::new(),
                },
            });
        }
        if let Some(path) = path("Update") {
            return Ok(Section {
                path: named(path)?,
                action: self.update(number)?,
            });
        }
        Err(format!(
            "line {number}: expected *** Update File:, *** Add File:, *** Delete File: or *** Move File:, got {line:?}"
        ))
    }

    fn added(&mut self) -> Result<Vec<&'a str>, String> {
        let mut added = Vec::new();
        while let Some((number, line)) = self.next_of_section() {
            match line.strip_prefix('+') {
                Some(text) => added.push(text),
                // Between sections people leave room.
                None if line.trim().is_empty()
                    && self.peek().is_none_or(|(_, l)| !l.starts_with('+')) => {}
                None => {
                    return Err(format!(
                        "line {number}: every line of an added file begins with +, got {line:?}"
                    ))
                }
            }
        }
        Ok(added)
    }

    fn nothing(&mut self) -> Result<(), String> {
        while let Some((number, line)) = self.next_of_section() {
            if !line.trim().is_empty() {
                return Err(format!(
                    "line {number}: expected the next section, got {line:?}"
                ));
            }
        }
        Ok(())
    }

    fn update(&mut self, section: usize) -> Result<Action<'a>, String> {
        let mut move_to = None;
        if let Some((number, line)) = self.peek() {
            if let Some(path) = line.strip_prefix("*** Move to:") {
                if path.trim().is_empty() {
                    return Err(format!("line {number}: the path is missing"));
                }
                move_to = Some(path.trim());
                self.next();
            }
        }
        let mut hunks: Vec<Hunk> = Vec::new();
        let mut current = Hunk::default();
        while let Some((number, line)) = self.next_of_section() {
            if current.number == 0 {
                current.number = number;
            }
            if let Some(header) = line.strip_prefix("@@") {
                if !current.is_empty() {
                    current.drop_room();
                    hunks.push(std::mem::take(&mut current));
                    current.number = number;
                }
                current.headers.extend(header_text(header));
            } else if line.starts_with("*** End of File") {
                current.at_end = true;
                hunks.push(std::mem::take(&mut current));
            } else {
                current.add(number, line)?;
            }
        }
        current.drop_room();
        if !current.is_empty() {
            hunks.push(current);
        }
        if hunks.is_empty() && move_to.is_none() {
            return Err(format!(
                "line {section}: nothing to update; add lines with -, + or a space before them"
            ));
        }
        if let Some(idle) = hunks.iter().find(|hunk| hunk.is_idle()) {
            return Err(format!("line {}: the hunk changes nothing", idle.number));
        }
        Ok(Action::Update { move_to, hunks })
    }
}

impl<'a> Hunk<'a> {
    fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    fn is_idle(&self) -> bool {
        self.lines.iter().all(|(mark, _)| *mark == Mark::Kept)
    }

    /// The lines that the file has to have.
    pub(super) fn old(&self) -> Vec<&'a [u8]> {
        let old = self.lines.iter().filter(|(mark, _)| *mark != Mark::Added);
        old.map(|(_, line)| line.as_bytes()).collect()
    }

    fn add(&mut self, number: usize, line: &'a str) -> Result<(), String> {
        let mut chars = line.chars();
        let mark = match chars.next() {
            Some('-') => Mark::Removed,
            Some('+') => Mark::Added,
            // The space before an empty line gets lost easily.
            Some(' ') | None => Mark::Kept,
            Some(_) => {
                return Err(format!(
                    "line {number}: expected a line that begins with -, + or a space, or @@, got {line:?}"
                ))
            }
        };
        self.lines.push((mark, chars.as_str()));
        Ok(())
    }

    /// Empty lines at the end of a hunk are room before what follows.
    fn drop_room(&mut self) {
        while self.lines.last() == Some(&(Mark::Kept, "")) {
            self.lines.pop();
        }
    }
}

/// What stands behind `@@`; the numbers of a unified diff tell nothing here.
fn header_text(header: &str) -> Option<&str> {
    let text = header.trim().trim_end_matches("@@").trim_end();
    let has_numbers = text.starts_with('-') && text[1..].starts_with(|c: char| c.is_ascii_digit());
    (!text.is_empty() && !has_numbers).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_section_is_read() {
        let text = "```\n*** Begin Patch\n*** Add File: new.txt\n+one\n+\n\n*** Delete File: old.txt\n*** Move File: a -> b c\n\
                    *** Update File: x.py\r\n*** Move to: y.py\n@@ class A\n@@ def f():\n a\n-b\n+B\n\n+c\n*** End of File\n@@ -1,2 +3,4 @@\n-z\n\n*** End Patch\n```\n";
        let hunk = |number, headers: &[&'static str], lines: &[&'static str], at_end| Hunk {
            number,
            headers: headers.to_vec(),
            lines: lines
                .iter()
                .map(|line| match line.split_at(1) {
                    ("-", text) => (Mark::Removed, text),
                    ("+", text) => (Mark::Added, text),
                    (_, text) => (Mark::Kept, text),
                })
                .collect(),
            at_end,
        };
        let sections = parse(text).unwrap();
        assert_eq!(
            sections,
            [
                Section {
                    path: "new.txt",
                    action: Action::Add(vec!["one", ""])
                },
                Section {
                    path: "old.txt",
                    action: Action::Delete
                },
                Section {
                    path: "a",
                    action: Action::Update {
                        move_to: Some("b c"),
                        hunks: vec![]
                    }
                },
                Section {
                    path: "x.py",
                    action: Action::Update {
                        move_to: Some("y.py"),
                        hunks: vec![
                            hunk(
                                11,
                                &["class A", "def f():"],
                                &[" a", "-b", "+B", " ", "+c"],
                                true
                            ),
                            hunk(19, &[], &["-z"], false),
                        ]
                    }
                },
            ]
        );
        assert_eq!(parse("*** Delete File: x").unwrap().len(), 1);
    }

    #[test]
    fn what_is_no_patch_is_told_with_its_line() {
        for (text, why) in [
            ("", "the patch is empty"),
            ("```\n```", "the patch is empty"),
            ("--- a\n+++ b\n", "line 1: expected *** Begin Patch"),
            ("*** Begin Patch\n*** End Patch", "no section"),
            ("*** Begin Patch\nx\n", "line 2: expected *** Update File:"),
            ("*** Begin Patch\n*** Rename File: x", "line 2: expected"),
            (
                "*** Begin Patch\n*** Add File:\n+x",
                "line 2: the path is missing",
            ),
            (
                "*** Begin Patch\n*** Add File: x\nx",
                "line 3: every line of an added file begins with +",
            ),
            (
                "*** Begin Patch\n*** Delete File: x\n-x",
                "line 3: expected the next section",
            ),
            (
                "*** Begin Patch\n*** Move File: x",
                "line 2: expected *** Move File: FROM -> TO",
            ),
            (
                "*** Begin Patch\n*** Update File: x\n*** End Patch",
                "line 2: nothing to update",
            ),
            (
                "*** Begin Patch\n*** Update File: x\n@@\nx",
                "line 4: expected a line that begins with",
            ),
            (
                "*** Begin Patch\n*** Update File: x\n a\n",
                "line 3: the hunk changes nothing",
            ),
            (
                "*** Begin Patch\n*** End Patch\n*** Delete File: x",
                "line 2: *** End Patch in the middle",
            ),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(why), "{text:?}: {error}");
        }
    }
}

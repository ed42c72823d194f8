//! What was found, as the script gets it.

use crate::json::{self, ObjectWriter};

/// Which part of the results is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Page {
    pub(super) offset: u64,
    pub(super) limit: u64,
}

impl Page {
    pub(super) const ALL: Page = Page {
        offset: 0,
        limit: u64::MAX,
    };

    pub(super) fn holds(&self, index: u64) -> bool {
        index >= self.offset && index - self.offset < self.limit
    }
}

/// What a result is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Match,
    File,
    Count,
}

/// A line that matches, with the lines around it.
#[derive(Debug)]
pub(super) struct Match {
    pub(super) path: String,
    pub(super) line: u64,
    pub(super) content: String,
    pub(super) before: Vec<String>,
    pub(super) after: Vec<String>,
}

/// The results that were kept, and how many there were.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) matches: Vec<Match>,
    /// Each with its number of matches.
    pub(super) files: Vec<(String, u64)>,
    pub(super) total_matches: u64,
    pub(super) total_files: u64,
}

impl Found {
    /// The result as a JSON object. `note` is added where there is something to say.
    pub(super) fn report(
        &self,
        unit: Unit,
        page: Page,
        context: usize,
        note: Option<&str>,
    ) -> String {
        let total = match unit {
            Unit::Match | Unit::Count => self.total_matches,
            Unit::File => self.total_files,
        };
        let (available, returned) = match unit {
            Unit::Match => (self.total_matches, self.matches.len()),
            Unit::File | Unit::Count => (self.total_files, self.files.len()),
        };
        let next = page.offset.saturating_add(returned as u64);
        let truncated = available > next;
        let mut result = ObjectWriter::default();
        let matches = self.matches.iter().map(|found| found.to_json(context));
        result.raw(
            "matches",
            format!("[{}]", matches.collect::<Vec<_>>().join(",")),
        );
        match unit {
            Unit::Match => {}
            Unit::File => {
                let paths = self.files.iter().map(|(path, _)| path);
                result.raw("files", json::string_array(paths));
            }
            Unit::Count => {
                let mut counts = ObjectWriter::default();
                for (path, count) in &self.files {
                    counts.raw(path, count);
                }
                result.raw("counts", counts.finish());
            }
        }
        result.raw("total_count", total).raw("truncated", truncated);
        let mut hints = Vec::new();
        if truncated && returned > 0 {
            let first = page.offset + 1;
            hints.push(format!(
                "Results {first} to {next} of {available}; continue with offset={next}."
            ));
        } else if returned == 0 && available > 0 {
            hints.push(format!("There are only {available} results."));
        }
        hints.extend(note.map(str::to_string));
        if !hints.is_empty() {
            result.string("hint", &hints.join(" "));
        }
        result.finish()
    }
}

impl Match {
    fn to_json(&self, context: usize) -> String {
        let mut object = ObjectWriter::default();
        object
            .string("path", &self.path)
            .raw("line", self.line)
            .string("content", &self.content);
        if context > 0 {
            object
                .raw("before", json::string_array(&self.before))
                .raw("after", json::string_array(&self.after));
        }
        object.finish()
    }
}

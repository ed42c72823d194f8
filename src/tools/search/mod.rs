//! `search_files`: contents by a regular expression, or files by a glob.
//!
//! | file | what it is for |
//! |---|---|
//! | `searchers.rs` | the programs that search: ripgrep where it is installed, else Python's `re` with `search.py` |
//! | `records.rs` | the stream that both write, and what is kept of it |
//! | `report.rs` | what was found, as the script gets it |
//! | `glob.rs` | which files were asked for |
//!
//! Promises: both searchers give the same answer, in the same order, or an error; `.gitignore` files are respected,
//! hidden files are searched, the folders of version control, links and binary files are not; memory does not grow
//! with what is searched.

mod glob;
mod records;
mod report;
mod searchers;
#[cfg(test)]
mod tests;

use super::place::{self, Place};
use super::{required, Answer, Context, Failure};
use crate::json::reader::Section;
use crate::sys::walk::Kind;
use glob::Glob;
use records::{Choice, Collector, Form};
use report::{Found, Page, Unit};
use searchers::{Searcher, Start};
use std::collections::HashMap;
use std::path::Path;
use std::time::SystemTime;

const LIMIT: u64 = 50;
/// More lines around a match than anybody reads.
const MOST_CONTEXT: u64 = 100;

const TARGETS: [(&str, Target); 2] = [("content", Target::Content), ("files", Target::Files)];
const OUTPUT_MODES: [(&str, Unit); 3] = [
    ("content", Unit::Match),
    ("files_only", Unit::File),
    ("count", Unit::Count),
];
const ORDERS: [(&str, Order); 2] = [
    ("discovery", Order::Discovery),
    ("modified", Order::Modified),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Target {
    Content,
    Files,
}

/// In which order files are gone through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    /// By their paths, name by name.
    Discovery,
    /// The last modified first.
    Modified,
}

/// What to look for.
#[derive(Debug)]
struct Query<'a> {
    /// `None`: the files themselves are looked for.
    expression: Option<&'a str>,
    context: usize,
}

/// A search that can be made again.
struct Search<'a> {
    searcher: &'a Searcher,
    context: &'a Context<'a>,
    query: Query<'a>,
    form: Form,
    start: Start,
    /// What stands before the paths that are told.
    prefix: String,
    files: Option<Glob>,
}

pub(super) fn search_files(context: &Context<'_>, arguments: &Section<'_>) -> Answer {
    let searcher = Searcher::find(context)?;
    search_with(&searcher, context, arguments)
}

fn search_with(searcher: &Searcher, context: &Context<'_>, arguments: &Section<'_>) -> Answer {
    const KNOWN: [&str; 9] = [
        "pattern",
        "target",
        "path",
        "file_glob",
        "limit",
        "offset",
        "output_mode",
        "context",
        "order",
    ];
    arguments.only(&KNOWN, |_| false)?;
    let pattern = required(arguments, "pattern")?;
    let target = arguments
        .choice("target", &TARGETS)?
        .unwrap_or(Target::Content);
    let unit = arguments
        .choice("output_mode", &OUTPUT_MODES)?
        .unwrap_or(Unit::Match);
    let lines = arguments.integer("context", 0..=MOST_CONTEXT)?.unwrap_or(0) as usize;
    let page = Page {
        offset: arguments.integer("offset", 0..=u64::MAX)?.unwrap_or(0),
        limit: arguments.integer("limit", 1..=u64::MAX)?.unwrap_or(LIMIT),
    };
    let order = arguments
        .choice("order", &ORDERS)?
        .unwrap_or(Order::Discovery);
    let file_glob = arguments
        .string("file_glob")?
        .map(|text| glob("file_glob", text))
        .transpose()?;
    let place = place::find(context, arguments.string("path")?.unwrap_or("."))?;
    let (start, prefix) = start(&place)?;
    let mut search = Search {
        searcher,
        context,
        query: Query {
            expression: Some(pattern),
            // Lines around a match are only shown with it.
            context: if unit == Unit::Match { lines } else { 0 },
        },
        form: Form::Lines,
        start,
        prefix,
        files: file_glob,
    };
    let mut unit = unit;
    if target == Target::Files {
        search.query.expression = None;
        search.form = Form::Paths;
        let names = glob("pattern", pattern)?;
        search.files = Some(match search.files.take() {
            None => names,
            Some(more) => names.and(more),
        });
        unit = Unit::File;
    }
    let (found, note) = match order {
        Order::Discovery => search.run(unit, Choice::Page(page))?,
        Order::Modified => search.run_modified_first(unit, page)?,
    };
    Ok(found.report(unit, page, search.query.context, note.as_deref()))
}

impl Search<'_> {
    fn run(&self, unit: Unit, choice: Choice) -> Result<(Found, Option<String>), Failure> {
        let mut collector = Collector::new(
            (self.form, unit),
            choice,
            self.query.context,
            self.files.as_ref(),
            &self.prefix,
        );
        let mut take = |bytes: &[u8]| collector.push(bytes);
        let note = self
            .searcher
            .search(self.context, &self.query, &self.start, &mut take)?;
        Ok((collector.finish(), note))
    }

    /// Which results are on the page is known only after all files are, so matches are searched for twice: no searcher
    /// of any version sorts like that itself.
    fn run_modified_first(
        &self,
        unit: Unit,
        page: Page,
    ) -> Result<(Found, Option<String>), Failure> {
        let (mut all, note) = self.run(Unit::Count, Choice::Page(Page::ALL))?;
        all.files
            .sort_by_cached_key(|(path, _)| std::cmp::Reverse(self.modified(path)));
        if unit != Unit::Match {
            let files = all.files.into_iter().zip(0..);
            all.files = files
                .filter(|(_, index)| page.holds(*index))
                .map(|(file, _)| file)
                .collect();
            return Ok((all, note));
        }
        let mut chosen = HashMap::new();
        let mut ranks = HashMap::new();
        let mut seen = 0;
        for (rank, (path, count)) in all.files.into_iter().enumerate() {
            let from = page.offset.saturating_sub(seen).min(count);
            let to = (page.offset.saturating_add(page.limit))
                .saturating_sub(seen)
                .min(count);
            if from < to {
                ranks.insert(path.clone(), rank);
                chosen.insert(path, from..to);
            }
            seen += count;
        }
        let (mut found, _) = self.run(unit, Choice::Of(chosen))?;
        found
            .matches
            .sort_by_key(|m| (ranks.get(&m.path).copied(), m.line));
        (found.total_matches, found.total_files) = (all.total_matches, all.total_files);
        Ok((found, note))
    }

    fn modified(&self, path: &str) -> Option<SystemTime> {
        let below = path.strip_prefix(&self.prefix).unwrap_or(path);
        let metadata = std::fs::symlink_metadata(self.start.to(below)).ok()?;
        metadata.modified().ok()
    }
}

fn glob(argument: &str, text: &str) -> Result<Glob, Failure> {
    Glob::parse(text)
        .map_err(|why| format!("search_files.{argument}: {text:?} is no glob: {why}").into())
}

/// Where the search begins, and what stands before the paths that it finds.
fn start<'a>(place: &Place<'a>) -> Result<(Start, String), Failure> {
    match place.spot.kind().map_err(|e| place.explain(&e))? {
        Some(Kind::Folder) => {
            let folder = place.spot.open_folder().map_err(|e| place.explain(&e))?;
            let prefix = match place.given.trim_end_matches('/') {
                "." | "./" => String::new(),
                "" => "/".into(),
                given => format!("{given}/"),
            };
            Ok((Start::folder(folder, place.spot.path()), prefix))
        }
        Some(Kind::File) => {
            let file = place.spot.open().map_err(|e| place.explain(&e))?;
            let name = Path::new(place.given);
            let folder = name.parent().filter(|folder| *folder != Path::new(""));
            let prefix = folder.map_or(String::new(), |f| format!("{}/", f.display()));
            Ok((Start::file(file.into(), place.spot.path()), prefix))
        }
        Some(Kind::Special) => Err(place.no_file()),
        None => Err(place.missing()),
    }
}

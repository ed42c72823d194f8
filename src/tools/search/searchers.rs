//! The programs that search.

use super::Query;
use crate::job::{self, End, Job};
use crate::json::{self, ObjectWriter};
use crate::sys::child::ExitStatus;
use crate::sys::scan::Tag;
use crate::tools::{Context, Failure};
use std::ffi::OsString;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The searcher for where there is no ripgrep.
const SCRIPT: &str = include_str!("search.py");
/// What is kept of complaints.
const ERROR_BYTES: usize = 20_000;
const GRACE: Duration = Duration::from_millis(100);
/// Folders that are version control's own.
const VERSION_CONTROL: [&str; 6] = [".git", ".hg", ".svn", ".jj", ".bzr", "CVS"];

/// A program that searches, with its path.
#[derive(Debug)]
pub(super) enum Searcher {
    Ripgrep(PathBuf),
    Python(PathBuf),
}

/// Where a search begins: an open folder or file, so that it is that one whatever its path leads to by now.
#[derive(Debug)]
pub(super) struct Start {
    open: OwnedFd,
    path: PathBuf,
    is_file: bool,
}

impl Start {
    pub(super) fn folder(open: OwnedFd, path: &Path) -> Start {
        Start {
            open,
            path: path.into(),
            is_file: false,
        }
    }

    pub(super) fn file(open: OwnedFd, path: &Path) -> Start {
        Start {
            open,
            path: path.into(),
            is_file: true,
        }
    }

    /// A path that leads to what is open; only without `/proc` it is the path that led there before.
    fn way(&self) -> PathBuf {
        let way = format!("/proc/{}/fd/{}", std::process::id(), self.open.as_raw_fd());
        match std::fs::metadata(&way) {
            Ok(_) => way.into(),
            Err(_) => self.path.clone(),
        }
    }

    /// The path of a file that a search from here has found.
    pub(super) fn to(&self, below: &str) -> PathBuf {
        match self.is_file {
            true => self.way(),
            false => self.way().join(below),
        }
    }

    fn name(&self) -> String {
        let name = self.path.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }
}

impl Searcher {
    /// Ripgrep where the host's PATH has it, else the interpreter that runs the scripts.
    pub(super) fn find(context: &Context<'_>) -> Result<Searcher, Failure> {
        if let Some(path) = context.environ.get("PATH") {
            let found = std::env::split_paths(path)
                .filter(|folder| folder.is_absolute())
                .map(|folder| folder.join("rg"))
                .find(|program| is_program(program));
            if let Some(program) = found {
                return Ok(Searcher::Ripgrep(program));
            }
        }
        match (context.interpreter)() {
            Some(python) => Ok(Searcher::Python(python)),
            None => Err("there is no program to search with; install ripgrep".into()),
        }
    }

    /// Gives `take` the records of what is found; what else there is to say of the search.
    pub(super) fn search(
        &self,
        context: &Context<'_>,
        query: &Query<'_>,
        start: &Start,
        take: job::Sink<'_>,
    ) -> Result<Option<String>, Failure> {
        let mut job = match self {
            Searcher::Ripgrep(program) => ripgrep(program, query, start),
            Searcher::Python(program) => python(program, query, start)?,
        };
        job.env = context.env.to_vec();
        job.cwd = if start.is_file {
            "/".into()
        } else {
            start.way()
        };
        job.keep = (0, ERROR_BYTES);
        job.grace = GRACE;
        job.tag = Some(Tag::new(context.engine_tag, context.call.id()));
        let finished = self.rename(start, take, |take| {
            job::run_into(job, Some(context.stop), Some(take))
        });
        let finished =
            finished.map_err(|e| format!("search_files cannot search: {}", e.message))?;
        let said = finished.stderr.finish(None).text;
        match finished.end {
            // 1: nothing was found.
            End::Exited(ExitStatus::Exited(0 | 1)) => Ok(None),
            End::Exited(ExitStatus::Exited(2)) => complaints(&said),
            End::Stopped => Err("the search was stopped with the run".into()),
            end => Err(format!("the search broke off ({end:?}): {}", said.trim()).into()),
        }
    }

    /// Runs `search` with a sink that puts the file's own name in the place of the way to its descriptor.
    fn rename<T>(
        &self,
        start: &Start,
        take: job::Sink<'_>,
        search: impl FnOnce(job::Sink<'_>) -> T,
    ) -> T {
        let Searcher::Ripgrep(_) = self else {
            return search(take);
        };
        if !start.is_file {
            return search(take);
        }
        let way = start.way().to_string_lossy().into_owned().into_bytes();
        let mut renamer = Renamer {
            way,
            name: start.name().into_bytes(),
            line: Vec::new(),
            in_line: false,
        };
        search(&mut |bytes| renamer.push(bytes, take))
    }
}

/// Exchanges the path at the start of each record.
struct Renamer {
    way: Vec<u8>,
    name: Vec<u8>,
    line: Vec<u8>,
    in_line: bool,
}

impl Renamer {
    fn push(&mut self, bytes: &[u8], take: job::Sink<'_>) {
        for byte in bytes {
            if self.in_line {
                self.line.push(*byte);
                self.in_line = *byte != b'\n';
                continue;
            }
            self.line.push(*byte);
            if *byte == 0 {
                let path = self.line.len() - 1;
                if self.line[..path].ends_with(&self.way) {
                    let from = path - self.way.len();
                    self.line.splice(from..path, self.name.iter().copied());
                }
                self.in_line = true;
                take(&self.line);
                self.line.clear();
            }
        }
        if self.in_line || self.line.ends_with(b"\n") {
            take(&self.line);
            self.line.clear();
        }
    }
}

fn is_program(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}

/// What a searcher complained of: of files that it could not read, or of what it was asked.
fn complaints(said: &str) -> Result<Option<String>, Failure> {
    let lines: Vec<&str> = said
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    let of_file = |line: &&&str| line.trim_start_matches("rg: ").starts_with("./");
    let files = lines.iter().filter(of_file).count();
    match (files, lines.first()) {
        (0, None) => Err("the search failed and did not say why".into()),
        (0, Some(_)) => Err(format!("search_files.pattern: {}", said.trim()).into()),
        (n, first) => {
            let first = first.map_or("", |line| line.trim_start_matches("rg: "));
            Ok(Some(format!(
                "{n} files could not be read, such as {first}."
            )))
        }
    }
}

fn ripgrep(program: &Path, query: &Query<'_>, start: &Start) -> Job {
    let mut args: Vec<OsString> = [
        "--no-config",
        "--color=never",
        "--null",
        "--hidden",
        // The files `.gitignore` count wherever they are, and no other ones.
        "--no-require-git",
        "--no-ignore-global",
        "--no-ignore-exclude",
        "--no-ignore-dot",
    ]
    .map(OsString::from)
    .to_vec();
    for folder in VERSION_CONTROL {
        args.push(format!("--glob=!{folder}").into());
    }
    args.push("--sort=path".into());
    match query.expression {
        None => args.push("--files".into()),
        Some(expression) => {
            let content = [
                "--no-heading",
                "--with-filename",
                "--line-number",
                "--no-context-separator",
                "--crlf",
                "--encoding=none",
                "--engine=auto",
            ];
            args.extend(content.map(OsString::from));
            args.push(format!("--context={}", query.context).into());
            args.push(format!("--regexp={expression}").into());
        }
    }
    args.push("--".into());
    args.push(match start.is_file {
        true => start.way().into(),
        false => "./".into(),
    });
    let mut job = Job::new(program);
    job.args = args;
    job
}

fn python(program: &Path, query: &Query<'_>, start: &Start) -> Result<Job, Failure> {
    let mut request = ObjectWriter::default();
    match query.expression {
        Some(expression) => request.string("pattern", expression),
        None => request.raw("pattern", "null"),
    };
    request
        .raw("context", query.context)
        .raw("version_control", json::string_array(VERSION_CONTROL));
    if start.is_file {
        request
            .string("file", &start.way().to_string_lossy())
            .string("name", &start.name());
    }
    let input = job::unnamed_file(&std::env::temp_dir(), request.finish().as_bytes());
    let mut job = Job::new(program);
    job.args = ["-I", "-S", "-B", "-X", "utf8", "-c", SCRIPT]
        .map(OsString::from)
        .to_vec();
    job.input = Some(input.map_err(|e| format!("search_files cannot search: {e}"))?);
    Ok(job)
}

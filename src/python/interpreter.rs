//! Which Python runs a script.
//!
//! In project mode it is that of the active virtual or conda environment, if it works; else, and always in strict mode,
//! the host's own: the setting `python`, or the first `python3` on PATH that works. To find out whether one works it is
//! started once, and compiles what lies in the staging directory on the way. The outcome, good or bad, is remembered
//! until the file changes.

use super::environ::Environ;
use super::BOOT;
use crate::error::{Code, Error, Result};
use crate::job::{self, End, Finished, Job};
use crate::json::{self, Value};
use crate::sys::child::ExitStatus;
use crate::sys::dir::{self, Dir};
use std::collections::HashMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

const PROBE: &str = include_str!("probe.py");

/// The oldest version that scripts are run with.
pub(crate) const OLDEST: (u32, u32, u32) = (3, 8, 0);

/// How long an interpreter may take to start and to compile two modules.
const PROBE_DEADLINE: Duration = Duration::from_secs(10);

/// The most that a probe may print: two compiled modules in hexadecimal digits, and room.
const PROBE_OUTPUT: usize = 64 << 20;

/// The most of a probe's complaint that is shown.
const SHOWN_COMPLAINT: usize = 300;

/// An interpreter that works.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Interpreter {
    /// What to execute: `sys.executable`, absolute, so no shim that would be run at every start.
    pub(crate) executable: PathBuf,
    /// What was found or configured.
    pub(crate) requested: PathBuf,
    pub(crate) version: (u32, u32, u32),
    /// `cpython`, `pypy`, ...
    pub(crate) implementation: String,
    /// The middle of a `.pyc` file's name, like `cpython-311`; empty if this one keeps none.
    pub(crate) cache_tag: String,
    /// The directories that it and its packages live in.
    pub(crate) roots: Vec<PathBuf>,
    /// The boot hook, compiled: the bytes of `__pycache__/sitecustomize.<cache_tag>.pyc`.
    pub(crate) boot_pyc: Vec<u8>,
    /// The generated module, compiled: the bytes of `__pycache__/<module>.<cache_tag>.pyc`.
    pub(crate) module_pyc: Vec<u8>,
}

/// An interpreter that was considered and not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) path: PathBuf,
    pub(crate) origin: &'static str,
    /// What was wrong, to stand behind the path.
    pub(crate) reason: String,
}

/// An interpreter and how it was found: `VIRTUAL_ENV`, `CONDA_PREFIX`, `the setting "python"` or `PATH`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) interpreter: Arc<Interpreter>,
    pub(crate) origin: &'static str,
}

/// The outcome of a search, with all that was passed over.
#[derive(Debug)]
pub(crate) struct Search {
    pub(crate) chosen: Option<Found>,
    pub(crate) refused: Vec<Refusal>,
}

/// The interpreters of one engine; remembers what it has probed. Threads may share it: each file is probed by one of
/// them while the others that want the same one wait.
#[derive(Debug)]
pub(crate) struct Interpreters {
    module_source: String,
    /// Where a probe's directory can be made.
    places: Vec<PathBuf>,
    deadline: Duration,
    probed: Mutex<HashMap<PathBuf, Arc<Mutex<Option<Probed>>>>>,
}

/// A remembered probe, true as long as the file is the same.
#[derive(Debug)]
struct Probed {
    stamp: Stamp,
    outcome: std::result::Result<Arc<Interpreter>, String>,
}

/// What changes when a file is replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp(u64, u64, u64, i64, i64);

/// Why a probe has no interpreter to show.
enum Unusable {
    /// What the file is, or what it answers.
    Verdict(String),
    /// The host lacks descriptors, processes or space.
    JustNow(String),
}

impl From<String> for Unusable {
    fn from(reason: String) -> Self {
        Unusable::Verdict(reason)
    }
}

struct Candidate {
    path: PathBuf,
    origin: &'static str,
}

impl Interpreters {
    /// Every interpreter found will have `module_source`, the text of the generated module, compiled, in a directory at
    /// the first of `places` that will do.
    pub(crate) fn new(module_source: String, places: Vec<PathBuf>) -> Self {
        Interpreters {
            module_source,
            places,
            deadline: PROBE_DEADLINE,
            probed: Mutex::default(),
        }
    }

    /// The interpreter to use. `setting` is the configuration's `python`; `project` tells project from strict mode.
    ///
    /// # Errors
    /// [`Code::Interpreter`], with all that was tried and why it would not do.
    pub(crate) fn find(
        &self,
        project: bool,
        setting: Option<&str>,
        env: &Environ,
    ) -> Result<Arc<Interpreter>> {
        let search = self.search(project, setting, env);
        match search.chosen {
            Some(found) => Ok(found.interpreter),
            None => Err(not_found(&search.refused)),
        }
    }

    /// Like [`find`](Self::find), for those who want to explain the choice.
    pub(crate) fn search(&self, project: bool, setting: Option<&str>, env: &Environ) -> Search {
        let mut refused = Vec::new();
        for candidate in candidates(project, setting, env) {
            match self.examine(&candidate, env) {
                Ok(interpreter) => {
                    let origin = candidate.origin;
                    let chosen = Some(Found {
                        interpreter,
                        origin,
                    });
                    return Search { chosen, refused };
                }
                Err(reason) => refused.push(Refusal {
                    path: candidate.path,
                    origin: candidate.origin,
                    reason,
                }),
            }
        }
        Search {
            chosen: None,
            refused,
        }
    }

    /// Forgets an interpreter that could not be started after all, so that it is probed again.
    pub(crate) fn forget(&self, interpreter: &Interpreter) {
        let mut probed = self.probed.lock().unwrap_or_else(PoisonError::into_inner);
        probed.remove(&interpreter.requested);
    }

    #[cfg(test)]
    pub(crate) fn with_deadline(deadline: Duration) -> Self {
        Interpreters {
            deadline,
            ..Interpreters::new(String::new(), dir::candidates())
        }
    }

    fn probe(
        &self,
        candidate: &Candidate,
        env: &Environ,
    ) -> std::result::Result<Interpreter, Unusable> {
        let environment = env.child_env(&[], &[], &[("PYTHONUTF8", "1".into())]);
        let output = run_probe(
            &self.places,
            &candidate.path,
            &environment,
            [BOOT, &self.module_source],
            self.deadline,
        )?;
        let answer = output.trim_end().lines().next_back().unwrap_or_default();
        let about = json::parse(answer).map_err(|_| "does not answer like a Python".to_string())?;
        Ok(read_answer(&about, candidate)?)
    }

    fn examine(
        &self,
        candidate: &Candidate,
        env: &Environ,
    ) -> std::result::Result<Arc<Interpreter>, String> {
        let stamp = stamp(&candidate.path)?;
        let place = {
            let mut probed = self.probed.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(probed.entry(candidate.path.clone()).or_default())
        };
        let mut place = place.lock().unwrap_or_else(PoisonError::into_inner);
        match &*place {
            Some(known) if known.stamp == stamp && still_there(&known.outcome) => {
                known.outcome.clone()
            }
            _ => {
                let outcome = match self.probe(candidate, env) {
                    Ok(interpreter) => Ok(Arc::new(interpreter)),
                    Err(Unusable::Verdict(reason)) => Err(reason),
                    // That says nothing about the file: the next run asks again.
                    Err(Unusable::JustNow(reason)) => return Err(reason),
                };
                *place = Some(Probed {
                    stamp,
                    outcome: outcome.clone(),
                });
                outcome
            }
        }
    }
}

fn not_found(refused: &[Refusal]) -> Error {
    let tried: Vec<String> = refused
        .iter()
        .map(|r| format!("{} ({}): {}", r.path.display(), r.origin, r.reason))
        .collect();
    let tried = match tried.as_slice() {
        [] => "there is no python3 on PATH".to_string(),
        tried => tried.join("; "),
    };
    let (major, minor, _) = OLDEST;
    Error::new(
        Code::Interpreter,
        format!("no usable Python interpreter: {tried}. Install Python {major}.{minor} or newer, or set \"python\" to one"),
    )
}

/// Where to look, in this order. Environments count only if they have an interpreter.
fn candidates(project: bool, setting: Option<&str>, env: &Environ) -> Vec<Candidate> {
    let mut found = Vec::new();
    if project {
        for origin in ["VIRTUAL_ENV", "CONDA_PREFIX"] {
            let path = env.get(origin).map(|dir| Path::new(dir).join("bin/python"));
            let path = path.filter(|path| path.exists());
            found.extend(path.map(|path| Candidate { path, origin }));
        }
    }
    let origin = "the setting \"python\"";
    match setting {
        Some(path) if path.contains('/') => found.push(Candidate {
            path: PathBuf::from(path),
            origin,
        }),
        Some(name) => {
            let first = on_path(name, env).into_iter().next();
            let path = first.unwrap_or_else(|| PathBuf::from(name));
            found.push(Candidate { path, origin });
        }
        None => found.extend(on_path("python3", env).into_iter().map(|path| Candidate {
            path,
            origin: "PATH",
        })),
    }
    found
}

/// The executable files called `name` in the directories of PATH.
fn on_path(name: &str, env: &Environ) -> Vec<PathBuf> {
    let Some(path) = env.get("PATH") else {
        return Vec::new();
    };
    std::env::split_paths(path)
        .filter(|dir| dir.is_absolute())
        .map(|dir| dir.join(name))
        .filter(|file| is_executable(file))
        .collect()
}

fn is_executable(file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}

fn stamp(path: &Path) -> std::result::Result<Stamp, String> {
    let about = fs::metadata(path).map_err(|e| match e.kind() {
        std::io::ErrorKind::NotFound => "does not exist".to_string(),
        _ => format!("cannot be examined: {e}"),
    })?;
    if about.is_dir() {
        return Err("is a directory, not an interpreter".to_string());
    }
    Ok(Stamp(
        about.dev(),
        about.ino(),
        about.size(),
        about.mtime(),
        about.mtime_nsec(),
    ))
}

/// Whether what a shim or link led to has not vanished.
fn still_there(outcome: &std::result::Result<Arc<Interpreter>, String>) -> bool {
    outcome
        .as_ref()
        .map_or(true, |found| is_executable(&found.executable))
}

fn read_answer(about: &Value, candidate: &Candidate) -> std::result::Result<Interpreter, String> {
    let text = |key: &str| about.get(key).and_then(Value::as_str);
    let mut numbers = about
        .get("version")
        .and_then(Value::as_array)
        .unwrap_or_default()
        .iter();
    let mut number = || match numbers.next() {
        Some(Value::Number(text)) => text.parse().ok(),
        _ => None,
    };
    let strange = || "does not answer like a Python".to_string();
    let (Some(major), Some(minor), Some(micro)) = (number(), number(), number()) else {
        return Err(strange());
    };
    let version = (major, minor, micro);
    if version < OLDEST {
        return Err(format!(
            "is Python {major}.{minor}.{micro}, and {}.{} or newer is needed",
            OLDEST.0, OLDEST.1
        ));
    }
    let executable = PathBuf::from(text("executable").unwrap_or_default());
    if !is_executable(&executable) {
        return Err(format!(
            "says that its executable is {executable:?}, which is none"
        ));
    }
    let roots = about.get("roots").and_then(Value::as_array);
    let roots = roots.unwrap_or_default().iter().filter_map(Value::as_str);
    Ok(Interpreter {
        roots: roots.map(PathBuf::from).collect(),
        executable,
        requested: candidate.path.clone(),
        version,
        implementation: text("implementation").unwrap_or_default().to_string(),
        cache_tag: text("cache_tag").unwrap_or_default().to_string(),
        boot_pyc: text("boot").and_then(unhex).ok_or_else(strange)?,
        module_pyc: text("module").and_then(unhex).ok_or_else(strange)?,
    })
}

fn unhex(digits: &str) -> Option<Vec<u8>> {
    let digit = |c: &u8| (*c as char).to_digit(16);
    digits
        .as_bytes()
        .chunks(2)
        .map(|pair| Some((digit(pair.first()?)? * 16 + digit(pair.get(1)?)?) as u8))
        .collect()
}

/// Starts `executable` with the probe program on `modules`, and returns what it printed.
fn run_probe(
    places: &[PathBuf],
    executable: &Path,
    environment: &[(OsString, OsString)],
    modules: [&str; 2],
    deadline: Duration,
) -> std::result::Result<String, Unusable> {
    let dir = Dir::create(places, dir::PREFIX).map_err(not_now)?;
    let answer = probe_in(&dir, executable, environment, modules, deadline);
    // What cannot be removed now is swept by the next engine; the answer is no worse for it.
    let _ = dir.remove();
    answer
}

fn probe_in(
    dir: &Dir,
    executable: &Path,
    environment: &[(OsString, OsString)],
    modules: [&str; 2],
    deadline: Duration,
) -> std::result::Result<String, Unusable> {
    let mut job = Job::new(executable);
    job.args = ["-E", "-S", "-s", "-B", "-c", PROBE]
        .map(OsString::from)
        .to_vec();
    for (name, source) in ["boot.py", "module.py"].into_iter().zip(modules) {
        dir.write_file(name, source.as_bytes(), 0o600)
            .map_err(not_now)?;
        job.args.push(dir.path().join(name).into());
    }
    job.env = environment.to_vec();
    job.keep = (PROBE_OUTPUT, SHOWN_COMPLAINT * 4);
    job.timeout = Some(deadline);
    let finished = job::run(job, None).map_err(|failure| {
        let reason = format!("does not start: {}", failure.message);
        match failure.is_shortage {
            true => Unusable::JustNow(reason),
            false => Unusable::Verdict(reason),
        }
    })?;
    if finished.end == End::TimedOut {
        return Err("did not answer in time".to_string().into());
    }
    let answer = finished.stdout.finish(None);
    match answer.text.trim().is_empty() {
        true => Err(complaint(&finished).into()),
        false => Ok(answer.text),
    }
}

fn not_now(error: std::io::Error) -> Unusable {
    Unusable::JustNow(format!("cannot be probed: {error}"))
}

fn complaint(finished: &Finished) -> String {
    let stderr = finished.stderr.finish(None).text;
    if let Some(last) = stderr.trim().lines().next_back() {
        let last: String = last.chars().take(SHOWN_COMPLAINT).collect();
        return format!("does not run: {last}");
    }
    let end = match finished.end {
        End::Exited(ExitStatus::Exited(code)) => format!("with exit code {code}"),
        End::Exited(ExitStatus::Signaled(signal)) => format!("by signal {signal}"),
        _ => "in an unknown way".to_string(),
    };
    format!("does not run: it ended {end}, without a word")
}

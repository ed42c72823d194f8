//! Which Python runs a script: the project's own where there is one, else the host's; each probed once.
//!
//! A probe is one start of the interpreter. It tells the real executable (a pyenv shim on PATH costs ten times the
//! start of the interpreter behind it) and compiles the boot hook and the generated module, so that no script pays for
//! that: importing a `.py` without its `.pyc` costs more than a millisecond in every CPython.

use super::environ::Environ;
use crate::config::Mode;
use crate::error::{Code, Error, Result};
use crate::json::{self, Value};
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The oldest Python that scripts can run on.
const OLDEST: (u64, u64) = (3, 8);

/// A start takes some 20 ms; a hung network file system takes for ever.
const PROBE_TIMEOUT: Duration = Duration::from_secs(10);

/// The kernel takes at most 128 KiB in one argument.
const CHUNK: usize = 60_000;

/// A Python that can run scripts.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Interpreter {
    /// `sys.executable`: what is really started.
    pub executable: PathBuf,
    /// As in the names of cached bytecode: `cpython-311`.
    pub cache_tag: String,
    /// The boot hook and the generated module as `.pyc` files of this interpreter.
    pub boot_pyc: Vec<u8>,
    pub module_pyc: Vec<u8>,
}

/// A program to be run for its answer; see [`Interpreters::find`].
#[derive(Debug)]
pub(crate) struct ProbeCommand {
    pub program: PathBuf,
    /// Without the program's name.
    pub args: Vec<OsString>,
    pub env: Vec<(OsString, OsString)>,
    pub timeout: Duration,
}

/// What a probe has answered.
#[derive(Debug)]
pub(crate) struct ProbeOutput {
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    pub success: bool,
    /// How it ended, in words.
    pub description: String,
}

/// Runs a probe; the error says why it could not be run.
pub(crate) type ProbeRunner<'a> =
    &'a dyn Fn(&ProbeCommand) -> std::result::Result<ProbeOutput, String>;

/// What a search is for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Search<'a> {
    pub mode: Mode,
    /// The `python` of the configuration.
    pub python: Option<&'a str>,
    pub environ: &'a Environ,
    pub module_name: &'a str,
    pub module_source: &'a str,
}

/// The interpreters that were probed, with what came of it. A file that changed is probed again.
#[derive(Debug, Default)]
pub(crate) struct Interpreters {
    probed: Mutex<HashMap<PathBuf, (Identity, Verdict)>>,
}

type Verdict = std::result::Result<Arc<Interpreter>, String>;

/// Tells whether a file is still the one that was probed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Identity {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
}

impl Interpreters {
    /// The interpreter for a run.
    ///
    /// # Errors
    /// [`Code::Interpreter`] naming every candidate and what was wrong with it.
    pub(crate) fn find(
        &self,
        search: &Search<'_>,
        run: ProbeRunner<'_>,
    ) -> Result<Arc<Interpreter>> {
        let mut refused = Vec::new();
        for candidate in candidates(search) {
            match candidate.and_then(|path| {
                self.verdict(&path, search, run)
                    .map_err(|why| format!("{}: {why}", path.display()))
            }) {
                Ok(interpreter) => return Ok(interpreter),
                Err(why) => refused.push(why),
            }
        }
        Err(Error::new(
            Code::Interpreter,
            format!(
                "no usable Python: {}. Set \"python\" in the configuration to the path of a Python {}.{} or newer",
                refused.join("; "),
                OLDEST.0,
                OLDEST.1
            ),
        ))
    }

    /// Makes the next search probe again what led to `executable`: it could not be started any more.
    pub(crate) fn forget(&self, executable: &Path) {
        let leads_there =
            |verdict: &Verdict| verdict.as_ref().is_ok_and(|i| i.executable == executable);
        self.probed()
            .retain(|_, (_, verdict)| !leads_there(verdict));
    }

    fn verdict(&self, path: &Path, search: &Search<'_>, run: ProbeRunner<'_>) -> Verdict {
        let identity = identity(path)?;
        if let Some((known, verdict)) = self.probed().get(path) {
            if *known == identity {
                return verdict.clone();
            }
        }
        // Two first runs may probe the same file at once: both get the same answer, and neither waits for the other.
        let verdict = probe(path, search, run).map(Arc::new);
        self.probed()
            .insert(path.to_path_buf(), (identity, verdict.clone()));
        verdict
    }

    fn probed(&self) -> MutexGuard<'_, HashMap<PathBuf, (Identity, Verdict)>> {
        self.probed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where to look, in order; an error is a candidate that cannot even be named.
fn candidates(search: &Search<'_>) -> Vec<std::result::Result<PathBuf, String>> {
    let mut list = Vec::new();
    if search.mode == Mode::Project {
        for variable in ["VIRTUAL_ENV", "CONDA_PREFIX"] {
            if let Some(prefix) = search.environ.get(variable).filter(|p| !p.is_empty()) {
                list.push(Ok(Path::new(prefix).join("bin/python")));
            }
        }
    }
    list.push(match search.python {
        Some(path) if path.contains('/') => Ok(PathBuf::from(path)),
        Some(name) => {
            on_path(search.environ, name).ok_or_else(|| format!("\"{name}\" is not on PATH"))
        }
        None => ["python3", "python"]
            .iter()
            .find_map(|name| on_path(search.environ, name))
            .ok_or_else(|| "there is no python3 on PATH".to_string()),
    });
    list
}

fn on_path(environ: &Environ, name: &str) -> Option<PathBuf> {
    let path = environ
        .get("PATH")
        .unwrap_or(OsStr::new("/usr/local/bin:/usr/bin:/bin"));
    std::env::split_paths(path)
        .filter(|dir| dir.is_absolute())
        .map(|dir| dir.join(name))
        .find(|file| is_executable(file))
}

fn is_executable(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}

fn identity(path: &Path) -> std::result::Result<Identity, String> {
    let metadata = fs::metadata(path).map_err(|e| match e.kind() {
        std::io::ErrorKind::NotFound => "there is no such file".to_string(),
        _ => e.to_string(),
    })?;
    if !metadata.is_file() {
        return Err("it is not a file".into());
    }
    if metadata.permissions().mode() & 0o111 == 0 {
        return Err("it is not executable".into());
    }
    Ok(Identity {
        device: metadata.dev(),
        inode: metadata.ino(),
        size: metadata.size(),
        modified: (metadata.mtime(), metadata.mtime_nsec()),
    })
}

fn probe(
    path: &Path,
    search: &Search<'_>,
    run: ProbeRunner<'_>,
) -> std::result::Result<Interpreter, String> {
    let path = std::path::absolute(path).map_err(|e| e.to_string())?;
    let mut args: Vec<OsString> = vec!["-c".into(), super::PROBE_SOURCE.into()];
    push_module(&mut args, "sitecustomize", super::BOOT_SOURCE);
    push_module(&mut args, search.module_name, search.module_source);
    let command = ProbeCommand {
        program: path.clone(),
        args,
        // Without the user's PYTHONPATH, where anything may shadow what the probe imports.
        env: search.environ.child_env(
            &[],
            &[],
            &[("PYTHONPATH", OsString::new()), ("PYTHONUTF8", "1".into())],
        ),
        timeout: PROBE_TIMEOUT,
    };
    let output = run(&command)?;
    if !output.success {
        let last = last_line(&output.stderr);
        let separator = if last.is_empty() { "" } else { ": " };
        return Err(format!("{}{separator}{last}", output.description));
    }
    interpret(&path, &output.stdout)
}

fn push_module(args: &mut Vec<OsString>, name: &str, source: &str) {
    let hex: String = source.bytes().map(|b| format!("{b:02x}")).collect();
    let chunks: Vec<&str> = hex
        .as_bytes()
        .chunks(CHUNK)
        .map(|chunk| std::str::from_utf8(chunk).unwrap_or_default())
        .collect();
    args.push(name.into());
    args.push(chunks.len().to_string().into());
    args.extend(chunks.into_iter().map(OsString::from));
}

fn interpret(path: &Path, stdout: &[u8]) -> std::result::Result<Interpreter, String> {
    let text = String::from_utf8_lossy(stdout);
    // A sitecustomize may print; the answer is the last line.
    let line = text
        .lines()
        .rev()
        .find(|l| !l.trim().is_empty())
        .unwrap_or_default();
    let answer =
        json::parse(line).map_err(|_| format!("it does not answer like Python: {line:.100}"))?;
    let version: Vec<u64> = numbers(answer.get("version"));
    if version.len() != 3 {
        return Err("it does not tell its version".into());
    }
    if (version[0], version[1]) < OLDEST {
        return Err(format!(
            "it is Python {}.{}.{}, and {}.{} or newer is needed",
            version[0], version[1], version[2], OLDEST.0, OLDEST.1
        ));
    }
    let executable = text_of(&answer, "executable").filter(|e| e.starts_with('/'));
    let modules: Vec<Vec<u8>> = answer
        .get("modules")
        .and_then(Value::as_array)
        .unwrap_or_default()
        .iter()
        .filter_map(|module| from_hex(module.as_str()?))
        .collect();
    let [boot_pyc, module_pyc] =
        <[Vec<u8>; 2]>::try_from(modules).map_err(|_| "it did not compile our modules")?;
    Ok(Interpreter {
        executable: executable.map_or_else(|| path.to_path_buf(), PathBuf::from),
        cache_tag: text_of(&answer, "cache_tag")
            .ok_or("it does not tell its cache tag")?
            .to_string(),
        boot_pyc,
        module_pyc,
    })
}

fn numbers(value: Option<&Value>) -> Vec<u64> {
    let items = value.and_then(Value::as_array).unwrap_or_default();
    items
        .iter()
        .filter_map(|item| match item {
            Value::Number(text) => text.parse().ok(),
            _ => None,
        })
        .collect()
}

fn text_of<'a>(answer: &'a Value, key: &str) -> Option<&'a str> {
    answer.get(key).and_then(Value::as_str)
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digit = |c: u8| (c as char).to_digit(16).map(|d| d as u8);
    text.as_bytes()
        .chunks(2)
        .map(|pair| Some(digit(pair[0])? << 4 | digit(*pair.get(1)?)?))
        .collect()
}

fn last_line(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let line = text
        .lines()
        .rev()
        .find(|l| !l.trim().is_empty())
        .unwrap_or_default();
    line.trim().chars().take(200).collect()
}

#[cfg(test)]
#[path = "interpreter_tests.rs"]
mod tests;

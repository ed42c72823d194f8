//! From a plan to a running script: interpreter, staging directory, environment, working directory, child.

use super::isolation::{self, Place};
use super::remains::Setting;
use super::stage::Stage;
use super::Inner;
use crate::config::{IsolationLevel, Mode};
use crate::python::{self, Boot, Environ, Interpreter, Interpreters};
use crate::rpc::exchange::{Exchange, Observer, Policy};
use crate::sys::child::{self, Child};
use crate::sys::leash::Leash;
use crate::sys::scan::Tag;
use crate::sys::spawn::{self, Command, Step};
use crate::sys::{fd, random};
use crate::text::Redactor;
use crate::tool::names::HELPERS;
use crate::tool::ToolSpec;
use std::ffi::{CString, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

/// What all runs of an engine are launched with.
#[derive(Debug)]
pub(crate) struct Launcher {
    pub environ: Arc<Environ>,
    pub interpreters: Arc<Interpreters>,
    /// The generated module.
    pub module_source: String,
    /// Where staging directories are made.
    pub parents: Vec<PathBuf>,
    /// Tells the processes of this engine's runs from those of others.
    pub engine_tag: u64,
}

/// A script that runs.
#[derive(Debug)]
pub(super) struct Launched {
    pub child: Child,
    pub stdout: Option<OwnedFd>,
    pub stderr: Option<OwnedFd>,
    /// A whole `NAME=value` that every process of the run inherits.
    pub marker: String,
    pub exchange: Arc<Exchange>,
    pub stage: Stage,
    pub setting: Setting,
    pub notes: Vec<String>,
    pub redactor: Arc<Redactor>,
}

/// Why a script was not started.
#[derive(Debug)]
pub(super) struct Failure {
    pub message: String,
    pub setting: Setting,
}

/// What is known so far, for the result of a launch that fails half-way.
struct Progress<'a> {
    run: &'a Arc<Inner>,
    setting: Setting,
    notes: Vec<String>,
}

impl Progress<'_> {
    fn note_other_directory(&mut self, problem: &str) {
        self.notes.push(format!(
            "{problem}; the script ran in a temporary directory instead."
        ));
    }
}

/// Why there is no child.
enum NotSpawned {
    /// The working directory cannot be entered.
    NoDirectory(String),
    Other(String),
}

impl From<String> for NotSpawned {
    fn from(why: String) -> Self {
        NotSpawned::Other(why)
    }
}

impl Launcher {
    pub(super) fn launch(&self, run: &Arc<Inner>) -> Result<Launched, Box<Failure>> {
        let mut progress = Progress {
            run,
            setting: self.setting(run),
            notes: Vec::new(),
        };
        self.start(&mut progress).map_err(|message| {
            Box::new(Failure {
                message,
                setting: progress.setting,
            })
        })
    }

    /// What the result says of a run's setting before anything is known of the interpreter.
    pub(super) fn setting(&self, run: &Inner) -> Setting {
        Setting {
            mode: run.plan.options.mode.name(),
            module: run.plan.config.module_name.clone(),
            tools: run.plan.tools.keys().cloned().collect(),
            sandbox: is_sandboxed(run).then(|| run.plan.config.isolation.clone()),
            ..Setting::default()
        }
    }

    fn start(&self, progress: &mut Progress<'_>) -> Result<Launched, String> {
        let run = progress.run;
        let config = &run.plan.config;
        let interpreter = self.interpreter(run)?;
        progress.setting.python = Some(interpreter.executable.clone());
        let stage = Stage::create(
            &self.parents,
            &run.plan.code,
            &config.module_name,
            &self.module_source,
            &interpreter,
        )
        .map_err(|e| format!("cannot make the staging directory: {e}"))?;
        if is_sandboxed(run) {
            stage
                .make_temporary()
                .map_err(|e| format!("cannot make a directory for temporary files: {e}"))?;
        }
        let cwd = self.working_directory(progress, &stage);
        // The output is made text in the same way, so that a secret of odd bytes is still found.
        let secrets = self.environ.scrubbed_secrets(&self.passthrough(run));
        let secrets = secrets.iter().map(|s| String::from_utf8_lossy(s).into());
        let redactor = Arc::new(Redactor::new(secrets.collect()));
        let token = random::hex128().map_err(|e| format!("cannot make a token: {e}"))?;
        let exchange = self.open_exchange(run, &stage, token.clone(), &redactor)?;
        match self.spawn_somewhere(progress, &interpreter, &stage, cwd, &token) {
            Ok(spawned) => Ok(Launched {
                child: spawned.child,
                stdout: Some(spawned.stdout),
                stderr: Some(spawned.stderr),
                marker: spawned.marker,
                exchange,
                stage,
                setting: std::mem::take(&mut progress.setting),
                notes: std::mem::take(&mut progress.notes),
                redactor,
            }),
            Err(message) => {
                exchange.close();
                // The reason why nothing was started matters more than a directory that the next engine sweeps.
                let _ = stage.remove();
                Err(message)
            }
        }
    }
}

/// A child and what its supervisor needs of it.
struct Spawned {
    child: Child,
    stdout: OwnedFd,
    stderr: OwnedFd,
    marker: String,
}

impl Launcher {
    fn interpreter(&self, run: &Inner) -> Result<Arc<Interpreter>, String> {
        let config = &run.plan.config;
        let in_project = run.plan.options.mode == Mode::Project;
        self.interpreters
            .find(in_project, config.python.as_deref(), &self.environ)
            .map_err(|e| e.message().to_string())
    }

    fn passthrough(&self, run: &Inner) -> Vec<String> {
        let mut names = run.plan.config.env_passthrough.clone();
        names.extend(run.plan.options.env_passthrough.iter().cloned());
        names
    }

    /// The directory that the script starts in: the run's, the session's, the host's; staging in strict mode and where
    /// the one that was wanted cannot be entered.
    fn working_directory(&self, progress: &mut Progress<'_>, stage: &Stage) -> PathBuf {
        let options = &progress.run.plan.options;
        let staging = stage.path().to_path_buf();
        if options.mode == Mode::Strict {
            return staging;
        }
        let wanted = options
            .cwd
            .clone()
            .or_else(|| progress.run.plan.config.cwd.clone());
        let wanted = match wanted {
            Some(dir) => Ok(dir),
            None => std::env::current_dir()
                .map_err(|e| format!("the host's working directory is gone ({e})")),
        };
        let problem = match wanted {
            Ok(dir) if dir.is_dir() => return std::path::absolute(&dir).unwrap_or(dir),
            Ok(dir) => format!("the working directory {} does not exist", dir.display()),
            Err(problem) => problem,
        };
        progress.note_other_directory(&problem);
        staging
    }

    fn open_exchange(
        &self,
        run: &Arc<Inner>,
        stage: &Stage,
        token: String,
        redactor: &Arc<Redactor>,
    ) -> Result<Arc<Exchange>, String> {
        let config = &run.plan.config;
        let policy = Policy {
            tools: Arc::clone(&run.plan.tools),
            max_tool_calls: run.plan.options.max_tool_calls,
            max_parallel_calls: config.max_parallel_calls,
            max_message_bytes: config.max_message_bytes,
            context: run.plan.context,
            redactor: Arc::clone(redactor),
        };
        let observer: Weak<dyn Observer> = Arc::downgrade(&(Arc::clone(run) as Arc<dyn Observer>));
        stage
            .listen()
            .and_then(|listener| {
                Exchange::open(
                    listener,
                    token,
                    policy,
                    Arc::clone(&run.wiring.calls),
                    observer,
                )
            })
            .map_err(|e| {
                format!(
                    "cannot listen for tool calls in {}: {e}",
                    stage.path().display()
                )
            })
    }

    /// Starts the script in `cwd`, or in the staging directory if that cannot be entered after all.
    fn spawn_somewhere(
        &self,
        progress: &mut Progress<'_>,
        interpreter: &Interpreter,
        stage: &Stage,
        cwd: PathBuf,
        token: &str,
    ) -> Result<Spawned, String> {
        progress.setting.cwd = Some(cwd.clone());
        match self.spawn(progress, interpreter, stage, &cwd, token) {
            Err(NotSpawned::NoDirectory(why)) if cwd != stage.path() => {
                progress.note_other_directory(&why);
                let staging = stage.path().to_path_buf();
                self.spawn_somewhere(progress, interpreter, stage, staging, token)
            }
            Err(NotSpawned::NoDirectory(why) | NotSpawned::Other(why)) => Err(why),
            Ok(spawned) => Ok(spawned),
        }
    }

    fn spawn(
        &self,
        progress: &mut Progress<'_>,
        interpreter: &Interpreter,
        stage: &Stage,
        cwd: &Path,
        token: &str,
    ) -> Result<Spawned, NotSpawned> {
        let run = progress.run;
        let pipe =
            || fd::pipe().map_err(|e| format!("cannot make a pipe for the script's output: {e}"));
        let (stdout, child_stdout) = pipe()?;
        let (stderr, child_stderr) = pipe()?;
        for end in [&stdout, &stderr] {
            fd::set_nonblocking(std::os::fd::AsRawFd::as_raw_fd(end))
                .map_err(|e| format!("cannot prepare a pipe: {e}"))?;
        }
        let place = Place {
            stage: stage.path(),
            cwd,
            interpreter,
        };
        let isolation = isolation::prepare(&run.plan.config.isolation, &place).map_err(|e| {
            progress.setting.isolation = e.report.map(|report| report.to_json());
            e.message
        })?;
        let leash = Leash::new().map_err(|e| format!("cannot make the leash: {e}"))?;
        let marker = format!("PTC_RUN={token:.16}");
        let command = Command {
            program: path_cstring(&interpreter.executable)?,
            argv: vec![
                path_cstring(&interpreter.executable)?,
                path_cstring(&stage.script())?,
            ],
            envp: self.environment(run, stage, cwd, token, &leash)?,
            cwd: path_cstring(cwd)?,
            stdin: None,
            stdout: child_stdout,
            stderr: child_stderr,
            leash: Some(leash),
            tag: Some(Tag::new(self.engine_tag, run.id)),
            limits: isolation.limits,
            confine: isolation.confine,
            #[cfg(test)]
            fault: None,
        };
        let child = spawn::spawn(command).map_err(|e| match e.step() {
            Step::Directory => NotSpawned::NoDirectory(e.message().to_string()),
            step => {
                // Elsewhere it is not the interpreter's fault.
                if step == Step::Exec {
                    self.interpreters.forget(interpreter);
                }
                let executable = interpreter.executable.display();
                format!("cannot start {executable}: {}", e.message()).into()
            }
        })?;
        let report = isolation.report.with(child.confinement());
        progress.setting.isolation = Some(report.to_json());
        Ok(Spawned {
            child,
            stdout,
            stderr,
            marker,
        })
    }

    fn environment(
        &self,
        run: &Inner,
        stage: &Stage,
        cwd: &Path,
        token: &str,
        leash: &Leash,
    ) -> Result<Vec<CString>, String> {
        let boot = Boot {
            module: &run.plan.config.module_name,
            import_dir: (run.plan.options.mode == Mode::Project).then_some(cwd),
            watch_leash: leash.descriptor_in_child().is_some(),
            check: self.worth_checking(run),
            tell_status: !child::keeps_statuses(),
            only_check: run.plan.only_check,
        };
        let mut own: Vec<(&str, OsString)> = vec![
            ("PTC_BOOT", python::boot_value(boot)),
            ("PTC_RPC_SOCKET", stage.socket().into_os_string()),
            ("PTC_RPC_TOKEN", token.into()),
            ("PTC_RUN", format!("{token:.16}").into()),
            ("PYTHONPATH", self.python_path(run, stage)),
            ("PYTHONUTF8", "1".into()),
            ("PYTHONDONTWRITEBYTECODE", "1".into()),
        ];
        if run.plan.options.tools.is_some() {
            let names: Vec<&str> = run.plan.tools.keys().map(String::as_str).collect();
            own.push(("PTC_TOOLS", names.join(",").into()));
        }
        if is_sandboxed(run) {
            let temporary = stage.temporary().into_os_string();
            own.extend(["TMPDIR", "TMP", "TEMP"].map(|name| (name, temporary.clone())));
        }
        if let Some(fd) = leash.descriptor_in_child() {
            own.push(("PTC_LEASH_FD", fd.to_string().into()));
        }
        let pairs = self
            .environ
            .child_env(&self.passthrough(run), &run.plan.options.env, &own);
        pairs
            .into_iter()
            .map(|(name, value)| {
                let shown = name.to_string_lossy().into_owned();
                let pair = [name.as_bytes(), b"=", value.as_bytes()].concat();
                CString::new(pair)
                    .map_err(|_| format!("the environment variable {shown} contains a NUL byte"))
            })
            .collect()
    }

    /// Whether the script may call a tool that there is not; bytes that are no text are Python's own business.
    fn worth_checking(&self, run: &Inner) -> bool {
        let Ok(code) = std::str::from_utf8(&run.plan.code) else {
            return false;
        };
        let offered = |tool: &&ToolSpec| run.plan.tools.contains_key(&tool.name);
        let tools = run.plan.config.tools.iter().filter(offered);
        let functions: Vec<&str> = tools.map(|tool| tool.function.name.as_str()).collect();
        python::worth_checking(code, &run.plan.config.module_name, &functions, &HELPERS)
    }

    /// The staging directory, then what the user has on PYTHONPATH.
    fn python_path(&self, run: &Inner, stage: &Stage) -> OsString {
        let from_options = run
            .plan
            .options
            .env
            .iter()
            .rev()
            .find(|(name, _)| name == "PYTHONPATH");
        let users = match from_options {
            Some((_, value)) => Some(OsString::from(value)),
            None => self.environ.get("PYTHONPATH").map(OsString::from),
        };
        let mut path = stage.path().as_os_str().as_bytes().to_vec();
        if let Some(users) = users.filter(|u| !u.is_empty()) {
            path.push(b':');
            path.extend_from_slice(users.as_bytes());
        }
        OsString::from_vec(path)
    }
}

fn is_sandboxed(run: &Inner) -> bool {
    run.plan.config.isolation.level == IsolationLevel::Sandbox
}

fn path_cstring(path: &Path) -> Result<CString, String> {
    CString::new(path.as_os_str().as_bytes())
        .map_err(|_| format!("the path {} contains a NUL byte", path.display()))
}

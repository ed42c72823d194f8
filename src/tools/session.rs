//! The built-in tools in one run.
//!
//! Each call is served on a thread of the engine, so that neither the thread that reads requests nor a lent one waits
//! for a command or a disk. When a call ends in whatever way, what still works on it is told to stop; when the run
//! ends, it waits until nothing works on it any more.

use super::{BuiltIns, Context, Failure};
use crate::config::{Mode, RunOptions, TerminalEnv};
use crate::job::Stop;
use crate::json;
use crate::json::reader::Section;
use crate::panic;
use crate::rpc::call::{self, Call};
use std::collections::HashMap;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// See the module.
pub(crate) struct Session {
    shared: Arc<BuiltIns>,
    /// The session's working directory, or why there is none.
    cwd: Result<PathBuf, String>,
    env: Vec<(OsString, OsString)>,
    in_project: bool,
    under_way: Mutex<HashMap<u64, Stop>>,
    one_less: Condvar,
}

impl Session {
    pub(crate) fn new(shared: Arc<BuiltIns>, options: &RunOptions) -> Arc<Session> {
        Arc::new(Session {
            cwd: working_directory(&shared, options),
            env: environment(&shared, options),
            in_project: options.mode == Mode::Project,
            shared,
            under_way: Mutex::default(),
            one_less: Condvar::new(),
        })
    }

    /// Serves `call`, which must be deferred already, on a thread of the engine.
    pub(crate) fn begin(self: &Arc<Self>, call: &Call) {
        let begun = self.enter(call).and_then(|stop| {
            let (session, call) = (Arc::clone(self), call.clone());
            let serve = move || session.serve(&call, &stop);
            let run = self.shared.crew.run("ptc-tool", Box::new(serve));
            run.map_err(|e| e.message().to_string())
        });
        if let Err(why) = begun {
            self.leave(call.id());
            // It is not wanted any more if it cannot be answered.
            let _ = call.fail(&format!("'{}' cannot be run: {why}", call.tool()));
        }
    }

    fn enter(&self, call: &Call) -> Result<Stop, String> {
        let stop = Stop::new().map_err(|e| e.to_string())?;
        self.under_way().insert(call.id(), stop.clone());
        // Its end may have been told before it was entered.
        if !call.is_wanted() {
            stop.pull();
        }
        Ok(stop)
    }

    fn leave(&self, id: u64) {
        self.under_way().remove(&id);
        self.one_less.notify_all();
    }

    fn serve(&self, call: &Call, stop: &Stop) {
        // It may have ended while it waited for a thread, and then nothing is to happen any more.
        if !call.is_wanted() {
            return self.leave(call.id());
        }
        let answer = panic::catch(|| self.answer(call, stop))
            .unwrap_or_else(|panic| Err(panic::complaint(&panic).into()));
        // An answer that comes too late has nobody to go to.
        let _ = match answer {
            Ok(result) => call.reply(&result),
            Err(failure) => {
                call::fail_with(call.id(), &failure.message, failure.details.as_deref())
            }
        };
        self.leave(call.id());
    }

    fn answer(&self, call: &Call, stop: &Stop) -> super::Answer {
        let arguments = json::parse(call.args())
            .map_err(|e| format!("{}: the arguments cannot be read: {e}", call.tool()))?;
        let arguments = Section::new(call.tool(), &arguments)?;
        let context = Context {
            call,
            config: &self.shared.config,
            cwd: self.cwd.as_ref().map_err(|why| Failure::from(&**why))?,
            env: &self.env,
            environ: &self.shared.environ,
            interpreter: &|| self.interpreter(),
            stop,
            engine_tag: self.shared.engine_tag,
        };
        super::serve(&context, &arguments)
    }

    fn interpreter(&self) -> Option<PathBuf> {
        let shared = &self.shared;
        let setting = shared.config.python.as_deref();
        let found = shared
            .interpreters
            .find(self.in_project, setting, &shared.environ);
        found.ok().map(|interpreter| interpreter.executable.clone())
    }

    /// To be told of every call that has ended, so that nobody goes on working on it.
    pub(crate) fn call_ended(&self, id: u64) {
        if let Some(stop) = self.under_way().get(&id) {
            stop.pull();
        }
    }

    /// Waits until nothing works on this run any more, at most `patience`. How many calls are still worked on.
    pub(crate) fn wait_until_idle(&self, patience: Duration) -> usize {
        let deadline = Instant::now() + patience;
        let mut under_way = self.under_way();
        while !under_way.is_empty() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            let waited = self.one_less.wait_timeout(under_way, left);
            under_way = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        under_way.len()
    }

    fn under_way(&self) -> MutexGuard<'_, HashMap<u64, Stop>> {
        self.under_way
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The environment may hold secrets.
        f.debug_struct("Session")
            .field("cwd", &self.cwd)
            .finish_non_exhaustive()
    }
}

/// The run's, the session's, the host's; in strict mode as well, since a script's temporary directory is no place to
/// look for its files.
fn working_directory(shared: &BuiltIns, options: &RunOptions) -> Result<PathBuf, String> {
    let configured = options.cwd.clone().or_else(|| shared.config.cwd.clone());
    match configured {
        Some(dir) => Ok(dir),
        None => std::env::current_dir()
            .map_err(|e| format!("the host's working directory is gone ({e}); set terminal.cwd")),
    }
}

fn environment(shared: &BuiltIns, options: &RunOptions) -> Vec<(OsString, OsString)> {
    match shared.config.terminal_env {
        TerminalEnv::Host => shared.environ.all().to_vec(),
        TerminalEnv::Scrubbed => {
            let mut passthrough = shared.config.env_passthrough.clone();
            passthrough.extend_from_slice(&options.env_passthrough);
            shared.environ.child_env(&passthrough, &options.env, &[])
        }
    }
}

//! An engine: configuration, tools and host, shared by any number of runs at once.

use crate::config::Config;
use crate::crew::Crew;
use crate::definition::{self, DefinitionContext, DefinitionStats};
use crate::error::{Code, Error, Result};
use crate::host::{Callbacks, Host};
use crate::python::{self, Environ, Interpreters};
use crate::rpc::exchange::ToolRule;
use crate::rpc::switchboard::{Served, Switchboard};
use crate::run::outcome::Outcome;
use crate::run::plan::Plan;
use crate::run::{own_process, CallsGo, Inner as RunInner, Launcher, Run, StopCause, Wiring};
use crate::sys::poller::Generation;
use crate::sys::{self, dir, scan};
use crate::tool::Origin;
use crate::tools::BuiltIns;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

/// How long the directories of hosts that were killed may keep a new engine from being made.
const SWEEP_BUDGET: Duration = Duration::from_millis(500);

/// Runs scripts. Clones are handles to the same engine; every method may be called from any thread, and any number of
/// runs may be under way at once.
///
/// Dropping the last handle closes the engine, waiting for its runs and callbacks; inside a callback that is left to a
/// thread of its own.
#[derive(Debug, Clone)]
pub struct Engine(Arc<Guard>);

#[derive(Debug)]
struct Guard {
    inner: Option<Arc<Inner>>,
    pid: i32,
}

#[derive(Debug)]
struct Inner {
    config: Arc<Config>,
    rules: Arc<BTreeMap<String, ToolRule>>,
    launcher: Arc<Launcher>,
    callbacks: Arc<Callbacks>,
    serving: Serving,
    built_ins: Option<Arc<BuiltIns>>,
    crew: Crew,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    closing: bool,
    runs: Vec<Weak<RunInner>>,
}

/// Who reads requests and makes callbacks.
#[derive(Debug)]
struct Serving {
    dispatches: bool,
    pushes_events: bool,
    is_patient: bool,
    /// With lent threads: each run has a board of its own, served by whoever waits for it.
    pool: Option<Arc<Pool>>,
    /// Reads the requests of runs whose calls are pulled.
    pump: Option<Arc<Pool>>,
}

/// Engine threads that serve one board.
#[derive(Debug)]
struct Pool {
    name: &'static str,
    board: Arc<Switchboard>,
    limit: usize,
    started: AtomicUsize,
    idle: AtomicUsize,
    stopping: AtomicBool,
}

impl Engine {
    /// Makes an engine from its configuration (a JSON object; empty for all defaults) and its host.
    ///
    /// No interpreter is looked for yet: that happens at the first run and is reported in its result.
    ///
    /// # Errors
    /// [`Code::Config`] naming the JSON path of what is wrong; [`Code::Unsupported`] where scripts cannot run at all;
    /// [`Code::Io`] when the operating system refuses what the engine needs.
    pub fn new(config: &str, host: Host) -> Result<Engine> {
        if !sys::supported() {
            let message = "ptc cannot run scripts on this platform; call the tools one by one";
            return Err(Error::new(Code::Unsupported, message));
        }
        let config = Config::parse(config)?;
        let inner = Inner::new(config, host)?;
        Ok(Engine(Arc::new(Guard {
            inner: Some(Arc::new(inner)),
            pid: sys::host::pid(),
        })))
    }

    /// Starts `code` and returns at once. `options` is a JSON object (empty for none).
    ///
    /// # Errors
    /// [`Code::InvalidArgument`] for code that cannot be a script, [`Code::Config`] for bad options, [`Code::State`]
    /// when the engine is closed, [`Code::Io`] when there is no thread or descriptor left. Whatever goes wrong later is
    /// in the run's result.
    pub fn start(&self, code: impl AsRef<[u8]>, options: &str) -> Result<Run> {
        self.start_with(code, options, 0)
    }

    /// As [`Engine::start`], with a value that every call of this run carries ([`Call::context`](crate::Call::context)).
    pub fn start_with(&self, code: impl AsRef<[u8]>, options: &str, context: usize) -> Result<Run> {
        self.own()?.start(code.as_ref(), options, context, true)
    }

    /// Runs `code` to its end and returns the result. With a host that lends its threads, callbacks run on this one.
    ///
    /// # Errors
    /// As [`Engine::start`].
    pub fn execute(&self, code: impl AsRef<[u8]>, options: &str) -> Result<Arc<Outcome>> {
        self.execute_with(code, options, 0)
    }

    /// As [`Engine::execute`], with a context for this run's calls.
    pub fn execute_with(
        &self,
        code: impl AsRef<[u8]>,
        options: &str,
        context: usize,
    ) -> Result<Arc<Outcome>> {
        self.start_unpulled(code.as_ref(), options, context)?
            .wait_to_the_end()
    }

    /// As [`Engine::start_with`], for a run whose handle nobody gets: calls that would have to be pulled fail.
    pub(crate) fn start_unpulled(&self, code: &[u8], options: &str, context: usize) -> Result<Run> {
        self.own()?.start(code, options, context, false)
    }

    /// Looks at `code` as it is looked at before it runs, with the interpreter that would run it, and runs nothing of it.
    /// The outcome is a success or says why the script would not run.
    pub(crate) fn check(&self, code: &[u8], options: &str) -> Result<Arc<Outcome>> {
        let inner = self.own()?;
        let mut plan = Plan::new(&inner.config, &inner.rules, code, options, 0)?;
        plan.only_check = true;
        inner.launch(plan, false)?.wait_to_the_end()
    }

    /// The definition of the `execute_code` tool to show the model: `anthropic`, `openai`, `mcp` or `text`.
    ///
    /// # Errors
    /// [`Code::InvalidArgument`] for another format.
    pub fn definition(&self, format: &str) -> Result<String> {
        self.own()?.definition(format)
    }

    /// How large that definition is, and how many tools it shows.
    ///
    /// # Errors
    /// As [`Engine::definition`].
    pub fn definition_stats(&self, format: &str) -> Result<DefinitionStats> {
        definition::stats(format, &DefinitionContext::of(&self.own()?.config))
    }

    /// Cancels the runs and waits, at most `timeout` (`None`: without limit), until they have ended and no callback is
    /// under way. After `Ok` no callback comes any more and the host is dropped. Closing a closed engine is fine.
    ///
    /// # Errors
    /// [`Code::State`] inside a callback of this engine, and when the time was not enough (the engine then stays closed
    /// to new runs; call it again).
    pub fn close(&self, timeout: Option<Duration>) -> Result<()> {
        self.own()?.close(timeout)
    }

    fn own(&self) -> Result<&Arc<Inner>> {
        own_process(self.0.pid)?;
        let gone = || Error::new(Code::State, "the engine is closed");
        self.0.inner.as_ref().ok_or_else(gone)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let Some(inner) = self.inner.take() else {
            return;
        };
        if self.pid != sys::host::pid() {
            // Its locks and threads stayed in the parent: forgetting is all that is safe.
            std::mem::forget(inner);
            return;
        }
        if !inner.callbacks.is_inside() {
            // Without a limit there is nothing that could go wrong.
            let _ = inner.close(None);
            return;
        }
        let closing = Arc::clone(&inner);
        let close = move || drop(closing.close(None));
        if sys::thread::spawn_blocked("ptc-close", close).is_err() {
            // No thread can be had: refuse further runs and let those that are under way end by themselves.
            inner.refuse_and_cancel();
        }
    }
}

impl Inner {
    fn new(config: Config, host: Host) -> Result<Inner> {
        let io_error =
            |what: &str, e: std::io::Error| Error::new(Code::Io, format!("cannot {what}: {e}"));
        let environ = Arc::new(Environ::capture());
        let config = Arc::new(config);
        let crew = Crew::default();
        let parents = dir::candidates();
        for parent in &parents {
            // A parent that cannot be looked at has nothing of ours that could be removed.
            let _ = dir::sweep_stale(parent, dir::PREFIX, SWEEP_BUDGET);
        }
        // Nobody has promised more than to try: what is left may be another user's.
        let _ = scan::sweep_orphans(sys::poll::deadline_after(SWEEP_BUDGET));
        let module_source = python::module_source(&config);
        let serving =
            Serving::new(&host).map_err(|e| io_error("make a descriptor for tool calls", e))?;
        let rules = config.tools.iter().map(|tool| {
            let rule = ToolRule {
                parallel: tool.parallel,
                built_in: tool.origin == Origin::BuiltIn,
            };
            (tool.name.clone(), rule)
        });
        let rules: BTreeMap<String, ToolRule> = rules.collect();
        let interpreters = Arc::new(
            Interpreters::new(module_source.clone(), parents.clone()).at(config.isolation.level),
        );
        let built_ins = rules.values().any(|rule| rule.built_in).then(|| {
            Arc::new(BuiltIns {
                config: Arc::clone(&config),
                environ: Arc::clone(&environ),
                interpreters: Arc::clone(&interpreters),
                crew: crew.clone(),
                engine_tag: scan::engine_tag(),
            })
        });
        Ok(Inner {
            rules: Arc::new(rules),
            config,
            built_ins,
            launcher: Arc::new(Launcher {
                environ,
                interpreters,
                module_source,
                parents,
                engine_tag: scan::engine_tag(),
            }),
            callbacks: Arc::new(Callbacks::new(host)),
            serving,
            crew,
            state: Mutex::default(),
        })
    }

    fn start(
        self: &Arc<Self>,
        code: &[u8],
        options: &str,
        context: usize,
        can_pull: bool,
    ) -> Result<Run> {
        let plan = Plan::new(&self.config, &self.rules, code, options, context)?;
        self.launch(plan, can_pull)
    }

    fn launch(self: &Arc<Self>, plan: Plan, can_pull: bool) -> Result<Run> {
        let run = RunInner::new(plan, self.wiring(can_pull)?)?;
        {
            let mut state = self.state();
            if state.closing {
                return Err(Error::new(Code::State, "the engine is closed"));
            }
            state.runs.retain(|run| run.strong_count() > 0);
            state.runs.push(Arc::downgrade(&run));
        }
        let handle = Run::new(Arc::clone(&run));
        let launcher = Arc::clone(&self.launcher);
        self.crew
            .run("ptc-run", Box::new(move || run.execute(&launcher)))?;
        Ok(handle)
    }

    /// `can_pull`: the caller gets a handle, so it can take calls out of the queue.
    fn wiring(self: &Arc<Self>, can_pull: bool) -> Result<Wiring> {
        let serving = &self.serving;
        let lent = match &serving.pool {
            Some(pool) => {
                self.staff(pool)?;
                None
            }
            None if serving.dispatches || serving.pushes_events => {
                Some(Switchboard::new().map_err(no_board)?)
            }
            None => None,
        };
        if let Some(pump) = &serving.pump {
            self.staff(pump)?;
        }
        let callback_board = lent
            .as_ref()
            .or(serving.pool.as_ref().map(|pool| &pool.board));
        let call_board = serving
            .pump
            .as_ref()
            .map(|pump| &pump.board)
            .or(callback_board);
        Ok(Wiring {
            callbacks: Arc::clone(&self.callbacks),
            calls: Arc::clone(
                call_board.ok_or_else(|| Error::new(Code::State, "the engine has no threads"))?,
            ),
            pushes: callback_board.filter(|_| serving.pushes_events).cloned(),
            lent,
            built_ins: self.built_ins.clone(),
            is_patient: serving.is_patient,
            calls_go: match (serving.dispatches, can_pull) {
                (true, _) => CallsGo::ToDispatch,
                (false, true) => CallsGo::ToQueue,
                (false, false) => CallsGo::Nowhere,
            },
        })
    }

    /// Makes sure that somebody serves the board; more threads follow when all are busy.
    fn staff(self: &Arc<Self>, pool: &Arc<Pool>) -> Result<()> {
        if pool.started.load(Ordering::Acquire) == 0 {
            self.hire(pool)?;
        }
        Ok(())
    }

    fn hire(self: &Arc<Self>, pool: &Arc<Pool>) -> Result<()> {
        let take_place = |n: usize| (n < pool.limit).then_some(n + 1);
        if pool
            .started
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, take_place)
            .is_err()
        {
            return Ok(());
        }
        pool.idle.fetch_add(1, Ordering::AcqRel);
        let (engine, served) = (Arc::downgrade(self), Arc::clone(pool));
        let hired = self
            .crew
            .run(pool.name, Box::new(move || served.serve(&engine)));
        if hired.is_err() {
            pool.idle.fetch_sub(1, Ordering::AcqRel);
            pool.started.fetch_sub(1, Ordering::AcqRel);
        }
        hired
    }

    fn definition(&self, format: &str) -> Result<String> {
        definition::definition(format, &DefinitionContext::of(&self.config))
    }

    fn refuse_and_cancel(&self) -> Vec<Arc<RunInner>> {
        let mut state = self.state();
        state.closing = true;
        let runs: Vec<Arc<RunInner>> = state.runs.iter().filter_map(Weak::upgrade).collect();
        drop(state);
        for run in &runs {
            run.stop(StopCause::Cancelled(Some("the engine was closed".into())));
        }
        runs
    }

    fn close(&self, timeout: Option<Duration>) -> Result<()> {
        if self.callbacks.is_inside() {
            let message = "a callback cannot close its own engine: return from it first";
            return Err(Error::new(Code::State, message));
        }
        let deadline = timeout.and_then(sys::poll::deadline_after);
        let runs = self.refuse_and_cancel();
        let unsettled = runs
            .iter()
            .filter(|run| !run.wait_settled(deadline))
            .count();
        if unsettled > 0 {
            let message = format!("{unsettled} runs have not ended yet; close again");
            return Err(Error::new(Code::State, message));
        }
        drop(runs);
        self.callbacks.close(deadline)?;
        self.serving.stop();
        self.crew.dismiss();
        dir::retry_removals(&self.launcher.parents, dir::PREFIX);
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn no_board(e: std::io::Error) -> Error {
    Error::new(
        Code::Io,
        format!("cannot make a descriptor for tool calls: {e}"),
    )
}

impl Serving {
    fn new(host: &Host) -> std::io::Result<Serving> {
        let dispatches = host.dispatch.is_some();
        let pushes_events = host.on_event.is_some();
        let has_callbacks = dispatches || pushes_events;
        let pool = |wanted: bool, name, limit| wanted.then(|| Pool::new(name, limit)).transpose();
        Ok(Serving {
            dispatches,
            pushes_events,
            is_patient: host.is_patient,
            pool: pool(has_callbacks && host.threads > 0, "ptc-call", host.threads)?,
            pump: pool(!dispatches, "ptc-pump", 1)?,
        })
    }

    fn stop(&self) {
        for pool in self.pool.iter().chain(&self.pump) {
            pool.stopping.store(true, Ordering::Release);
            pool.board.wake_all();
        }
    }
}

impl Pool {
    fn new(name: &'static str, limit: usize) -> std::io::Result<Arc<Pool>> {
        Ok(Arc::new(Pool {
            name,
            board: Switchboard::new()?,
            limit,
            started: AtomicUsize::new(0),
            idle: AtomicUsize::new(0),
            stopping: AtomicBool::new(false),
        }))
    }

    /// The life of a serving thread. Before it gets busy it sees to it that somebody else waits meanwhile.
    fn serve(self: &Arc<Self>, engine: &Weak<Inner>) {
        let busy = || {
            if self.idle.fetch_sub(1, Ordering::AcqRel) == 1 {
                if let Some(engine) = engine.upgrade() {
                    // Without another thread calls are served one after the other, which is slower and nothing worse.
                    let _ = engine.hire(self);
                }
            }
        };
        let mut seen = Generation::default();
        while !self.stopping.load(Ordering::Acquire) {
            match self.board.serve_one(&mut seen, None, busy) {
                Ok(Served::Something) => drop(self.idle.fetch_add(1, Ordering::AcqRel)),
                Ok(Served::Nothing) => {}
                // The board's own descriptors are gone: nothing can be served any more.
                Err(_) => return,
            }
        }
    }
}

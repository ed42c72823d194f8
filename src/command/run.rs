//! `ptc run`: one script, its output as it comes, its tools from the command line.

use super::live::{self, Live};
use super::setup::{self, option};
use super::tools::{CommandTools, Serving};
use super::trace::{CallEnd, Trace};
use super::Refusal::{self, Failure, Usage};
use super::{args, print, say, status, unwritten, write_now, Command};
use crate::json::{self, Value};
use crate::sys::interrupt::on_interrupt;
use crate::{Engine, Event, EventKind, Host, Outcome, Run, Status};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

pub(super) const COMMAND: Command = Command {
    name: "run",
    usage: "ptc run SCRIPT.py [OPTIONS]",
    purpose: "run a script, which calls the tools that are given",
    help: HELP,
    run,
};

const HELP: &str = concat!(
    "\
ptc run: runs a Python script, serves its tool calls, prints what it prints

usage: ptc run SCRIPT.py [OPTIONS]     (SCRIPT.py may be - for standard input)

",
    setup::options_help!(),
    "  --isolation none|guard|sandbox
                           how far the script is kept from the rest of the machine, default guard
  --timeout SECONDS        wall time, default 300
  --max-tool-calls N       default 50
  --trace FILE             write the run's timeline as Chrome trace events, to be opened in https://ui.perfetto.dev
  --json                   print the whole result as one line of JSON instead of the output

With a terminal on standard error a line tells how the run is getting on; TERM=dumb has none, NO_COLOR takes its colour.

exit status: 0 success, 1 error, 124 timeout, 130 interrupted (Ctrl-C cancels; twice: at once), 2 bad usage
"
);

/// Runs the script that `arguments` name; returns the exit status.
fn run(arguments: Vec<String>) -> Result<u8, Refusal> {
    let own = [
        option("--isolation", Some("none|guard|sandbox")),
        option("--timeout", Some("SECONDS")),
        option("--max-tool-calls", Some("N")),
        option("--trace", Some("FILE")),
    ];
    let given = args::parse(arguments, &[&setup::OPTIONS[..], &own].concat())?;
    if setup::wants_help(&given) {
        return print(HELP);
    }
    let (tools, config) = setup::engine_parts(&given)?;
    let options = setup::options(&given)?;
    let code = setup::script(&given, "run")?;
    let interrupts = Interrupts::install()?;
    let engine = Engine::new(&config.to_string(), Host::new().patient())?;
    let trace = given.one("--trace").map(|path| {
        let script = setup::script_path(&given, "run")?;
        Trace::create(path, script).map_err(|e| Usage(format!("cannot write {path}: {e}")))
    });
    let mut watch = Watch {
        live: Live::new(),
        trace: trace.transpose()?,
    };
    let run = engine.start(code, &options)?;
    interrupts.attach(&run);
    let show = !given.has("--json");
    let unwritten_output = follow(&run, &tools, show, &mut watch)?;
    let outcome = run
        .wait(None)?
        .ok_or_else(|| Failure("the run has no end".into()))?;
    let untraced = watch.finish(&outcome);
    let status = match (unwritten_output, show) {
        (Some(e), _) => unwritten(&e),
        (None, true) => conclude(&outcome),
        (None, false) => print_json(&outcome),
    };
    if let Err(e) = untraced {
        say(&format!("cannot write the trace: {e}"));
        return Ok(status.max(status::ERROR));
    }
    Ok(status)
}

/// Serves calls and passes output on until the run has ended; returns why output could not be passed on.
fn follow(
    run: &Run,
    tools: &Arc<CommandTools>,
    show: bool,
    watch: &mut Watch,
) -> Result<Option<io::Error>, Refusal> {
    let mut serving = Serving::new(tools);
    let mut problem = None;
    loop {
        let tick = watch.live.tick();
        let Some(event) = run.next_event(tick)? else {
            if tick.is_none() {
                break;
            }
            watch.live.refresh();
            continue;
        };
        // Before its answer can be under way.
        watch.see(&event);
        let written = match event.kind() {
            EventKind::Stdout if show => write_now(&mut io::stdout().lock(), event.data()),
            EventKind::Stderr if show => write_now(&mut io::stderr().lock(), event.data()),
            _ => Ok(()),
        };
        if let (Err(e), None) = (written, &problem) {
            problem = Some(e);
            run.cancel(Some("the output could not be written"));
        }
        match event.kind() {
            EventKind::Call => event.call().into_iter().for_each(|c| serving.serve(c)),
            EventKind::CallEnd => serving.stop_unwanted(),
            EventKind::Stdout | EventKind::Stderr if show => {
                watch
                    .live
                    .wrote(event.kind() == EventKind::Stdout, event.data());
            }
            EventKind::End => break,
            _ => {}
        }
        watch.live.refresh();
    }
    Ok(problem)
}

/// Those who look on while the script runs.
struct Watch {
    live: Live,
    trace: Option<Trace>,
}

impl Watch {
    fn see(&mut self, event: &Event) {
        match event.kind() {
            EventKind::Call | EventKind::CallEnd => self.see_call(event),
            _ => {}
        }
        let Some(trace) = &mut self.trace else {
            return;
        };
        match event.kind() {
            EventKind::Started => trace.started(&String::from_utf8_lossy(event.data())),
            EventKind::Stdout => trace.output("stdout", event.data()),
            EventKind::Stderr => trace.output("stderr", event.data()),
            _ => {}
        }
    }

    fn see_call(&mut self, event: &Event) {
        let entry = String::from_utf8_lossy(event.data());
        let Ok(about) = json::parse(&entry) else {
            return;
        };
        let text = |key: &str| about.get(key).and_then(Value::as_str).unwrap_or_default();
        let number = |key: &str| match about.get(key) {
            Some(Value::Number(digits)) => digits.as_str(),
            _ => "0",
        };
        let id = number("id").parse().unwrap_or_default();
        if event.kind() == EventKind::Call {
            self.live.call_began(id, text("tool"));
            self.trace.iter_mut().for_each(|t| t.call_began(id));
            return;
        }
        let state = text("state");
        self.live
            .call_ended(id, matches!(state, "answered" | "failed"));
        if let Some(trace) = &mut self.trace {
            trace.call_ended(&CallEnd {
                id,
                tool: text("tool"),
                state,
                seconds: number("duration_seconds").parse().unwrap_or_default(),
                entry: &entry,
            });
        }
    }

    fn finish(self, outcome: &Outcome) -> io::Result<()> {
        self.trace.map_or(Ok(()), |trace| trace.finish(outcome))
    }
}

/// Says what the script's own output does not, and translates the status.
fn conclude(outcome: &Outcome) -> u8 {
    // A traceback has been shown as it came.
    let is_said = match outcome.status() {
        Status::Success => true,
        Status::Error => outcome.is_exit(),
        Status::Timeout | Status::Interrupted => false,
    };
    if let (Some(error), false) = (outcome.error(), is_said) {
        say(error);
    }
    if let Some(hint) = outcome.hint() {
        say(&format!("hint: {hint}"));
    }
    exit_status(outcome)
}

fn print_json(outcome: &Outcome) -> u8 {
    let line = format!("{}\n", outcome.json());
    match write_now(&mut io::stdout().lock(), line.as_bytes()) {
        Err(e) => unwritten(&e),
        Ok(()) => exit_status(outcome),
    }
}

fn exit_status(outcome: &Outcome) -> u8 {
    match outcome.status() {
        Status::Success => status::SUCCESS,
        Status::Error => status::ERROR,
        Status::Timeout => status::TIMEOUT,
        Status::Interrupted => status::INTERRUPTED,
    }
}

/// Ctrl-C: the first one cancels the run, the second one ends the command, and with it the kernel ends the script.
#[derive(Clone, Default)]
struct Interrupts {
    run: Arc<Mutex<Option<Run>>>,
    came: Arc<AtomicBool>,
}

impl Interrupts {
    fn install() -> Result<Interrupts, Refusal> {
        let interrupts = Interrupts::default();
        let mine = interrupts.clone();
        on_interrupt(move || mine.interrupt())
            .map_err(|e| Failure(format!("cannot wait for signals: {e}")))?;
        Ok(interrupts)
    }

    fn interrupt(&self) {
        if self.came.swap(true, Ordering::SeqCst) {
            live::erase();
            std::process::exit(status::INTERRUPTED.into());
        }
        if let Some(run) = &*self.run.lock().unwrap_or_else(PoisonError::into_inner) {
            run.cancel(None);
        }
    }

    fn attach(&self, run: &Run) {
        *self.run.lock().unwrap_or_else(PoisonError::into_inner) = Some(run.clone());
        if self.came.load(Ordering::SeqCst) {
            run.cancel(None);
        }
    }
}

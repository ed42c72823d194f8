//! `ptc run`: one script, its output as it comes, its tools from the command line.

use super::args::{self, Given, Known};
use super::tools::{CommandTools, Serving};
use super::Refusal::{self, Failure, Usage};
use super::{print, say, status, unwritten, write_now, HELP};
use crate::json::{self, ObjectWriter, Value};
use crate::sys::interrupt::on_interrupt;
use crate::{Engine, EventKind, Host, Outcome, Run, Status};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

const OPTIONS: [Known; 10] = [
    option("--tool", Some("NAME=COMMAND")),
    option("--config", Some("FILE.json")),
    option("--mode", Some("project|strict")),
    option("--cwd", Some("DIRECTORY")),
    option("--python", Some("PATH")),
    option("--timeout", Some("SECONDS")),
    option("--max-tool-calls", Some("N")),
    option("--json", None),
    option("--help", None),
    option("-h", None),
];

const fn option(name: &'static str, value: Option<&'static str>) -> Known {
    Known { name, value }
}

/// Runs the script that `arguments` name; returns the exit status.
pub(super) fn run(arguments: Vec<String>) -> Result<u8, Refusal> {
    let given = args::parse(arguments, &OPTIONS)?;
    if given.has("--help") || given.has("-h") {
        return print(HELP);
    }
    let tools = Arc::new(CommandTools::parse(given.all("--tool"), cwd(&given)?)?);
    let options = options(&given)?;
    let config = configuration(&given, &tools)?;
    let code = script(&given.operands)?;
    let interrupts = Interrupts::install()?;
    let engine = Engine::new(&config, Host::new().patient())?;
    let run = engine.start(code, &options)?;
    interrupts.attach(&run);
    let show = !given.has("--json");
    let unwritten_output = follow(&run, &tools, show)?;
    let outcome = run
        .wait(None)?
        .ok_or_else(|| Failure("the run has no end".into()))?;
    Ok(match (unwritten_output, show) {
        (Some(e), _) => unwritten(&e),
        (None, true) => conclude(&outcome),
        (None, false) => print_json(&outcome),
    })
}

/// Where the tools run, and the script unless its mode or the configuration say otherwise.
fn cwd(given: &Given) -> Result<PathBuf, Refusal> {
    match given.one("--cwd") {
        // Elsewhere, which is where the engine would fall back to, is not what the caller wants.
        Some(dir) if !Path::new(dir).is_dir() => Err(Usage(format!(
            "--cwd expects a directory, and {dir:?} is none"
        ))),
        Some(dir) => Ok(dir.into()),
        None => Ok(std::env::current_dir().unwrap_or_else(|_| "/".into())),
    }
}

/// The text of the one script.
fn script(operands: &[String]) -> Result<Vec<u8>, Refusal> {
    let path = match operands {
        [path] => path,
        [] => {
            return Err(Usage(
                "say which script to run: `ptc run SCRIPT.py`, or - for standard input".into(),
            ))
        }
        [_, further, ..] => {
            let message = format!(
                "only one script can be run, and scripts take no arguments; what is {further:?}?"
            );
            return Err(Usage(message));
        }
    };
    let mut code = Vec::new();
    let read = match path.as_str() {
        "-" => io::stdin().read_to_end(&mut code).map(drop),
        path => std::fs::read(path).map(|bytes| code = bytes),
    };
    read.map_err(|e| Usage(format!("cannot read {path}: {e}")))?;
    Ok(code)
}

/// The configuration file with the command's own tools and interpreter in it.
fn configuration(given: &Given, tools: &CommandTools) -> Result<String, Refusal> {
    let mut config = match given.one("--config") {
        None => Value::Object(Vec::new()),
        Some(path) => {
            let text = std::fs::read_to_string(path)
                .map_err(|e| Usage(format!("cannot read {path}: {e}")))?;
            let text = text.trim_start_matches('\u{feff}');
            json::parse(text).map_err(|e| Usage(format!("{path} is not valid JSON: {e}")))?
        }
    };
    tools.add_to(&mut config)?;
    if let (Value::Object(members), Some(python)) = (&mut config, given.one("--python")) {
        members.retain(|(key, _)| key != "python");
        members.push(("python".into(), Value::String(python.into())));
    }
    Ok(config.to_string())
}

fn options(given: &Given) -> Result<String, Refusal> {
    let mut options = ObjectWriter::default();
    for (option, key) in [("--mode", "mode"), ("--cwd", "cwd")] {
        if let Some(value) = given.one(option) {
            options.string(key, value);
        }
    }
    for (option, key) in [
        ("--timeout", "timeout"),
        ("--max-tool-calls", "max_tool_calls"),
    ] {
        if let Some(value) = given.one(option) {
            let is_number = matches!(json::parse(value), Ok(Value::Number(_)));
            if !is_number {
                return Err(Usage(format!("{option} expects a number, got {value:?}")));
            }
            options.raw(key, value);
        }
    }
    Ok(options.finish())
}

/// Serves calls and passes output on until the run has ended; returns why output could not be passed on.
fn follow(run: &Run, tools: &Arc<CommandTools>, show: bool) -> Result<Option<io::Error>, Refusal> {
    let mut serving = Serving::new(tools);
    let mut problem = None;
    while let Some(event) = run.next_event(None)? {
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
            EventKind::End => break,
            _ => {}
        }
    }
    Ok(problem)
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

//! `ptc run`: one script, its output as it comes, its tools from the command line.

use super::args::{self, Given, Known};
use super::tools::CommandTools;
use super::{status, Usage};
use crate::job::Stop;
use crate::json::{self, ObjectWriter, Value};
use crate::sys::interrupt::on_interrupt;
use crate::{Engine, EventKind, Host, Outcome, Run, Status};
use std::io::{self, Read as _, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

const OPTIONS: [Known; 8] = [
    known("--tool", "NAME=COMMAND"),
    known("--config", "FILE.json"),
    known("--mode", "project|strict"),
    known("--cwd", "DIRECTORY"),
    known("--python", "PATH"),
    known("--timeout", "SECONDS"),
    known("--max-tool-calls", "N"),
    Known {
        name: "--json",
        value: None,
    },
];

const fn known(name: &'static str, value: &'static str) -> Known {
    Known {
        name,
        value: Some(value),
    }
}

/// Runs the script that `arguments` name; returns the exit status.
pub(super) fn run(arguments: Vec<String>) -> Result<u8, Usage> {
    let given = args::parse(arguments, &OPTIONS)?;
    let tools = Arc::new(CommandTools::parse(given.all("--tool"))?);
    let code = script(&given.operands)?;
    let engine = Engine::new(&configuration(&given, &tools)?, Host::new().patient())?;
    let interrupts = Interrupts::install()?;
    let run = engine.start(code, &options(&given)?)?;
    interrupts.attach(&run);
    let show = !given.has("--json");
    let cwd = match given.one("--cwd") {
        Some(dir) => PathBuf::from(dir),
        None => std::env::current_dir().unwrap_or_else(|_| "/".into()),
    };
    let output = follow(&run, &tools, cwd, show)?;
    let outcome = run
        .wait(None)?
        .ok_or_else(|| Usage("the run has no end".into()))?;
    Ok(match (output, show) {
        (Output::ReaderGone, _) => status::ERROR,
        (Output::Read, true) => conclude(&outcome),
        (Output::Read, false) => print_json(&outcome),
    })
}

/// The text of the one script.
fn script(operands: &[String]) -> Result<Vec<u8>, Usage> {
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
fn configuration(given: &Given, tools: &CommandTools) -> Result<String, Usage> {
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

fn options(given: &Given) -> Result<String, Usage> {
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

/// Whether somebody still reads what the script prints.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Output {
    Read,
    ReaderGone,
}

/// Serves calls and passes output on until the run has ended.
fn follow(run: &Run, tools: &Arc<CommandTools>, cwd: PathBuf, show: bool) -> Result<Output, Usage> {
    let stop = Stop::new().map_err(|e| Usage(format!("cannot make a socket pair: {e}")))?;
    let mut serving = Vec::new();
    let mut output = Output::Read;
    while let Some(event) = run.next_event(None)? {
        let written = match event.kind() {
            EventKind::Call => {
                serving.extend(
                    event
                        .call()
                        .and_then(|call| tools.serve(call, cwd.clone(), &stop)),
                );
                Ok(())
            }
            EventKind::Stdout if show => write_now(&mut io::stdout().lock(), event.data()),
            EventKind::Stderr if show => write_now(&mut io::stderr().lock(), event.data()),
            EventKind::End => break,
            _ => Ok(()),
        };
        if written.is_err() && output == Output::Read {
            output = Output::ReaderGone;
            run.cancel(Some("nobody reads the output"));
        }
    }
    stop.pull();
    for thread in serving {
        // It catches its own panics.
        let _ = thread.join();
    }
    Ok(output)
}

fn write_now(stream: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    stream.write_all(bytes)?;
    stream.flush()
}

/// Says what the script's own output does not, and translates the status.
fn conclude(outcome: &Outcome) -> u8 {
    let (exit, speaks_for_itself) = match outcome.status() {
        Status::Success => (status::SUCCESS, true),
        // A traceback has been shown as it came.
        Status::Error => (status::ERROR, outcome.is_exit()),
        Status::Timeout => (status::TIMEOUT, false),
        Status::Interrupted => (status::INTERRUPTED, false),
    };
    let mut words = Vec::new();
    words.extend(
        outcome
            .error()
            .filter(|_| !speaks_for_itself)
            .map(str::to_string),
    );
    words.extend(outcome.hint().map(|hint| format!("hint: {hint}")));
    for word in words {
        // There is nowhere else to say that standard error is gone.
        let _ = writeln!(io::stderr(), "ptc: {word}");
    }
    exit
}

fn print_json(outcome: &Outcome) -> u8 {
    let line = format!("{}\n", outcome.json());
    match write_now(&mut io::stdout().lock(), line.as_bytes()) {
        Err(_) => status::ERROR,
        Ok(()) => match outcome.status() {
            Status::Success => status::SUCCESS,
            Status::Error => status::ERROR,
            Status::Timeout => status::TIMEOUT,
            Status::Interrupted => status::INTERRUPTED,
        },
    }
}

/// Ctrl-C: the first one cancels the run, the second one ends the command, and with it the kernel ends the script.
#[derive(Clone, Default)]
struct Interrupts {
    run: Arc<Mutex<Option<Run>>>,
    came: Arc<AtomicBool>,
}

impl Interrupts {
    fn install() -> Result<Interrupts, Usage> {
        let interrupts = Interrupts::default();
        let mine = interrupts.clone();
        on_interrupt(move || mine.interrupt())
            .map_err(|e| Usage(format!("cannot wait for signals: {e}")))?;
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

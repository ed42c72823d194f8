//! The command `ptc`, in the library so that it can use what hosts have no need to see; the program itself is one line.
//!
//! Nothing but results goes to standard output; what went wrong goes to standard error, with exit status 2 when it was
//! the way in which the command was called.

mod args;
mod run;
mod tools;

use crate::{Code, Error};
use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

const HELP: &str = "\
ptc: runs a model's Python script, serves its tool calls, prints what the script printed

usage: ptc run SCRIPT.py [OPTIONS]     (SCRIPT.py may be - for standard input)
       ptc --help | --version

options of `ptc run`:
  --tool NAME=COMMAND      serve the tool NAME with a shell command: it gets the arguments as JSON on standard input
                           and prints the result as JSON (anything else is text); a non-zero exit is a failed call.
                           Repeatable.
  --config FILE.json       configuration: timeouts, limits, tool specifications (see the README)
  --mode project|strict    in the working directory with the active virtual environment, or in a directory of its own
  --cwd DIRECTORY          working directory of the script
  --python PATH            interpreter to use instead of the first python3 on PATH
  --timeout SECONDS        wall time, default 300
  --max-tool-calls N       default 50
  --json                   print the whole result as one line of JSON instead of the output

exit status: 0 success, 1 error, 124 timeout, 130 interrupted (Ctrl-C cancels; twice: at once), 2 bad usage
";

/// Exit statuses of the command.
mod status {
    pub(super) const SUCCESS: u8 = 0;
    pub(super) const ERROR: u8 = 1;
    pub(super) const USAGE: u8 = 2;
    pub(super) const TIMEOUT: u8 = 124;
    pub(super) const INTERRUPTED: u8 = 130;
}

/// Why a command has no result.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// It was called in the wrong way.
    Usage(String),
    /// It could not do what was asked.
    Failure(String),
}
use Refusal::{Failure, Usage};

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        let message = error.message().to_string();
        match error.code() {
            Code::Config => Usage(message),
            _ => Failure(message),
        }
    }
}

/// Runs the command with this process's arguments.
#[doc(hidden)]
pub fn main() -> ExitCode {
    let arguments = std::env::args_os().skip(1).collect();
    match dispatch(arguments) {
        Ok(status) => status.into(),
        Err(Failure(message)) => {
            say(&message);
            status::ERROR.into()
        }
        Err(Usage(message)) => {
            say(&format!("{message}\n`ptc --help` says how it is used."));
            status::USAGE.into()
        }
    }
}

fn dispatch(arguments: Vec<OsString>) -> Result<u8, Refusal> {
    let mut arguments = args::texts(arguments)?.into_iter();
    let wanted = arguments.next();
    let rest = arguments.collect();
    match wanted.as_deref() {
        None => Err(Usage("say what to do: `ptc run SCRIPT.py`".into())),
        Some("--help" | "-h" | "help") => print(HELP),
        Some("--version" | "-V") => print(concat!("ptc ", env!("CARGO_PKG_VERSION"), "\n")),
        Some("run") => run::run(rest),
        Some(other) => {
            let hint = crate::suggest::did_you_mean(other, ["run", "--help", "--version"]);
            Err(Usage(format!("there is no command {other:?}{hint}")))
        }
    }
}

/// Prints a result.
fn print(text: &str) -> Result<u8, Refusal> {
    match write_now(&mut io::stdout().lock(), text.as_bytes()) {
        Ok(()) => Ok(status::SUCCESS),
        Err(e) => Ok(unwritten(&e)),
    }
}

fn write_now(stream: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    stream.write_all(bytes)?;
    stream.flush()
}

/// The exit status when output could not be written. A reader that has gone away has seen what it wanted to see.
fn unwritten(error: &io::Error) -> u8 {
    if error.kind() != io::ErrorKind::BrokenPipe {
        say(&format!("cannot write the output: {error}"));
    }
    status::ERROR
}

/// Says on standard error what is no result.
fn say(message: &str) {
    // There is nowhere else to say that standard error is gone.
    let _ = writeln!(io::stderr(), "ptc: {message}");
}

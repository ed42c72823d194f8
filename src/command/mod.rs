//! The command `ptc`, in the library so that it can use what hosts have no need to see; the program itself is one line.
//!
//! Nothing but results goes to standard output; what went wrong goes to standard error, with exit status 2 when it was
//! the way in which the command was called.

mod args;
mod check;
mod definition;
mod doctor;
mod live;
mod mcp;
mod run;
mod setup;
mod tools;
mod trace;

use crate::suggest::did_you_mean;
use crate::{Code, Error};
use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

/// One thing that the program does: `ptc NAME`.
struct Command {
    name: &'static str,
    /// How it is called, and what for: a line each in `ptc --help`.
    usage: &'static str,
    purpose: &'static str,
    help: &'static str,
    run: fn(Vec<String>) -> Result<u8, Refusal>,
}

/// All of them, in the order of `ptc --help`.
const COMMANDS: &[Command] = &[
    run::COMMAND,
    check::COMMAND,
    definition::COMMAND,
    doctor::COMMAND,
    mcp::COMMAND,
];

const TITLE: &str =
    "ptc: runs a model's Python script, serves its tool calls, prints what the script printed\n";

const CLOSING: &str = "
`ptc COMMAND --help` has the options of each. Results go to standard output, everything else to standard error.
exit status: 0 success, 1 error, 2 bad usage; `ptc run` also 124 timeout, 130 interrupted
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
    let mut arguments = match args::texts(std::env::args_os().skip(1).collect::<Vec<OsString>>()) {
        Ok(arguments) => arguments.into_iter(),
        Err(refusal) => return refuse(refusal, "ptc").into(),
    };
    let wanted = arguments.next();
    let ended = dispatch(wanted.as_deref(), arguments.collect());
    let of_command = wanted.as_deref().and_then(find);
    let called = of_command.map_or("ptc".into(), |c| format!("ptc {}", c.name));
    ended
        .unwrap_or_else(|refusal| refuse(refusal, &called))
        .into()
}

fn refuse(refusal: Refusal, called: &str) -> u8 {
    match refusal {
        Failure(message) => {
            say(&message);
            status::ERROR
        }
        Usage(message) => {
            say(&format!(
                "{message}\n`{called} --help` says how it is used."
            ));
            status::USAGE
        }
    }
}

fn dispatch(wanted: Option<&str>, rest: Vec<String>) -> Result<u8, Refusal> {
    match wanted {
        None => Err(Usage("say what to do: `ptc run SCRIPT.py`".into())),
        Some("help") => match rest.first() {
            Some(name) => print(find(name).ok_or_else(|| unknown(name))?.help),
            None => print(&overview()),
        },
        Some("--help" | "-h") => print(&overview()),
        Some("--version" | "-V") => print(concat!("ptc ", env!("CARGO_PKG_VERSION"), "\n")),
        Some(name) => (find(name).ok_or_else(|| unknown(name))?.run)(rest),
    }
}

fn find(name: &str) -> Option<&'static Command> {
    COMMANDS.iter().find(|command| command.name == name)
}

fn unknown(name: &str) -> Refusal {
    let others = ["help", "--help", "--version"];
    let known = COMMANDS.iter().map(|command| command.name).chain(others);
    let hint = did_you_mean(name, known);
    Usage(format!("there is no command {name:?}{hint}"))
}

fn overview() -> String {
    let mut text = format!("{TITLE}\n");
    let mut before = "usage: ";
    for command in COMMANDS {
        text += &format!("{before}{:<34} {}\n", command.usage, command.purpose);
        before = "       ";
    }
    text + "       ptc --help | --version\n" + CLOSING
}

/// Prints a result.
fn print(text: &str) -> Result<u8, Refusal> {
    match write_now(&mut io::stdout().lock(), text.as_bytes()) {
        Ok(()) => Ok(status::SUCCESS),
        Err(e) => Ok(unwritten(&e)),
    }
}

fn write_now(stream: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    live::erase();
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
    live::erase();
    // There is nowhere else to say that standard error is gone.
    let _ = writeln!(io::stderr(), "ptc: {message}");
}

//! The command `ptc`, in the library so that it can use what hosts have no need to see; the program itself is one line.
//!
//! Nothing but results goes to standard output; what went wrong goes to standard error, with exit status 2 when it was
//! the way in which the command was called.

mod args;
mod run;
mod tools;

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

/// Why a command ended before it did anything.
#[derive(Debug)]
pub(crate) struct Usage(String);

impl From<crate::Error> for Usage {
    fn from(error: crate::Error) -> Self {
        Usage(error.message().to_string())
    }
}

/// Runs the command with this process's arguments.
#[doc(hidden)]
pub fn main() -> ExitCode {
    let arguments = std::env::args_os().skip(1).collect();
    match dispatch(arguments) {
        Ok(status) => ExitCode::from(status),
        Err(Usage(message)) => {
            eprintln!("ptc: {message}\n`ptc --help` says how it is used.");
            ExitCode::from(status::USAGE)
        }
    }
}

fn dispatch(arguments: Vec<std::ffi::OsString>) -> Result<u8, Usage> {
    let mut arguments = args::texts(arguments)?.into_iter();
    let wanted = arguments.next();
    let rest: Vec<String> = arguments.collect();
    let wants_help = |word: &str| matches!(word, "--help" | "-h" | "help");
    match wanted.as_deref() {
        None => Err(Usage("say what to do: `ptc run SCRIPT.py`".into())),
        Some(word) if wants_help(word) => print(HELP),
        Some("--version" | "-V") => print(concat!("ptc ", env!("CARGO_PKG_VERSION"), "\n")),
        Some("run") if rest.iter().any(|word| wants_help(word)) => print(HELP),
        Some("run") => run::run(rest),
        Some(other) => {
            let hint = crate::suggest::did_you_mean(other, ["run", "--help", "--version"]);
            Err(Usage(format!("there is no command {other:?}{hint}")))
        }
    }
}

/// Prints a result; a reader that has gone away is no error.
fn print(text: &str) -> Result<u8, Usage> {
    use std::io::Write as _;
    match std::io::stdout().write_all(text.as_bytes()) {
        Ok(()) => Ok(status::SUCCESS),
        Err(_) => Ok(status::ERROR),
    }
}

//! The tools that the engine serves itself, for hosts that do not want to write them.
//!
//! | file | what it is for |
//! |---|---|
//! | `session.rs` | the tools in one run: each call on a thread of the engine, ended with the run |
//! | `place.rs` | from the text of a path to a place in the file system, within the configured roots |
//! | `read_file.rs`, `write_file.rs`, … | a tool each: arguments in, a JSON object or a [`Failure`] out |
//!
//! They run in the host's process with the host's rights: what bounds them is `roots`, not the script's isolation. They
//! know nothing of runs and connections; a call is taken here and answered by its number like a host's.

mod patch;
mod place;
mod read_file;
mod search;
mod session;
mod terminal;
mod write_file;

pub(crate) use session::Session;

use crate::config::Config;
use crate::crew::Crew;
use crate::error::Error;
use crate::job::Stop;
use crate::json::reader::Section;
use crate::python::{Environ, Interpreters};
use crate::rpc::call::Call;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What the built-in tools of all runs of an engine share.
#[derive(Debug)]
pub(crate) struct BuiltIns {
    pub(crate) config: Arc<Config>,
    /// The host's environment.
    pub(crate) environ: Arc<Environ>,
    pub(crate) interpreters: Arc<Interpreters>,
    /// Whose threads serve the calls.
    pub(crate) crew: Crew,
    /// Tells the commands of these tools from scripts and from those of other engines.
    pub(crate) engine_tag: u64,
}

/// One call with what its tool may use.
struct Context<'a> {
    call: &'a Call,
    config: &'a Config,
    /// Where relative paths start and commands run.
    cwd: &'a Path,
    /// The environment of commands.
    env: &'a [(OsString, OsString)],
    /// The host's environment.
    environ: &'a Environ,
    /// The interpreter that runs the scripts, if it is still there.
    interpreter: &'a dyn Fn() -> Option<PathBuf>,
    /// Pulled when the call's run is being ended.
    stop: &'a Stop,
    engine_tag: u64,
}

/// What a tool returns: the text of a JSON object.
type Answer = Result<String, Failure>;

/// Why a tool could not do what it was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Failure {
    message: String,
    /// The text of a JSON object whose members help to do better.
    details: Option<String>,
}

impl From<String> for Failure {
    fn from(message: String) -> Self {
        Failure {
            message,
            details: None,
        }
    }
}

impl From<&str> for Failure {
    fn from(message: &str) -> Self {
        message.to_string().into()
    }
}

/// An argument that is wrong; the message names it.
impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        error.message().into()
    }
}

/// Serves one call.
fn serve(context: &Context<'_>, arguments: &Section<'_>) -> Answer {
    match context.call.tool() {
        "read_file" => read_file::read_file(context, arguments),
        "write_file" => write_file::write_file(context, arguments),
        "patch" => patch::patch(context, arguments),
        "search_files" => search::search_files(context, arguments),
        "terminal" => terminal::terminal(context, arguments),
        other => Err(format!("'{other}' is no tool that this engine serves itself").into()),
    }
}

/// A string without which the tool cannot work.
fn required<'a>(arguments: &Section<'a>, name: &str) -> Result<&'a str, Failure> {
    let missing = || Failure::from(format!("{}: missing", arguments.at(name)));
    arguments.string(name)?.ok_or_else(missing)
}

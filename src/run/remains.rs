//! What a run leaves behind: the facts that its result is made of.

use crate::config::Isolation;
use crate::rpc::ledger::{CallState, Counts, Record};
use crate::sys::child::ExitStatus;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// How a run ended; the numbers are those of `enum ptc_status`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub enum Status {
    /// The script ended with exit code 0.
    Success = 0,
    /// Another exit code, a signal, or a script that could not be started.
    Error = 1,
    /// The script ran longer than it may.
    Timeout = 2,
    /// The run was cancelled.
    Interrupted = 3,
}

impl Status {
    /// The name in the result's JSON.
    pub fn name(self) -> &'static str {
        match self {
            Status::Success => "success",
            Status::Error => "error",
            Status::Timeout => "timeout",
            Status::Interrupted => "interrupted",
        }
    }
}

/// Why the script is no longer running.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ending {
    /// It ended by itself.
    Exited(ExitStatus),
    /// It was stopped at its deadline; the number of seconds as configured.
    TimedOut { limit: String },
    /// The host cancelled it.
    Cancelled { reason: Option<String> },
    /// It kept calling tools that it was refused.
    Overrun,
    /// It could not be started.
    Failed { error: String },
}

/// What a run leaves behind, before it is put into words.
#[derive(Debug)]
pub(crate) struct Remains {
    pub ending: Ending,
    /// What the system says of the leader, also of one that was stopped. `None`: there was none.
    pub exit: Option<ExitStatus>,
    /// False: not a line of the script was executed.
    pub started: bool,
    /// What the interpreter said of a script that it did not run.
    pub report: Option<String>,
    /// It ended by an exception that nobody caught.
    pub raised: bool,
    pub duration: Duration,
    pub stdout: Stream,
    pub stderr: Stream,
    pub stdout_path: Option<PathBuf>,
    /// `None`: nobody could look.
    pub survivors: Option<u32>,
    pub calls: Calls,
    pub notes: Vec<String>,
    pub setting: Setting,
}

/// One captured stream.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    pub text: String,
    pub bytes: u64,
    pub truncated: bool,
}

/// A copy of the ledger.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    pub counts: Counts,
    pub omitted: u64,
    pub records: Vec<Arc<Record>>,
}

/// Where and how the script ran.
#[derive(Debug, Default, Clone)]
pub(crate) struct Setting {
    pub mode: &'static str,
    pub module: String,
    pub cwd: Option<PathBuf>,
    pub python: Option<PathBuf>,
    pub tools: Vec<String>,
    /// `requested`, `applied`, `missing` as JSON.
    pub isolation: Option<String>,
    /// The rules that the script ran under, if it was in a sandbox.
    pub sandbox: Option<Isolation>,
}

impl Calls {
    pub(crate) fn unanswered(&self) -> impl Iterator<Item = &Arc<Record>> {
        self.records
            .iter()
            .filter(|r| r.state() == CallState::Unanswered)
    }

    pub(super) fn to_json(&self) -> String {
        let entries: Vec<String> = self.records.iter().map(|r| r.to_json()).collect();
        format!("[{}]", entries.join(","))
    }
}

//! What went wrong while a process was started, in words that say what to do about it.

use std::fmt;
use std::io;

use super::command::Command;
use super::explain;
use crate::sys::confine;

/// The part of a start that failed: first the parent's, then the child's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub(crate) enum Step {
    /// Making pipes and moving descriptors.
    Descriptors = 1,
    /// Opening `/dev/null`.
    DevNull,
    /// Mapping the child's stack.
    Memory,
    /// Creating the process.
    Start,
    /// Getting to know when it ends.
    Watch,
    /// Its own session.
    Session,
    /// Its tie to the host's life.
    Leash,
    /// Its resource limits.
    Limits,
    /// Its working directory.
    Directory,
    /// Its standard streams.
    Streams,
    /// Locking it in.
    Confine,
    /// Closing the host's descriptors.
    Close,
    /// Becoming the program.
    Exec,
}

impl Step {
    const OF_THE_CHILD: [Step; 8] = [
        Step::Session,
        Step::Leash,
        Step::Limits,
        Step::Directory,
        Step::Streams,
        Step::Confine,
        Step::Close,
        Step::Exec,
    ];

    pub(super) fn from_report(number: i32) -> Option<Step> {
        Step::OF_THE_CHILD
            .into_iter()
            .find(|step| *step as i32 == number)
    }
}

/// Why a process could not be started. No process is left behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SpawnError {
    step: Step,
    errno: i32,
    message: String,
}

impl SpawnError {
    /// Which part of the start failed.
    pub(crate) fn step(&self) -> Step {
        self.step
    }

    /// The system's error number; 0 when the child was killed by a signal before it became the program.
    pub(crate) fn errno(&self) -> i32 {
        self.errno
    }

    /// The whole story in one line.
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// A failure in the parent.
    pub(super) fn os(step: Step, error: &io::Error) -> SpawnError {
        let errno = error.raw_os_error().unwrap_or(0);
        let what = match step {
            Step::Descriptors => "cannot make the pipes of a child process",
            Step::DevNull => "cannot open /dev/null for a child process",
            Step::Memory => "cannot map a stack for a child process",
            Step::Watch => "cannot watch the child process",
            _ => "cannot create a child process",
        };
        SpawnError {
            step,
            errno,
            message: format!("{what}: {}", reason(errno, error)),
        }
    }

    /// A failure that the child has reported.
    pub(super) fn reported(command: &Command, step: Step, errno: i32, detail: i32) -> SpawnError {
        let error = io::Error::from_raw_os_error(errno);
        let program = command.program.to_string_lossy();
        let message = match step {
            Step::Exec => explain::exec(command, errno),
            Step::Directory => format!(
                "cannot enter the working directory {}: {error}",
                command.cwd.to_string_lossy()
            ),
            Step::Limits => format!(
                "cannot set the limit {} for {program}: {error}",
                explain::limit(command, detail)
            ),
            Step::Streams => format!("cannot set up descriptor {detail} of {program}: {error}"),
            Step::Confine => format!(
                "cannot confine {program} ({}): {error}",
                confine::measure_name(detail)
            ),
            Step::Session => format!("cannot give {program} a session of its own: {error}"),
            Step::Leash => format!("cannot tie {program} to the life of the host: {error}"),
            _ => format!("cannot start {program} (while closing descriptors): {error}"),
        };
        SpawnError {
            step,
            errno,
            message,
        }
    }

    /// The child died before it could become the program, without a word.
    pub(super) fn killed(command: &Command, step: Step) -> SpawnError {
        let program = command.program.to_string_lossy();
        let message = format!(
            "the child process was killed before it could become {program}, at the step {step:?}"
        );
        SpawnError {
            step,
            errno: 0,
            message,
        }
    }
}

/// The system's words, with what helps for the limits that hosts run into.
fn reason(errno: i32, error: &io::Error) -> String {
    match errno {
        libc::EMFILE => format!("{error}; the host is at its limit of open files (RLIMIT_NOFILE): raise it or run fewer scripts at once"),
        libc::ENFILE => format!("{error}; the whole system is out of open files"),
        libc::EAGAIN => format!("{error}; the limit of processes is reached (RLIMIT_NPROC, or the container's pids limit)"),
        libc::ENOMEM => format!("{error}; the host or its container is out of memory"),
        _ => error.to_string(),
    }
}

impl fmt::Display for SpawnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for SpawnError {}

impl From<SpawnError> for crate::Error {
    fn from(error: SpawnError) -> Self {
        crate::Error::new(crate::Code::Spawn, error.message)
    }
}

//! `terminal`: a shell command in a group of its own, to its end.

use super::{required, Answer, Context, Failure};
use crate::job::{self, End, Job};
use crate::json::reader::{expand_home, Section};
use crate::json::{ObjectWriter, Value};
use crate::sys::child::ExitStatus;
use crate::sys::scan::Tag;
use std::path::PathBuf;
use std::time::Duration;

/// What is kept of the output: the beginning and the end.
const OUTPUT_BYTES: usize = 50_000;
/// From SIGTERM to SIGKILL.
const GRACE: Duration = Duration::from_millis(500);
/// What `timeout` of coreutils returns.
const TIMED_OUT: i32 = 124;
const NOT_STARTED: i32 = -1;
/// What was asked for elsewhere to get a command that goes on behind the script's back.
const BACKGROUND: [&str; 5] = [
    "background",
    "pty",
    "notify",
    "notify_on_complete",
    "watch_patterns",
];

pub(super) fn terminal(context: &Context<'_>, arguments: &Section<'_>) -> Answer {
    refuse_background(arguments)?;
    arguments.only(&["command", "timeout", "workdir"], |_| false)?;
    let command = required(arguments, "command")?;
    let (limit, limit_text) = match timeout(arguments)? {
        Some((limit, text)) => (Some(limit), text),
        None => (None, String::new()),
    };
    let mut job = Job::new("/bin/sh");
    job.args = vec!["-c".into(), command.into()];
    job.env = context.env.to_vec();
    job.cwd = workdir(context, arguments)?;
    job.merged = true;
    job.keep = (OUTPUT_BYTES, 0);
    job.timeout = limit;
    job.grace = GRACE;
    job.tag = Some(Tag::new(context.engine_tag, context.call.id()));
    let finished = match job::run(job, Some(context.stop)) {
        Ok(finished) => finished,
        Err(e) => return Ok(answer("", NOT_STARTED, Some(&e.message), false)),
    };
    let output = finished.stdout.finish(None).text;
    Ok(match finished.end {
        End::Exited(ExitStatus::Exited(code)) => answer(&output, code, None, false),
        End::Exited(ExitStatus::Signaled(signal)) => {
            let error = format!("The command was killed by signal {signal}.");
            answer(&output, 128 + signal, Some(&error), false)
        }
        End::Exited(ExitStatus::Unknown) => {
            let error = "The host has taken the command's exit status; it is not known.";
            answer(&output, NOT_STARTED, Some(error), false)
        }
        End::TimedOut => {
            let error = format!("The command timed out after {limit_text}s and was killed.");
            answer(&output, TIMED_OUT, Some(&error), true)
        }
        End::Stopped => return Err("the command was stopped with the run".into()),
    })
}

fn refuse_background(arguments: &Section<'_>) -> Result<(), Failure> {
    let asked = arguments
        .members()
        .find(|(name, value)| BACKGROUND.contains(name) && **value != Value::Bool(false));
    match asked {
        None => Ok(()),
        Some((name, _)) => Err(format!(
            "terminal: no argument '{name}': commands run in the foreground only, to their end; for several at once use parallel()"
        )
        .into()),
    }
}

/// The time limit, and how it was written.
fn timeout(arguments: &Section<'_>) -> Result<Option<(Duration, String)>, Failure> {
    let Some(value) = arguments.get("timeout") else {
        return Ok(None);
    };
    let text = value.to_string();
    let seconds: Option<f64> = match value {
        Value::Number(_) => text.parse().ok(),
        _ => None,
    };
    seconds
        .filter(|seconds| *seconds > 0.0)
        // So long is as good as for ever.
        .map(|seconds| Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX))
        .map(|limit| Some((limit, text)))
        .ok_or_else(|| {
            arguments
                .mismatch("timeout", "a number of seconds > 0")
                .into()
        })
}

fn workdir(context: &Context<'_>, arguments: &Section<'_>) -> Result<PathBuf, Failure> {
    let Some(given) = arguments.string("workdir")? else {
        return Ok(context.cwd.to_path_buf());
    };
    Ok(context.cwd.join(expand_home("terminal.workdir", given)?))
}

fn answer(output: &str, exit_code: i32, error: Option<&str>, timed_out: bool) -> String {
    let mut result = ObjectWriter::default();
    result.string("output", output).raw("exit_code", exit_code);
    match error {
        Some(error) => result.string("error", error),
        None => result.raw("error", "null"),
    };
    result.raw("timed_out", timed_out);
    result.finish()
}

//! How a run ended: the status, the text for the model, and the result as JSON.

use super::complaint::{killed_by, last_error};
use super::hint;
pub use super::remains::Status;
use super::remains::{Ending, Remains};
use crate::json::{self, ObjectWriter};
use crate::sys::child::ExitStatus;
use std::fmt::Write as _;

/// The result of a run.
#[derive(Debug, Clone)]
pub struct Outcome {
    status: Status,
    output: String,
    error: Option<String>,
    hint: Option<String>,
    is_exit: bool,
    json: String,
    end_event: String,
    report: Option<String>,
}

impl Outcome {
    /// How the run ended.
    pub fn status(&self) -> Status {
        self.status
    }

    /// What the model should see: the script's output and, where it did not succeed, why.
    pub fn output(&self) -> &str {
        &self.output
    }

    /// What went wrong, in one line: the last one of the traceback, or why the script was stopped or never started.
    /// `None` on success.
    pub fn error(&self) -> Option<&str> {
        self.error.as_deref()
    }

    /// One sentence for the model on a mistake that is known.
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// The data of the event that tells of the end: what the result says, without the output.
    pub(crate) fn end_event(&self) -> &str {
        &self.end_event
    }

    /// What is wrong with a script that never ran because of its text: a JSON object with `type`, `message`, `line`,
    /// `offset` and `text`, as far as they are known.
    pub(crate) fn report(&self) -> Option<&str> {
        self.report.as_deref()
    }

    /// Whether the script ended by itself, with an exit code.
    pub(crate) fn is_exit(&self) -> bool {
        self.is_exit
    }

    /// The whole result as a JSON object.
    pub fn json(&self) -> &str {
        &self.json
    }
}

/// What separates the two streams in the output of a script that did not succeed.
const STDERR_LINE: &str = "--- stderr ---";

impl Remains {
    pub(crate) fn into_outcome(self) -> Outcome {
        let status = self.status();
        let error = self.error();
        let output = self.output(error.as_deref());
        let hint = self.hint(status);
        let json = self.json(status, &output, error.as_deref(), hint.as_deref());
        Outcome {
            end_event: self.end_event(status),
            status,
            output,
            is_exit: matches!(self.ending, Ending::Exited(ExitStatus::Exited(_))),
            error,
            hint,
            json,
            report: self.report,
        }
    }

    fn end_event(&self, status: Status) -> String {
        let mut data = ObjectWriter::default();
        data.string("status", status.name())
            .raw("tool_calls_made", self.calls.counts.made)
            .raw("duration_seconds", json::seconds(self.duration));
        data.finish()
    }

    fn status(&self) -> Status {
        match &self.ending {
            Ending::Exited(ExitStatus::Exited(0)) => Status::Success,
            Ending::Exited(_) | Ending::Overrun | Ending::Failed { .. } => Status::Error,
            Ending::TimedOut { .. } => Status::Timeout,
            Ending::Cancelled { .. } => Status::Interrupted,
        }
    }

    fn error(&self) -> Option<String> {
        Some(match &self.ending {
            Ending::Exited(ExitStatus::Exited(0)) => return None,
            Ending::Exited(ExitStatus::Exited(code)) => last_error(&self.stderr.text, self.raised)
                .unwrap_or_else(|| format!("The script ended with exit code {code}.")),
            Ending::Exited(ExitStatus::Signaled(signal)) => {
                killed_by(*signal, self.setting.sandbox.as_ref())
            }
            Ending::Exited(ExitStatus::Unknown) => last_error(&self.stderr.text, self.raised).unwrap_or_else(|| {
                "The script ended, but its exit status is unknown: the host ignores SIGCHLD or reaps every child."
                    .into()
            }),
            Ending::Overrun => format!(
                "The script was ended: {} of its tool calls were refused.",
                self.calls.counts.refused
            ),
            Ending::TimedOut { limit } => format!("Script timed out after {limit}s and was killed."),
            Ending::Cancelled { reason } => interruption(reason.as_deref()),
            Ending::Failed { error } => error.clone(),
        })
    }

    fn output(&self, error: Option<&str>) -> String {
        let mut text = self.stdout.text.clone();
        if self.status() == Status::Success {
            return text;
        }
        if !self.stderr.text.trim().is_empty() {
            append_line(&mut text, STDERR_LINE);
            append_line(&mut text, &self.stderr.text);
        }
        match &self.ending {
            Ending::Exited(ExitStatus::Exited(_)) if !text.is_empty() => {}
            Ending::TimedOut { .. } | Ending::Cancelled { .. } => {
                if let Some(line) = self.calls_so_far() {
                    append_line(&mut text, &line);
                }
                append_line(&mut text, error.unwrap_or_default());
            }
            _ => append_line(&mut text, error.unwrap_or_default()),
        }
        text
    }

    /// What a model has to know of the calls of a run that was stopped.
    fn calls_so_far(&self) -> Option<String> {
        if self.calls.counts.made == 0 {
            return None;
        }
        let mut line = format!(
            "[tool calls: {} made, {} answered",
            self.calls.counts.made, self.calls.counts.answered
        );
        for record in self.calls.unanswered().take(3) {
            let seconds = record.duration().as_secs_f64();
            let _ = write!(line, "; {} was unanswered after {seconds:.1}s", record.tool);
        }
        line.push(']');
        Some(line)
    }

    fn hint(&self, status: Status) -> Option<String> {
        let facts = hint::Facts {
            status,
            started: self.started,
            stdout: &self.stdout.text,
            stderr: &self.stderr.text,
            setting: &self.setting,
            calls: &self.calls,
        };
        let mut parts = self.notes.clone();
        parts.extend(hint::hint(&facts));
        (!parts.is_empty()).then(|| parts.join(" "))
    }

    fn json(
        &self,
        status: Status,
        output: &str,
        error: Option<&str>,
        hint: Option<&str>,
    ) -> String {
        let mut json = ObjectWriter::default();
        json.string("status", status.name())
            .string("output", output)
            .raw("tool_calls_made", self.calls.counts.made)
            .raw("duration_seconds", json::seconds(self.duration));
        if let Some(error) = error {
            json.string("error", error);
        }
        if let Some(hint) = hint {
            json.string("hint", hint);
        }
        match self.exit {
            Some(ExitStatus::Exited(code)) => drop(json.raw("exit_code", code)),
            Some(ExitStatus::Signaled(signal)) => drop(json.raw("signal", signal)),
            Some(ExitStatus::Unknown) | None => {}
        }
        if self.started {
            self.streams_json(&mut json);
        } else {
            json.raw("started", false);
        }
        json.raw("tool_calls", self.calls.to_json());
        if self.calls.omitted > 0 {
            json.raw("tool_calls_omitted", self.calls.omitted);
        }
        self.setting_json(&mut json);
        json.finish()
    }

    fn streams_json(&self, json: &mut ObjectWriter) {
        json.raw("stdout_bytes", self.stdout.bytes)
            .raw("stderr_bytes", self.stderr.bytes)
            .raw("stdout_truncated", self.stdout.truncated)
            .raw("stderr_truncated", self.stderr.truncated);
        if let Some(path) = &self.stdout_path {
            json.string("stdout_path", &path.to_string_lossy());
        }
        match self.survivors {
            Some(count) => json.raw("survivors", count),
            None => json.raw("survivors", "null"),
        };
    }

    fn setting_json(&self, json: &mut ObjectWriter) {
        json.string("mode", self.setting.mode);
        if let Some(cwd) = &self.setting.cwd {
            json.string("cwd", &cwd.to_string_lossy());
        }
        if let Some(python) = &self.setting.python {
            json.string("python", &python.to_string_lossy());
        }
        if let Some(isolation) = &self.setting.isolation {
            json.raw("isolation", isolation);
        }
    }
}

fn interruption(reason: Option<&str>) -> String {
    format!(
        "[execution interrupted - {}]",
        reason.unwrap_or("user sent a new message")
    )
}

/// Appends `line` on a line of its own, without a line break after it.
fn append_line(text: &mut String, line: &str) {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(line);
}

#[cfg(test)]
mod tests {
    use super::super::remains::{Calls, Setting, Stream};
    use super::*;
    use std::time::Duration;

    fn remains(ending: Ending, stdout: &str, stderr: &str) -> Remains {
        let stream = |text: &str| Stream {
            text: text.into(),
            bytes: text.len() as u64,
            truncated: false,
        };
        Remains {
            started: !matches!(ending, Ending::Failed { .. }),
            report: None,
            raised: true,
            exit: match ending {
                Ending::Exited(status) => Some(status),
                Ending::Failed { .. } => None,
                _ => Some(ExitStatus::Signaled(15)),
            },
            ending,
            duration: Duration::from_millis(1500),
            stdout: stream(stdout),
            stderr: stream(stderr),
            stdout_path: None,
            survivors: Some(0),
            calls: Calls::default(),
            notes: Vec::new(),
            setting: Setting {
                mode: "project",
                ..Setting::default()
            },
        }
    }

    fn exited(code: i32) -> Ending {
        Ending::Exited(ExitStatus::Exited(code))
    }

    #[test]
    fn success_is_stdout_alone() {
        let outcome = remains(exited(0), "A\n", "warning").into_outcome();
        assert_eq!(
            (outcome.status(), outcome.output()),
            (Status::Success, "A\n")
        );
        assert!(!outcome.json().contains("\"error\""));
        assert!(outcome
            .json()
            .starts_with(r#"{"status":"success","output":"A\n","tool_calls_made":0,"#));
    }

    #[test]
    fn an_error_is_never_empty_and_names_the_exception() {
        let traceback =
            "Traceback (most recent call last):\n  File \"x\", line 1\n    raise E\nE: one\ntwo\n";
        let cases = [
            (exited(1), traceback, "E: one"),
            (exited(1), "gave up\n\n", "gave up"),
            (exited(3), "", "The script ended with exit code 3."),
            (
                Ending::Exited(ExitStatus::Signaled(9)),
                "",
                "The script was killed by SIGKILL (signal 9), not by ptc: perhaps out of memory.",
            ),
            (
                Ending::Exited(ExitStatus::Signaled(64)),
                "",
                "The script was ended by signal 64.",
            ),
        ];
        for (ending, stderr, error) in cases {
            let outcome = remains(ending, "", stderr).into_outcome();
            assert_eq!(outcome.status(), Status::Error);
            assert!(
                outcome
                    .json()
                    .contains(&format!("\"error\":{}", json::quote(error))),
                "{}",
                outcome.json()
            );
            assert!(!outcome.output().is_empty());
        }
    }

    #[test]
    fn stderr_stands_under_a_line_of_its_own() {
        let outcome = remains(exited(2), "half", "bad\n").into_outcome();
        assert_eq!(outcome.output(), "half\n--- stderr ---\nbad\n");
    }

    #[test]
    fn a_stopped_run_keeps_its_output_and_ends_with_the_notice() {
        let outcome = remains(
            Ending::TimedOut {
                limit: "0.5".into(),
            },
            "A\n",
            "",
        )
        .into_outcome();
        assert_eq!(outcome.status(), Status::Timeout);
        assert_eq!(
            outcome.output(),
            "A\nScript timed out after 0.5s and was killed."
        );
        assert!(outcome.json().contains("\"signal\":15"));
        let outcome = remains(Ending::Cancelled { reason: None }, "A", "").into_outcome();
        assert_eq!(
            outcome.output(),
            "A\n[execution interrupted - user sent a new message]"
        );
        let reason = Some("shutting down".to_string());
        let outcome = remains(Ending::Cancelled { reason }, "", "").into_outcome();
        assert_eq!(outcome.output(), "[execution interrupted - shutting down]");
    }

    #[test]
    fn a_script_that_never_ran_says_so() {
        let ending = Ending::Failed {
            error: "no python".into(),
        };
        let outcome = remains(ending, "", "").into_outcome();
        assert_eq!(outcome.output(), "no python");
        assert!(outcome.json().contains("\"started\":false"));
        assert!(!outcome.json().contains("stdout_bytes"));
        let mut unparsed = remains(exited(1), "", "  File \"s\", line 1\nSyntaxError: bad\n");
        unparsed.started = false;
        let outcome = unparsed.into_outcome();
        assert!(outcome.output().starts_with("--- stderr ---\n  File"));
        assert!(outcome.json().contains("\"error\":\"SyntaxError: bad\""));
    }
}

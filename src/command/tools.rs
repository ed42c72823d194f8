//! Shell commands as tools.

use super::Refusal::{self, Usage};
use crate::job::{self, unnamed_file, End, Finished, Job, Stop};
use crate::json::{self, ObjectWriter, Value};
use crate::rpc::call::Call;
use crate::sys::child::ExitStatus;
use crate::sys::scan::{self, Tag};
use crate::sys::thread::spawn_blocked;
use crate::tool::standard::STANDARD;
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// The longest result of a command.
const RESULT_BYTES: usize = 64 << 20;
/// How much of what it says on standard error is kept for the message of a failed call.
const ERROR_BYTES: usize = 10_000;
/// The lines of that message.
const ERROR_LINES: usize = 5;
/// From SIGTERM to SIGKILL when the run ends before the command does.
const GRACE: Duration = Duration::from_millis(500);

/// The tools that have a command.
#[derive(Debug)]
pub(super) struct CommandTools {
    commands: BTreeMap<String, String>,
    cwd: PathBuf,
}

impl CommandTools {
    /// From values of `--tool`; the commands run in `cwd`.
    pub(super) fn parse<'a>(
        values: impl Iterator<Item = &'a str>,
        cwd: PathBuf,
    ) -> Result<Self, Refusal> {
        let commands = BTreeMap::new();
        let mut tools = CommandTools { commands, cwd };
        for value in values {
            let (name, command) = value
                .split_once('=')
                .filter(|(name, command)| !name.is_empty() && !command.trim().is_empty())
                .ok_or_else(|| Usage(format!("--tool expects NAME=COMMAND, got {value:?}")))?;
            let before = tools.commands.insert(name.to_string(), command.to_string());
            if before.is_some() {
                return Err(Usage(format!("--tool gives {name:?} two commands")));
            }
        }
        Ok(tools)
    }

    /// Adds the tools to `config` that it does not specify itself: standard ones by their name, others open to any
    /// argument.
    pub(super) fn add_to(&self, config: &mut Value) -> Result<(), Refusal> {
        let Value::Object(members) = config else {
            return Err(Usage("the configuration is not a JSON object".into()));
        };
        if !members.iter().any(|(key, _)| key == "tools") {
            members.push(("tools".into(), Value::Array(Vec::new())));
        }
        let tools = members.iter_mut().find(|(key, _)| key == "tools");
        let Some((_, Value::Array(list))) = tools else {
            // The engine says what is wrong with it, and where.
            return Ok(());
        };
        for (name, command) in &self.commands {
            let is_it = |tool: &Value| {
                tool.as_str().or(tool.get("name").and_then(Value::as_str)) == Some(name)
            };
            if !list.iter().any(is_it) {
                list.push(specification(name, command));
            }
        }
        Ok(())
    }

    /// Answers `call` when its command has ended, which is soon after `stop` is pulled.
    fn answer(&self, call: &Call, stop: &Stop) {
        let answered = match self.run(call, stop) {
            Ok(result) => match json::validate(&result) {
                Ok(json) => call.reply(json),
                Err(_) => call.reply_text(&result),
            },
            Err(message) => call.fail(&message),
        };
        // An answer that comes too late has nobody to go to.
        drop(answered);
    }

    /// What the command printed, as text; empty output is null.
    fn run(&self, call: &Call, stop: &Stop) -> Result<String, String> {
        let name = call.tool();
        let Some(command) = self.commands.get(name) else {
            return Err(format!(
                "'{name}' has no command: give one with --tool '{name}=COMMAND'"
            ));
        };
        let mut job = Job::new("/bin/sh");
        job.args = vec!["-c".into(), command.into()];
        job.env = std::env::vars_os().collect();
        job.cwd = self.cwd.clone();
        let input = unnamed_file(&std::env::temp_dir(), call.args().as_bytes());
        job.input = Some(input.map_err(|e| format!("'{name}' cannot get its arguments: {e}"))?);
        job.keep = (RESULT_BYTES, ERROR_BYTES);
        job.grace = GRACE;
        job.tag = Some(Tag::new(scan::engine_tag(), call.id()));
        let finished = job::run(job, Some(stop))
            .map_err(|e| format!("'{name}' cannot be run: {}", e.message))?;
        let output = finished.stdout.finish(None);
        if finished.end != End::Exited(ExitStatus::Exited(0)) {
            return Err(failure(name, &finished));
        }
        if output.truncated {
            return Err(format!("'{name}' printed more than {RESULT_BYTES} bytes"));
        }
        match output.text.trim() {
            "" => Ok("null".into()),
            // As a shell does it for $(command).
            _ => Ok(output
                .text
                .strip_suffix('\n')
                .unwrap_or(&output.text)
                .to_string()),
        }
    }
}

/// The commands of one run that are under way. Dropping it ends them.
pub(super) struct Serving<'a> {
    tools: &'a Arc<CommandTools>,
    commands: Vec<Started>,
}

struct Started {
    call: Call,
    stop: Stop,
    thread: JoinHandle<()>,
}

impl<'a> Serving<'a> {
    pub(super) fn new(tools: &'a Arc<CommandTools>) -> Self {
        let commands = Vec::new();
        Serving { tools, commands }
    }

    /// Starts the command that answers `call`.
    pub(super) fn serve(&mut self, call: &Call) {
        self.commands
            .retain(|command| !command.thread.is_finished());
        match self.start(call) {
            Ok(command) => self.commands.push(command),
            Err(e) => {
                let message = format!("'{}' cannot be run: {e}", call.tool());
                // It fails only when nobody waits any more.
                let _ = call.fail(&message);
            }
        }
    }

    fn start(&self, call: &Call) -> io::Result<Started> {
        let stop = Stop::new()?;
        let (tools, call) = (Arc::clone(self.tools), call.clone());
        let (its_call, its_stop) = (call.clone(), stop.clone());
        let answer = move || tools.answer(&its_call, &its_stop);
        let thread = spawn_blocked("ptc-tool", answer)?;
        Ok(Started { call, stop, thread })
    }

    /// Ends the commands of calls whose caller is gone, as all are once the run is being ended.
    pub(super) fn stop_unwanted(&self) {
        for command in &self.commands {
            if !command.call.is_wanted() {
                command.stop.pull();
            }
        }
    }
}

impl Drop for Serving<'_> {
    fn drop(&mut self) {
        for command in &self.commands {
            command.stop.pull();
        }
        for command in self.commands.drain(..) {
            // It catches its own panics.
            let _ = command.thread.join();
        }
    }
}

fn specification(name: &str, command: &str) -> Value {
    if STANDARD.iter().any(|tool| tool.name == name) {
        return Value::String(name.into());
    }
    let mut specification = ObjectWriter::default();
    specification
        .string("name", name)
        .string(
            "description",
            &format!(
                "Runs the command `{command}` with the arguments as JSON on its standard input."
            ),
        )
        .raw(
            "input_schema",
            r#"{"type":"object","additionalProperties":true}"#,
        );
    json::parse(&specification.finish()).unwrap_or(Value::Null)
}

fn failure(name: &str, finished: &Finished) -> String {
    let end = match finished.end {
        End::Exited(ExitStatus::Exited(code)) => format!("ended with exit code {code}"),
        End::Exited(ExitStatus::Signaled(signal)) => format!("was killed by signal {signal}"),
        End::Exited(ExitStatus::Unknown) => "ended in an unknown way".into(),
        End::TimedOut => "took too long".into(),
        End::Stopped => "was stopped with the run".into(),
    };
    let said = finished.stderr.finish(None).text;
    let lines: Vec<&str> = said
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    let last = lines[lines.len().saturating_sub(ERROR_LINES)..].join("\n");
    match last.as_str() {
        "" => format!("'{name}' {end}"),
        last => format!("'{name}' {end}: {last}"),
    }
}

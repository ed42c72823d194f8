//! `ptc check`: what is looked at before a script runs, without running it. The run's own interpreter parses it, and the
//! tools that it is certain to call are looked for.

use super::setup;
use super::Refusal;
use super::{args, print, say, status, write_now, Command};
use crate::json::{self, ObjectWriter, Value};
use crate::{Code, Engine, Host, Outcome, Status};
use std::io;
use std::sync::Arc;

pub(super) const COMMAND: Command = Command {
    name: "check",
    usage: "ptc check SCRIPT.py [OPTIONS]",
    purpose: "say what keeps a script from running, without running it",
    help: HELP,
    run: check,
};

const HELP: &str = concat!(
    "\
ptc check: parses a script with the interpreter that would run it and looks for the tools that it calls; runs nothing

usage: ptc check SCRIPT.py [OPTIONS]     (SCRIPT.py may be - for standard input)

",
    setup::options_help!(),
    "  --json                   print one line of JSON: passes; if not, error and, as far as they are known, type, message,
                           line, offset, text, hint

A script that passes prints nothing. What is wrong with one that does not goes to standard error.
exit status: 0 the script passes, 1 it does not or could not be checked, 2 bad usage
"
);

fn check(arguments: Vec<String>) -> Result<u8, Refusal> {
    let given = args::parse(arguments, &setup::OPTIONS)?;
    if setup::wants_help(&given) {
        return print(HELP);
    }
    let (_, config) = setup::engine_parts(&given)?;
    let options = setup::options(&given)?;
    let code = setup::script(&given, "check")?;
    let engine = Engine::new(&config.to_string(), Host::new())?;
    let found = Found::new(engine.check(&code, &options))?;
    if given.has("--json") {
        print(&(found.json() + "\n"))?;
    } else if !found.passes {
        let name = match setup::script_path(&given, "check")? {
            "-" => "<stdin>",
            path => path,
        };
        found.explain(name);
    }
    Ok(match found.passes {
        true => status::SUCCESS,
        false => status::ERROR,
    })
}

/// What came of it.
struct Found {
    passes: bool,
    error: String,
    hint: Option<String>,
    /// Where in the script, and what.
    report: Option<Value>,
}

impl Found {
    fn new(checked: crate::Result<Arc<Outcome>>) -> Result<Found, Refusal> {
        match checked {
            Ok(outcome) => Ok(Found {
                passes: outcome.status() == Status::Success,
                error: outcome.error().unwrap_or_default().into(),
                hint: outcome.hint().map(str::to_string),
                report: outcome.report().and_then(|text| json::parse(text).ok()),
            }),
            // Text that can be no script at all.
            Err(e) if e.code() == Code::InvalidArgument => Ok(Found {
                passes: false,
                error: e.message().into(),
                hint: None,
                report: None,
            }),
            Err(e) => Err(e.into()),
        }
    }

    fn text(&self, key: &str) -> Option<&str> {
        self.report.as_ref()?.get(key)?.as_str()
    }

    fn number(&self, key: &str) -> Option<usize> {
        match self.report.as_ref()?.get(key)? {
            Value::Number(digits) => digits.parse().ok(),
            _ => None,
        }
    }

    fn json(&self) -> String {
        let mut line = ObjectWriter::default();
        line.raw("passes", self.passes);
        if self.passes {
            return line.finish();
        }
        line.string("error", &self.error);
        for key in ["type", "message", "line", "offset", "text"] {
            if let Some(value) = self.report.as_ref().and_then(|report| report.get(key)) {
                line.raw(key, value);
            }
        }
        if let Some(hint) = &self.hint {
            line.string("hint", hint);
        }
        line.finish()
    }

    /// In the manner of a traceback.
    fn explain(&self, name: &str) {
        if self.report.is_some() {
            let place = self.place(name);
            // There is nowhere else to say that standard error is gone.
            let _ = write_now(&mut io::stderr().lock(), place.as_bytes());
            return;
        }
        say(&self.error);
        if let Some(hint) = &self.hint {
            say(&format!("hint: {hint}"));
        }
    }

    fn place(&self, name: &str) -> String {
        let mut lines = String::new();
        if let Some(line) = self.number("line") {
            lines += &format!("  File \"{name}\", line {line}\n");
        }
        if let Some(text) = self.text("text") {
            let shown = text.trim();
            lines += &format!("    {shown}\n");
            let indented = text.chars().take_while(|c| c.is_whitespace()).count();
            let column = self.number("offset").and_then(|at| at.checked_sub(1));
            let caret = column.and_then(|column| column.checked_sub(indented));
            if let Some(caret) = caret.filter(|caret| *caret <= shown.chars().count()) {
                lines += &format!("    {}^\n", blank(shown, caret));
            }
        }
        match (self.text("type"), self.text("message")) {
            (Some(kind), Some(message)) => {
                lines + format!("{kind}: {message}").trim_end_matches([':', ' ']) + "\n"
            }
            _ => lines + &format!("{}\n", self.error),
        }
    }
}

/// As wide as the first `count` characters of `text`, whatever a tab is taken for.
fn blank(text: &str, count: usize) -> String {
    let as_blank = |c| if c == '\t' { '\t' } else { ' ' };
    text.chars().take(count).map(as_blank).collect()
}

//! `ptc doctor`: what this machine can do for scripts, found out by trying, and what to do about what it cannot.
//!
//! | file | what it looks at |
//! |---|---|
//! | `kernel.rs` | the kernel's abilities, each of which has a fallback |
//! | `python.rs` | which interpreter runs scripts and why, and how fast it starts |
//! | `isolation.rs` | what a run gets of each level |
//! | `place.rs` | directories, programs and bounds of this process |

mod isolation;
mod kernel;
mod place;
mod python;

use super::args::Given;
use super::setup;
use super::{args, print, status, Command, Refusal};
use crate::config::Config;
use crate::json::{ObjectWriter, Value};
use crate::{Engine, Host, Outcome};
use std::sync::Arc;

pub(super) const COMMAND: Command = Command {
    name: "doctor",
    usage: "ptc doctor [OPTIONS]",
    purpose: "look at what this machine can do, and say what to do about the rest",
    help: HELP,
    run: doctor,
};

const HELP: &str = concat!(
    "\
ptc doctor: looks at kernel, interpreters, isolation, start-up times and directories, by trying them

usage: ptc doctor [OPTIONS]

",
    setup::options_help!(),
    "  --json                   print one line of JSON: works, and for each finding section, name, state (ok, warn, problem),
                           text, advice, value

exit status: 0 scripts can run (whatever else was found), 1 they cannot, 2 bad usage
"
);

fn doctor(arguments: Vec<String>) -> Result<u8, Refusal> {
    let given = args::parse(arguments, &setup::OPTIONS)?;
    if setup::wants_help(&given) {
        return print(HELP);
    }
    setup::refuse_operands(&given)?;
    let patient = Patient::new(&given)?;
    let mut report = Report::default();
    kernel::examine(&mut report);
    let works = python::examine(&mut report, &patient);
    if works {
        isolation::examine(&mut report, &patient);
    }
    place::examine(&mut report);
    let printed = match given.has("--json") {
        true => print(&(report.json(works) + "\n"))?,
        false => print(&report.text(works))?,
    };
    Ok(match works {
        true => printed,
        false => status::ERROR,
    })
}

/// What is looked at: the configuration as a run on this machine would have it.
struct Patient {
    value: Value,
    config: Config,
    /// The options of a run that ends in any case.
    options: String,
}

impl Patient {
    fn new(given: &Given) -> Result<Patient, Refusal> {
        let (_, mut value) = setup::engine_parts(given)?;
        setup::add_session(&mut value, given);
        let config = Config::parse(&value.to_string())?;
        Ok(Patient {
            value,
            config,
            options: r#"{"timeout":60}"#.into(),
        })
    }

    /// A run of `print(1)`, after `change` was made to the configuration.
    fn run(&self, change: impl FnOnce(&mut Value)) -> crate::Result<Arc<Outcome>> {
        let mut config = self.value.clone();
        change(&mut config);
        Engine::new(&config.to_string(), Host::new())?.execute("print(1)", &self.options)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Ok,
    Warn,
    Problem,
}

impl State {
    fn name(self) -> &'static str {
        match self {
            State::Ok => "ok",
            State::Warn => "warn",
            State::Problem => "problem",
        }
    }
}

/// One thing that was looked at.
struct Finding {
    section: &'static str,
    name: String,
    state: State,
    text: String,
    advice: Option<String>,
    /// JSON for programs that want more than a sentence.
    value: Option<String>,
}

impl Finding {
    fn advise(&mut self, advice: &str) -> &mut Self {
        self.advice = Some(advice.into());
        self
    }

    fn value(&mut self, json: impl ToString) -> &mut Self {
        self.value = Some(json.to_string());
        self
    }
}

#[derive(Default)]
struct Report(Vec<Finding>);

impl Report {
    fn add(
        &mut self,
        section: &'static str,
        name: &str,
        state: State,
        text: impl Into<String>,
    ) -> &mut Finding {
        let at = self.0.len();
        self.0.push(Finding {
            section,
            name: name.into(),
            state,
            text: text.into(),
            advice: None,
            value: None,
        });
        &mut self.0[at]
    }

    fn json(&self, works: bool) -> String {
        let findings: Vec<String> = self.0.iter().map(Finding::json).collect();
        let mut whole = ObjectWriter::default();
        whole
            .raw("works", works)
            .string("version", env!("CARGO_PKG_VERSION"))
            .raw("findings", format!("[{}]", findings.join(",")));
        whole.finish()
    }

    fn text(&self, works: bool) -> String {
        let mut text = String::new();
        let mut section = "";
        for finding in &self.0 {
            if finding.section != section {
                section = finding.section;
                text += &format!("{section}\n");
            }
            let (state, name) = (finding.state.name(), &finding.name);
            text += &format!("  {state:<8} {name:<14} {}\n", finding.text);
            if let Some(advice) = &finding.advice {
                text += &format!("  {:<8} {:<14} -> {advice}\n", "", "");
            }
        }
        let count = |state| self.0.iter().filter(|f| f.state == state).count();
        let (problems, warnings) = (count(State::Problem), count(State::Warn));
        let verdict = match works {
            true => "scripts can run here",
            false => "scripts cannot run here",
        };
        text + &format!("{verdict}: {problems} problems, {warnings} warnings\n")
    }
}

impl Finding {
    fn json(&self) -> String {
        let mut finding = ObjectWriter::default();
        finding
            .string("section", self.section)
            .string("name", &self.name)
            .string("state", self.state.name())
            .string("text", &self.text);
        if let Some(advice) = &self.advice {
            finding.string("advice", advice);
        }
        if let Some(value) = &self.value {
            finding.raw("value", value);
        }
        finding.finish()
    }
}

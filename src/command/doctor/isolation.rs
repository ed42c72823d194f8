//! What a run gets of each level of isolation on this machine: one run each, which tells what was done to it.

use super::{setup, Patient, Report, State};
use crate::json::{self, ObjectWriter, Value};
use crate::Status;

const SECTION: &str = "isolation";

pub(super) fn examine(report: &mut Report, patient: &Patient) {
    let configured = patient.config.isolation.level.name();
    for level in ["none", "guard", "sandbox"] {
        let of_level = match configured == level {
            true => format!("{level} (set)"),
            false => level.to_string(),
        };
        match gains(patient, level) {
            Ok(gained) => tell(report, &of_level, &gained),
            Err(problem) => {
                let finding = report.add(SECTION, &of_level, State::Problem, problem);
                finding.advise("choose another level, or mend what the message says");
            }
        }
    }
}

/// What was applied, and what was missing.
struct Gained {
    applied: Vec<String>,
    missing: Vec<String>,
}

fn gains(patient: &Patient, level: &str) -> Result<Gained, String> {
    let ran = patient.run(|config| {
        setup::set_in(
            config,
            "code_execution",
            "isolation",
            Value::String(level.into()),
        );
    });
    let outcome = ran.map_err(|e| e.message().to_string())?;
    if outcome.status() != Status::Success {
        return Err(outcome.error().unwrap_or("the script failed").into());
    }
    let result = json::parse(outcome.json())?;
    let list = |key: &str| {
        let items = result.get("isolation").and_then(|told| told.get(key));
        let items = items.and_then(Value::as_array).unwrap_or_default();
        let items = items.iter().filter_map(Value::as_str);
        items.map(str::to_string).collect()
    };
    Ok(Gained {
        applied: list("applied"),
        missing: list("missing"),
    })
}

fn tell(report: &mut Report, level: &str, gained: &Gained) {
    let applied = match gained.applied.as_slice() {
        [] => "a scrubbed environment only".to_string(),
        applied => applied.join(", "),
    };
    let mut value = ObjectWriter::default();
    value
        .raw("applied", json::string_array(&gained.applied))
        .raw("missing", json::string_array(&gained.missing));
    if gained.missing.is_empty() {
        let text = format!("complete: {applied}");
        report
            .add(SECTION, level, State::Ok, text)
            .value(value.finish());
        return;
    }
    let text = format!("{applied}; missing: {}", gained.missing.join("; "));
    let finding = report.add(SECTION, level, State::Warn, text);
    finding.value(value.finish()).advise(
        "runs go on without what is missing; \"isolation\": {\"level\": …, \"require\": true} makes it an error",
    );
}

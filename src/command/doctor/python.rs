//! Which interpreter runs scripts in each mode, why that one, and how long it takes to start.

use super::{setup, Patient, Report, State};
use crate::json::{ObjectWriter, Value};
use crate::python::{self, Environ, Interpreter, Interpreters};
use crate::sys::dir::{self, Dir};
use crate::{Outcome, Status};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

const SECTION: &str = "python";
/// How often each start is measured; odd, for the median.
const TIMES: usize = 5;
/// A bare interpreter that takes longer has something in its way.
const SLOW_START: Duration = Duration::from_millis(250);
/// What a run may cost beyond the bare interpreter before something is wrong: twice as much, and this.
const SLOW_RUN: Duration = Duration::from_millis(50);

/// Whether a script ran in either mode.
pub(super) fn examine(report: &mut Report, patient: &Patient) -> bool {
    let environ = Environ::capture();
    let module = python::module_source(&patient.config);
    let interpreters = Interpreters::new(module, dir::candidates());
    environment(report, &environ);
    let mut works = false;
    let mut found = None;
    for mode in ["project", "strict"] {
        let chosen = choice(report, patient, &interpreters, &environ, mode);
        if mode == patient.config.mode.name() {
            found = chosen;
        }
        works |= trial(report, patient, mode);
    }
    if let (Some(interpreter), true) = (found, works) {
        times(report, patient, &interpreter, &environ);
    }
    works
}

/// What is said to be active and is not, or could be and is not.
fn environment(report: &mut Report, environ: &Environ) {
    let mut is_active = false;
    for name in ["VIRTUAL_ENV", "CONDA_PREFIX"] {
        let Some(folder) = environ.get(name).filter(|folder| !folder.is_empty()) else {
            continue;
        };
        is_active = true;
        let python = Path::new(folder).join("bin/python");
        if !python.exists() {
            let text = format!("there is no {}: it is not used", python.display());
            let finding = report.add(SECTION, name, State::Warn, text);
            finding.advise("make the environment again, or unset the variable");
        }
    }
    if is_active {
        return;
    }
    for folder in [".venv", "venv"] {
        if Path::new(folder).join("bin/python").exists() {
            let text = format!("there is an environment in {folder}, and it is not active");
            let finding = report.add(SECTION, "venv", State::Warn, text);
            finding.advise(&format!(
                "`. {folder}/bin/activate`, or set VIRTUAL_ENV for the host, if scripts are to use its packages"
            ));
        }
    }
}

/// The interpreter of one mode.
fn choice(
    report: &mut Report,
    patient: &Patient,
    interpreters: &Interpreters,
    environ: &Environ,
    mode: &'static str,
) -> Option<Arc<Interpreter>> {
    let setting = patient.config.python.as_deref();
    let search = interpreters.search(mode == "project", setting, environ);
    for refused in &search.refused {
        let (path, origin) = (refused.path.display(), refused.origin);
        let text = format!("{mode}: {path} (by {origin}) {}", refused.reason);
        let finding = report.add(SECTION, "passed over", State::Warn, text);
        finding.advise("repair it, or point VIRTUAL_ENV, PATH or the setting \"python\" elsewhere");
    }
    let Some(found) = search.chosen else {
        let text = "no usable interpreter";
        let finding = report.add(SECTION, mode, State::Problem, text);
        finding.advise("install Python 3.8 or newer, or set \"python\" (--python) to one");
        return None;
    };
    let interpreter = found.interpreter;
    let (major, minor, micro) = interpreter.version;
    let path = interpreter.executable.display();
    let mut text = format!(
        "{path} ({} {major}.{minor}.{micro}), by {}",
        interpreter.implementation, found.origin
    );
    if interpreter.requested != interpreter.executable {
        text += &format!(", found as {}", interpreter.requested.display());
    }
    let mut value = ObjectWriter::default();
    value
        .string("executable", &interpreter.executable.to_string_lossy())
        .string("requested", &interpreter.requested.to_string_lossy())
        .string("version", &format!("{major}.{minor}.{micro}"))
        .string("origin", found.origin);
    report
        .add(SECTION, mode, State::Ok, text)
        .value(value.finish());
    Some(interpreter)
}

/// Whether a script runs in `mode`.
fn trial(report: &mut Report, patient: &Patient, mode: &'static str) -> bool {
    let ran = patient.run(|config| {
        setup::set_in(config, "code_execution", "mode", Value::String(mode.into()));
    });
    let problem = match &ran {
        Ok(outcome) if is_good(outcome) => return true,
        Ok(outcome) => outcome
            .error()
            .unwrap_or("a script printed something else than it should"),
        Err(e) => e.message(),
    };
    let text = format!("{mode}: a script cannot run: {problem}");
    let finding = report.add(SECTION, "trial", State::Problem, text);
    finding
        .advise("the message says what is wrong; `ptc run` with the same options shows it again");
    false
}

fn is_good(outcome: &Outcome) -> bool {
    outcome.status() == Status::Success && outcome.output() == "1\n"
}

/// How long `print(1)` takes, in a bare interpreter and as a run; in turns, so that both meet the same machine.
fn times(report: &mut Report, patient: &Patient, interpreter: &Interpreter, environ: &Environ) {
    let engine = crate::Engine::new(&patient.value.to_string(), crate::Host::new());
    let (Ok(engine), Ok(place)) = (engine, Dir::create(&dir::candidates(), dir::PREFIX)) else {
        return;
    };
    let written = place.write_file("bare.py", b"print(1)", 0o600);
    let script = place.path().join("bare.py");
    // The first run also probes the interpreter.
    let warm = engine.execute("print(1)", &patient.options);
    if written.is_err() || !warm.is_ok_and(|outcome| is_good(&outcome)) {
        return;
    }
    let (mut bare, mut runs) = (Vec::new(), Vec::new());
    for _ in 0..TIMES {
        bare.extend(timed(|| bare_start(interpreter, environ, &script)));
        runs.extend(timed(|| {
            engine
                .execute("print(1)", &patient.options)
                .is_ok_and(|outcome| is_good(&outcome))
        }));
    }
    let (Some(bare), Some(run)) = (median(bare), median(runs)) else {
        return;
    };
    let ms = |time: Duration| format!("{:.1}", time.as_secs_f64() * 1e3);
    let state = |is_slow| if is_slow { State::Warn } else { State::Ok };
    let is_slow = bare > SLOW_START;
    let text = format!("a bare interpreter takes {} ms for print(1)", ms(bare));
    let finding = report.add(SECTION, "bare start", state(is_slow), text);
    finding.value(ms(bare));
    if is_slow {
        finding.advise("`python -X importtime -c pass` shows what takes the time: often .pth files in site-packages");
    }
    let is_slow = run > 2 * bare + SLOW_RUN;
    let text = format!("a run of the same takes {} ms", ms(run));
    let finding = report.add(SECTION, "run", state(is_slow), text);
    finding.value(ms(run));
    if is_slow {
        finding.advise("is the directory for temporary files slow? Set TMPDIR to one in memory");
    }
}

fn bare_start(interpreter: &Interpreter, environ: &Environ, script: &PathBuf) -> bool {
    let own = [
        ("PYTHONUTF8", "1".into()),
        ("PYTHONDONTWRITEBYTECODE", "1".into()),
    ];
    let output = Command::new(&interpreter.executable)
        .arg(script)
        .env_clear()
        .envs(environ.child_env(&[], &[], &own))
        .stdin(Stdio::null())
        .output();
    output.is_ok_and(|output| output.stdout == b"1\n")
}

fn timed(action: impl FnOnce() -> bool) -> Option<Duration> {
    let began = Instant::now();
    action().then(|| began.elapsed())
}

fn median(mut times: Vec<Duration>) -> Option<Duration> {
    times.sort();
    times.get(times.len() / 2).copied()
}

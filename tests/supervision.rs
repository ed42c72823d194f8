//! The end of a run, whatever the script does about it, and the end of a host: what was printed is there, and nothing
//! of the script is left. The scripts are `tests/scripts/end_*.py`.

mod support;
#[path = "support/wire.rs"]
mod wire;

use ptc::{Call, Code, Engine, Host, Run};
use serde_json::{json, Value};
use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::time::Duration;
use support::*;
use wire::*;

macro_rules! script {
    ($name:literal) => {
        include_str!(concat!("scripts/end_", $name, ".py"))
    };
}

/// A grace that is over soon, for scripts that use it up.
const SHORT: &str = r#""kill_grace":1"#;

/// One that is never used up.
const LONG: &str = r#""kill_grace":100"#;

fn config(settings: &str) -> String {
    format!(r#"{{"code_execution":{{{settings}}},"tools":[{ECHO}]}}"#)
}

fn echo_engine(settings: &str) -> Engine {
    engine_with(&config(settings), echo)
}

fn code(script: &str) -> String {
    GATE.to_string() + script
}

/// Long before anything that the scripts leave behind would end by itself.
fn assert_soon(ran: &Ran) {
    let took = ran.json["duration_seconds"].as_f64().unwrap();
    assert!(took < 60.0, "it took {took} s");
}

/// The result of a script that ends by itself; everybody who has the gate is gone after it.
fn ended(script: &str) -> Ran {
    let gate = Gate::new();
    let engine = echo_engine("");
    let run = engine.start(code(script), &gate.options("")).unwrap();
    let visitor = gate.visitor();
    let ran = wait(&run);
    visitor.rest();
    assert_soon(&ran);
    ran.assert_nothing_survived();
    ran
}

/// The result of a script that is cancelled when it is ready for it.
fn cancelled(settings: &str, script: &str) -> Ran {
    let gate = Gate::new();
    let engine = echo_engine(settings);
    let run = engine.start(code(script), &gate.options("")).unwrap();
    let mut visitor = gate.visitor();
    assert_eq!(visitor.line(), "up");
    run.cancel(None);
    let ran = wait(&run);
    visitor.rest();
    assert_eq!(ran.status(), "interrupted");
    assert_soon(&ran);
    ran.assert_nothing_survived();
    ran
}

/// The result of a script that is ready when its time is over.
fn timed_out(settings: &str, script: &str) -> Ran {
    let gate = Gate::new();
    let engine = echo_engine(settings);
    let code = code(script);
    let (run, visitor) = gate.visitor_in_time(|options| engine.start(&code, options).unwrap());
    let ran = wait(&run);
    visitor.rest();
    assert_eq!(ran.status(), "timeout");
    assert_soon(&ran);
    ran.assert_nothing_survived();
    ran
}

const INTERRUPTED: &str = "[execution interrupted - user sent a new message]";

// ---- scripts that end by themselves ----

#[test]
fn jobs_in_the_background_delay_nothing_and_end_with_the_script() {
    let ran = ended(script!("background"));
    assert_eq!(ran.printed(), "shell\ndone\n");
}

#[test]
fn output_that_goes_through_another_program_is_there_and_the_program_gone() {
    assert_eq!(ended(script!("tee")).printed(), "through the pipe\n");
}

#[test]
fn a_child_that_writes_on_for_ever_ends_with_the_script() {
    let ran = ended(script!("late_writer"));
    assert!(ran.printed().starts_with("in time\n"));
}

#[test]
fn a_script_that_kills_its_group_has_been_killed_and_nobody_else() {
    let ran = ended(script!("kills_group"));
    assert_eq!(ran.status(), "error");
    assert!(ran.output().starts_with("killing\n"), "{}", ran.output());
    assert!(ran.error().contains("SIGKILL"), "{}", ran.error());
    assert!(!ran.has("exit_code") || ran.json["exit_code"].is_null());
}

#[test]
fn a_script_may_close_its_streams_and_goes_on() {
    let gate = Gate::new();
    let engine = Engine::new(&config(""), Host::new().threads(1).dispatch(answer)).unwrap();
    let run = engine
        .start(code(script!("closed_streams")), &gate.options(""))
        .unwrap();
    let mut script = gate.visitor();
    assert_eq!(script.line(), "still here");
    // All pipes are closed by now, and that is no end.
    assert!(run
        .wait(Some(Duration::from_millis(100)))
        .unwrap()
        .is_none());
    script.say("go");
    let ran = wait(&run);
    assert_eq!((ran.status(), &ran.json["exit_code"]), ("error", &json!(3)));
    assert!(ran.output().starts_with("before\n"), "{}", ran.output());
}

#[test]
fn a_stream_may_be_moved_and_opened_anew() {
    assert_eq!(
        ended(script!("moved_streams")).printed(),
        "first\nsecond\nthird\nfourth\nfifth"
    );
}

// ---- scripts that are stopped ----

#[test]
fn what_is_in_a_buffer_when_the_script_is_stopped_is_not_lost() {
    let both = "half a line\n--- stderr ---\nhalf a complaint\n";
    let ran = cancelled(LONG, script!("term_by_default"));
    assert_eq!(ran.output(), format!("{both}{INTERRUPTED}"));
    let ran = timed_out(LONG, script!("term_by_default"));
    assert!(ran.output().starts_with(both), "{}", ran.output());
    let ran = cancelled(LONG, script!("blocked_read"));
    assert_eq!(ran.output(), format!("prompt> \n{INTERRUPTED}"));
}

#[test]
fn a_script_that_cleans_up_when_it_is_asked_to_end_gets_the_time_for_it() {
    let words = "half a line;last words;at exit;";
    let ran = cancelled(LONG, script!("term_cleans_up"));
    assert_eq!(ran.output(), format!("{words}\n{INTERRUPTED}"));
    let ran = timed_out(LONG, script!("term_cleans_up"));
    assert!(ran.output().starts_with(words), "{}", ran.output());
}

#[test]
fn a_script_that_ignores_the_question_is_killed_after_the_grace() {
    let ran = cancelled(SHORT, script!("term_ignored"));
    assert_eq!(ran.output(), format!("kept\n{INTERRUPTED}"));
    let ran = timed_out(SHORT, script!("term_ignored"));
    assert!(
        ran.output().starts_with("kept\nScript timed out after "),
        "{}",
        ran.output()
    );
    assert!(ran.output().ends_with("s and was killed."));
}

#[test]
fn a_script_that_answers_with_words_for_ever_is_killed_after_the_grace() {
    let ran = cancelled(SHORT, script!("term_writes_on"));
    assert!(ran.output().contains("never!\n"));
    assert!(ran.output().ends_with(INTERRUPTED));
    assert_eq!(ran.json["stdout_truncated"], true);
}

#[test]
fn a_script_that_cannot_hear_the_question_is_killed_after_the_grace() {
    let ran = timed_out(SHORT, script!("long_call"));
    assert!(
        ran.output().starts_with("begun\nScript timed out"),
        "{}",
        ran.output()
    );
}

#[test]
fn a_stopped_script_is_waked_to_end() {
    // Without that it would take the whole grace, which is longer than anybody waits.
    let ran = cancelled(LONG, script!("stops_itself"));
    assert_eq!(ran.output(), format!("stopping\n{INTERRUPTED}"));
    let ran = timed_out(LONG, script!("stops_itself"));
    assert!(ran.output().starts_with("stopping\n"));
}

#[test]
fn five_hundred_threads_end_together() {
    let ran = cancelled(LONG, script!("threads"));
    assert_eq!(ran.output(), format!("501\n{INTERRUPTED}"));
}

#[test]
fn four_hundred_processes_end_together() {
    let ran = cancelled(SHORT, script!("fork_bomb"));
    assert_eq!(ran.output(), format!("400\n{INTERRUPTED}"));
}

// ---- calls that are under way ----

fn answer(call: &Call) {
    let args: Value = serde_json::from_str(call.args()).unwrap();
    let _ = call.reply(&args["value"].to_string());
}

#[test]
fn a_script_that_dies_in_a_call_leaves_it_unanswered() {
    let gate = Gate::new();
    let held = Arc::new(Watched::new(None::<Call>));
    let hold = Arc::clone(&held);
    let host = Host::new().threads(1).dispatch(move |call| {
        call.defer().unwrap();
        hold.change(|held| *held = Some(call.clone()));
    });
    let engine = Engine::new(&config(""), host).unwrap();
    let run = engine
        .start(code(script!("dies_in_call")), &gate.options(""))
        .unwrap();
    let mut script = gate.visitor();
    let call = held.wait(Option::is_some, |call| call.take().unwrap());
    assert!(call.is_wanted());
    script.say("now");
    let ran = wait(&run);
    assert!(!call.is_wanted());
    assert_eq!(call.reply("1").unwrap_err().code(), Code::State);
    assert_eq!(ran.status(), "error");
    assert!(ran.error().contains("SIGKILL"), "{}", ran.error());
    assert_eq!(ran.of_calls("state"), ["unanswered"]);
    assert_eq!(ran.json["tool_calls_made"], 1);
}

#[test]
fn a_run_that_ends_while_dispatch_is_inside_does_not_wait_for_it() {
    let gate = Gate::new();
    let (entered, leave) = (Arc::new(Watched::new(false)), Arc::new(Watched::new(false)));
    let (inside, may_leave) = (Arc::clone(&entered), Arc::clone(&leave));
    let host = Host::new().threads(1).dispatch(move |call| {
        inside.change(|entered| *entered = true);
        may_leave.wait(|leave| *leave, |_| ());
        assert_eq!(call.reply("1").unwrap_err().code(), Code::State);
    });
    let engine = Engine::new(&config(""), host).unwrap();
    let run = engine
        .start(code(script!("dies_in_call")), &gate.options(""))
        .unwrap();
    let mut script = gate.visitor();
    entered.wait(|entered| *entered, |_| ());
    script.say("now");
    assert_eq!(wait(&run).of_calls("state"), ["unanswered"]);
    leave.change(|leave| *leave = true);
    engine.close(None).unwrap();
}

// ---- those that leave the group ----

/// Whether the process is there and no zombie.
#[cfg(all(target_os = "linux", not(ptc_portable)))]
fn is_alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat
        .rsplit(')')
        .next()
        .and_then(|rest| rest.trim_start().chars().next());
    state.is_some_and(|state| !"ZX".contains(state))
}

#[test]
#[cfg(all(target_os = "linux", not(ptc_portable)))]
fn a_daemon_by_the_book_is_found_and_killed() {
    for holds_output in ["True", "False"] {
        let gate = Gate::new();
        let script = format!("HOLDS_OUTPUT = {holds_output}\n{}", script!("daemon"));
        let engine = echo_engine("");
        let run = engine.start(code(&script), &gate.options("")).unwrap();
        let mut visitor = gate.visitor();
        let pid = visitor.line();
        let ran = wait(&run);
        assert!(!is_alive(&pid), "{pid} is alive");
        assert_eq!(ran.printed(), "done\n");
        assert_eq!(ran.json["survivors"], 0);
        assert_soon(&ran);
        visitor.rest();
    }
}

#[test]
#[cfg(all(target_os = "linux", not(ptc_portable)))]
fn a_daemon_of_a_script_that_is_stopped_is_found_and_killed() {
    let script = format!(
        "HOLDS_OUTPUT = True\n{}\ngate.sendall(b'up\\n')\ngate.recv(1)",
        script!("daemon")
    );
    let gate = Gate::new();
    let engine = echo_engine(SHORT);
    let run = engine.start(code(&script), &gate.options("")).unwrap();
    let mut visitor = gate.visitor();
    let pid = visitor.line();
    assert_eq!(visitor.line(), "up");
    assert!(is_alive(&pid));
    run.cancel(None);
    let ran = wait(&run);
    assert!(!is_alive(&pid), "{pid} is alive");
    assert_eq!(ran.json["survivors"], 0);
    assert_eq!(ran.output(), format!("done\n{INTERRUPTED}"));
}

#[test]
#[cfg(all(target_os = "linux", not(ptc_portable)))]
fn daemons_that_beget_daemons_are_hunted_down() {
    let ran = ended(script!("daemon_storm"));
    assert_eq!(ran.printed(), "done\n");
    assert_eq!(ran.json["survivors"], 0);
}

#[test]
#[cfg(all(target_os = "linux", not(ptc_portable)))]
fn the_hunt_for_one_run_spares_the_daemons_of_another() {
    let gate = Gate::new();
    let engine = echo_engine(SHORT);
    let script = format!(
        "HOLDS_OUTPUT = False\n{}\ngate.sendall(b'up\\n')\ngate.recv(1)",
        script!("daemon")
    );
    let start = || {
        let run = engine.start(code(&script), &gate.options("")).unwrap();
        let mut visitor = gate.visitor();
        let pid = visitor.line();
        assert_eq!(visitor.line(), "up");
        (run, visitor, pid)
    };
    let (first, second) = (start(), start());
    first.0.cancel(None);
    wait(&first.0);
    assert!(!is_alive(&first.2) && is_alive(&second.2));
    second.0.cancel(None);
    wait(&second.0);
    assert!(!is_alive(&second.2));
}

// ---- the death of the host ----

/// Every engine that starts on this machine kills what dead hosts have left, by its tag. What the leash alone does shows
/// without one.
const NO_TAG: &str = "tag";

/// A host in a process of its own, which runs one script until it is killed.
struct OtherHost(Child);

impl OtherHost {
    fn start(temp: &Path, gate: &Gate, deny: &str, script: &str) -> OtherHost {
        let task = json!({"gate": gate.path(), "code": code(script)});
        let mut command = alone_command("other_host_alone", &task.to_string());
        command.env("PTC_TEST_DENY", deny);
        command
            .env("TMPDIR", temp)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        OtherHost(command.spawn().expect("it starts"))
    }

    fn kill(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for OtherHost {
    fn drop(&mut self) {
        // It is gone already unless the test has failed.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
#[ignore = "run by other tests, as a process that they kill"]
fn other_host_alone() {
    let Some(task) = alone() else { return };
    let task: Value = serde_json::from_str(&task).unwrap();
    let gate = PathBuf::from(task["gate"].as_str().unwrap());
    let options = json!({"env": {"GATE": gate}}).to_string();
    let host = Host::new().threads(2).dispatch(move |call| {
        // Tells that it is inside, and stays there.
        let mut gate = UnixStream::connect(&gate).unwrap();
        gate.write_all(b"dispatch\n").unwrap();
        let _ = std::io::Read::read(&mut gate, &mut [0]);
        let _ = call.reply("1");
    });
    let engine = Engine::new(&config(r#""kill_grace":100"#), host).unwrap();
    engine
        .execute(task["code"].as_str().unwrap(), &options)
        .unwrap();
}

fn entries(dir: &Path) -> usize {
    std::fs::read_dir(dir).unwrap().count()
}

/// Makes an engine, and ends it, in a process whose temporary directory is `temp`.
fn make_next_engine(temp: &Path) {
    let output = alone_command("next_engine_alone", "")
        .env("TMPDIR", temp)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );
}

#[test]
#[ignore = "run by other tests, in a process of its own"]
fn next_engine_alone() {
    if alone().is_some() {
        drop(engine(""));
    }
}

const CHILDREN: &str = "
import signal, subprocess
signal.signal(signal.SIGTERM, signal.SIG_IGN)
signal.signal(signal.SIGHUP, signal.SIG_IGN)
gate.set_inheritable(True)
for _ in range(3):
    subprocess.Popen(['sh', '-c', 'trap \"\" TERM; sleep 600'], pass_fds=[gate.fileno()])
if os.fork() > 0:
    gate.sendall(b'up\\n')
while True:
    signal.pause()
";

const BUSY: &str = "
gate.sendall(b'up\\n')
while True:
    print('x' * 1000)
";

const CALLS: &str = "
import hermes_tools, signal
gate.sendall(b'up\\n')
try:
    hermes_tools.echo(value=1)
finally:
    while True:
        signal.pause()
";

#[test]
fn a_script_dies_with_its_host() {
    let temp = TempDir::new();
    let mut scripts = vec![CHILDREN, BUSY, script!("term_ignored")];
    // Where no kernel watches, the script does it itself, and does not while it is stopped.
    if cfg!(all(target_os = "linux", not(ptc_portable))) {
        scripts.extend([script!("stops_itself"), script!("long_call")]);
    }
    for script in scripts {
        let gate = Gate::new();
        let host = OtherHost::start(temp.path(), &gate, NO_TAG, script);
        let mut visitor = gate.visitor();
        assert_eq!(visitor.line(), "up");
        // The engine of this host has removed what the one before has left.
        assert_eq!(entries(temp.path()), 1);
        host.kill();
        // The script would stay for ever.
        visitor.rest();
    }
    assert_eq!(entries(temp.path()), 1);
    make_next_engine(temp.path());
    assert_eq!(entries(temp.path()), 0);
}

#[test]
fn a_script_dies_with_a_host_that_is_inside_of_dispatch() {
    let (temp, gate) = (TempDir::new(), Gate::new());
    let host = OtherHost::start(temp.path(), &gate, NO_TAG, CALLS);
    let mut script = gate.visitor();
    assert_eq!(script.line(), "up");
    let mut dispatch = gate.visitor();
    assert_eq!(dispatch.line(), "dispatch");
    host.kill();
    script.rest();
    dispatch.rest();
    make_next_engine(temp.path());
    assert_eq!(entries(temp.path()), 0);
}

#[test]
#[cfg(target_os = "linux")]
fn a_host_may_die_at_any_moment() {
    let temp = TempDir::new();
    let mut random = 0x9E37_79B9_7F4A_7C15_u64;
    for _ in 0..30 {
        let gate = Gate::new();
        let host = OtherHost::start(temp.path(), &gate, NO_TAG, CALLS);
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        // A start takes some 100 ms: the moments are spread over it and over the call.
        std::thread::sleep(Duration::from_micros(random % 250_000));
        host.kill();
        wait_until_nobody_has(&gate);
    }
    make_next_engine(temp.path());
    assert_eq!(entries(temp.path()), 0);
}

/// Waits until no process has the gate's path in its environment. Of strangers there are no events to wait for.
#[cfg(target_os = "linux")]
fn wait_until_nobody_has(gate: &Gate) {
    use std::os::unix::ffi::OsStrExt as _;
    let path = gate.path();
    let needle = path.as_os_str().as_bytes();
    let has = |pid: PathBuf| {
        let environ = std::fs::read(pid.join("environ")).unwrap_or_default();
        environ
            .split(|byte| *byte == 0)
            .any(|pair| pair.ends_with(needle))
    };
    let anybody = || {
        std::fs::read_dir("/proc")
            .unwrap()
            .flatten()
            .any(|entry| has(entry.path()))
    };
    let begin = std::time::Instant::now();
    while anybody() {
        assert!(begin.elapsed() < PATIENCE, "a script outlives its host");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn the_sweep_of_a_new_engine_spares_what_belongs_to_a_living_one() {
    let temp = TempDir::new();
    let (dead_gate, live_gate) = (Gate::new(), Gate::new());
    let dead = OtherHost::start(temp.path(), &dead_gate, NO_TAG, BUSY);
    let live = OtherHost::start(temp.path(), &live_gate, NO_TAG, CHILDREN);
    let (mut dead_script, mut live_script) = (dead_gate.visitor(), live_gate.visitor());
    assert_eq!(
        (dead_script.line(), live_script.line()),
        ("up".into(), "up".into())
    );
    dead.kill();
    dead_script.rest();
    assert_eq!(entries(temp.path()), 2);
    make_next_engine(temp.path());
    assert_eq!(entries(temp.path()), 1, "one is gone, the other is in use");
    live.kill();
    live_script.rest();
}

#[test]
#[cfg(all(target_os = "linux", not(ptc_portable)))]
fn a_daemon_of_a_dead_host_is_found_by_the_next_engine_and_one_of_a_living_host_is_not() {
    let temp = TempDir::new();
    let script = format!(
        "HOLDS_OUTPUT = False\n{}\ngate.sendall(b'up\\n')\ngate.recv(1)",
        script!("daemon")
    );
    let start = |gate: &Gate| {
        let host = OtherHost::start(temp.path(), gate, "", &script);
        let mut visitor = gate.visitor();
        let pid = visitor.line();
        assert_eq!(visitor.line(), "up");
        (host, visitor, pid)
    };
    let (dead_gate, live_gate) = (Gate::new(), Gate::new());
    let (dead, dead_script, orphan) = start(&dead_gate);
    let (live, live_script, daemon) = start(&live_gate);
    dead.kill();
    dead_script.rest();
    make_next_engine(temp.path());
    assert!(!is_alive(&orphan) && is_alive(&daemon));
    live.kill();
    live_script.rest();
    make_next_engine(temp.path());
    assert!(!is_alive(&daemon));
}

#[test]
fn a_run_that_was_started_by_a_thread_that_is_no_more_goes_on() {
    let engine = echo_engine("");
    let gate = Gate::new();
    let options = gate.options("");
    let starter = engine.clone();
    let code = code("gate.sendall(b'up\\n')\nprint(gate.recv(4))");
    let start = move || starter.start(code, &options).unwrap();
    let run: Run = std::thread::spawn(start).join().unwrap();
    let mut script = gate.visitor();
    assert_eq!(script.line(), "up");
    script.say("bye");
    assert_eq!(wait(&run).printed(), "b'bye\\n'\n");
}

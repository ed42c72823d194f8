//! `terminal`.

use super::support::{execute, quoted, Ran, TempDir};
use super::{failure, run_in, support, value, value_in};
use serde_json::{json, Value};

#[test]
fn output_is_in_order_and_the_end_is_told() {
    let dir = TempDir::new();
    assert_eq!(
        value(&dir, "terminal('echo 1; echo 2 >&2; echo 3; exit 7')"),
        json!({"output": "1\n2\n3\n", "exit_code": 7, "error": null, "timed_out": false})
    );
    let ended = |command: &str| value(&dir, &format!("terminal({})", json!(command)));
    assert_eq!(ended("true")["exit_code"], 0);
    assert_eq!(ended("no-such-command")["exit_code"], 127);
    assert_eq!(ended("kill -9 $$")["exit_code"], 137);
    assert_eq!(ended("cat")["output"], "");
    assert_eq!(
        ended("printf '\\033[1mx\\033[0m \\377'")["output"],
        "x \u{fffd}"
    );
    assert!(
        failure(&dir, "terminal('a\\0b')").contains("NUL"),
        "a NUL byte is refused"
    );
}

#[test]
fn much_output_is_cut_in_the_middle() {
    let dir = TempDir::new();
    let code = "
o = terminal('echo first; yes | head -c 1000000; echo last')['output']
print(o[:6], o[-6:], '[output truncated at 50KB]' in o, len(o) < 51_000)";
    assert_eq!(
        run_in(&dir, "", code).printed(),
        "first\n \nlast\n True True\n"
    );
}

#[test]
fn a_time_limit_is_its_own() {
    let dir = TempDir::new();
    let got = value(
        &dir,
        "terminal('echo before; exec sleep 1000', timeout=0.2)",
    );
    assert_eq!(got["exit_code"], 124);
    assert_eq!(got["timed_out"], true);
    assert_eq!(got["output"], "before\n");
    assert_eq!(
        got["error"],
        "The command timed out after 0.2s and was killed."
    );
    for bad in ["0", "-1", "'soon'", "True"] {
        let error = failure(&dir, &format!("terminal('true', timeout={bad})"));
        assert!(error.contains("terminal.timeout"), "{error}");
    }
    assert_eq!(
        value(&dir, "terminal('true', timeout=10**30)")["exit_code"],
        0
    );
}

#[test]
fn background_jobs_end_with_the_command() {
    let dir = TempDir::new();
    // By plain POSIX means nobody finds what has left its session.
    let leaver = match cfg!(ptc_portable) {
        true => "sleep 1000 & echo $!",
        false => "(setsid sleep 1000 & echo $!; exec >&- 2>&-)",
    };
    let code = format!(
        "
import os
out = terminal('sleep 1000 & echo $!; {leaver} ; exit 0')
pids = [int(p) for p in out['output'].split()]
print(len(pids), [p for p in pids if os.path.exists(f'/proc/{{p}}/exe')])"
    );
    let ran = run_in(&dir, "", &code);
    assert_eq!(ran.printed(), "2 []\n");
    ran.assert_nothing_survived();
    for argument in ["background=True", "pty=True", "notify=True"] {
        let ran = run_in(&dir, "", &format!("terminal('true', {argument})"));
        let name = argument.split('=').next().unwrap();
        assert!(
            ran.error().contains("TypeError") && ran.error().contains(name),
            "{}",
            ran.error()
        );
        assert!(ran.error().contains("foreground only"), "{}", ran.error());
    }
}

#[test]
fn a_command_runs_where_it_is_told_to_and_takes_nothing_along() {
    let dir = TempDir::new();
    dir.write("sub/x", "");
    let here = dir.path().canonicalize().unwrap();
    let pwd =
        |arguments: &str| value(&dir, &format!("terminal('pwd'{arguments})"))["output"].clone();
    assert_eq!(pwd(""), format!("{}\n", here.display()));
    assert_eq!(pwd(", workdir='sub'"), format!("{}/sub\n", here.display()));
    assert_eq!(pwd(", workdir='/'"), "/\n");
    let twice = value(
        &dir,
        "[terminal('cd sub; X=1'), terminal('echo $X; pwd')][1]",
    );
    assert_eq!(twice["output"], format!("\n{}\n", here.display()));
    let missing = value(&dir, "terminal('pwd', workdir='none')");
    assert_eq!(missing["exit_code"], -1);
    assert!(
        missing["error"].as_str().unwrap().contains("none"),
        "{missing}"
    );
}

#[test]
fn the_environment_is_the_scripts_unless_the_hosts_is_wanted() {
    let dir = TempDir::new();
    // The marker is part of the environment of this test program, which cargo has given plenty of variables.
    let show = "terminal('echo \"$CARGO_MANIFEST_DIR|$EXTRA|$PTC_RPC_TOKEN|$PATH\"')['output']";
    let options = r#"{"env": {"EXTRA": "extra"}}"#;
    let shown = |more: &str| -> Ran {
        let config = format!(
            r#"{{"builtin_tools": ["terminal"], "terminal": {{"cwd": {}{more}}}}}"#,
            quoted(dir.path())
        );
        let code = format!("from hermes_tools import terminal\nprint({show}, end='')");
        execute(&support::engine(&config), options, code)
    };
    let path = std::env::var("PATH").unwrap();
    assert_eq!(shown("").printed(), format!("|extra||{path}\n"));
    let root = env!("CARGO_MANIFEST_DIR");
    assert_eq!(
        shown(r#", "env": "host""#).printed(),
        format!("{root}|||{path}\n")
    );
}

#[test]
fn a_command_ends_with_its_run() {
    let dir = TempDir::new();
    let config = format!(
        r#"{{"builtin_tools": "all", "terminal": {{"cwd": {}}}, "code_execution": {{"kill_grace": 0.1}}}}"#,
        quoted(dir.path())
    );
    let engine = support::engine(&config);
    let fifo = dir.join("started");
    let made = std::process::Command::new("mkfifo").arg(&fifo).status();
    assert!(made.unwrap().success());
    let leaver = if cfg!(ptc_portable) {
        ":"
    } else {
        "setsid sleep 1000 &"
    };
    let command =
        format!("trap '' TERM; echo $$ > started; ({leaver}) ; while :; do sleep 1; done");
    let code = format!(
        "from hermes_tools import terminal\nterminal({})",
        json!(command)
    );
    let run = engine.start(code, "").unwrap();
    let pid = std::fs::read_to_string(&fifo).unwrap();
    run.cancel(None);
    let ran = support::wait(&run);
    assert_eq!(ran.status(), "interrupted");
    assert_eq!(ran.of_calls("state"), ["unanswered"]);
    let exe = format!("/proc/{}/exe", pid.trim());
    assert!(
        !std::path::Path::new(&exe).exists(),
        "the command has survived its run"
    );
    ran.assert_nothing_survived();
}

#[test]
fn commands_run_at_once_up_to_the_limit() {
    let dir = TempDir::new();
    // Each of the two waits for the other to have begun.
    let code = "
a = \"mkfifo p q 2>/dev/null; echo x > p; cat q\"
b = \"while ! [ -p q ]; do :; done; cat p; echo y > q\"
print([r['output'].strip() for r in parallel([(terminal, a), (terminal, b)])])";
    assert_eq!(run_in(&dir, "", code).printed(), "['y', 'x']\n");
    let one_by_one = value_in(
        &dir,
        r#", "code_execution": {"max_parallel_calls": 1}"#,
        "[r['exit_code'] for r in parallel([(terminal, 'mkdir m && rmdir m')] * 8)]",
    );
    assert_eq!(one_by_one, Value::from(vec![0; 8]));
}

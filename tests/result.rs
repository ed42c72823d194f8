//! How a run can end, and what the result says of each end, word for word.

mod support;

use ptc::{Engine, EventKind, Run, Status};
use serde_json::json;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;
use support::*;

fn echo_engine(settings: &str) -> Engine {
    engine_with(
        &format!(r#"{{"code_execution":{{{settings}}},"tools":[{ECHO}]}}"#),
        echo,
    )
}

fn plain(code: &str) -> Ran {
    run("", "", code)
}

#[test]
#[ignore = "run by other tests, as a process with an environment of its own"]
fn child_with_an_environment_of_its_own() {
    serve_job();
}

// ---- ends ----

#[test]
fn success_is_stdout_alone() {
    let ran = plain("import sys\nprint('A')\nprint('warning', file=sys.stderr)");
    assert_eq!((ran.status(), ran.output()), ("success", "A\n"));
    for absent in [
        "error",
        "hint",
        "signal",
        "started",
        "stdout_path",
        "tool_calls_omitted",
    ] {
        assert!(!ran.has(absent), "{absent}: {:#}", ran.json);
    }
    assert_eq!(ran.json["exit_code"], 0);
    assert_eq!(ran.json["tool_calls_made"], 0);
    assert_eq!(ran.json["tool_calls"], json!([]));
    assert_eq!(
        (&ran.json["stdout_bytes"], &ran.json["stderr_bytes"]),
        (&json!(2), &json!(8))
    );
    assert_eq!(ran.json["stdout_truncated"], false);
    assert_eq!(ran.json["stderr_truncated"], false);
    ran.assert_nothing_survived();
    assert_eq!(ran.json["mode"], "project");
    assert_eq!(
        ran.text("cwd"),
        std::env::current_dir().unwrap().to_str().unwrap()
    );
    assert!(ran.text("python").starts_with('/'));
    assert_eq!(ran.json["isolation"]["requested"], "guard");
    for list in ["applied", "missing"] {
        assert!(ran.json["isolation"][list].is_array(), "{:#}", ran.json);
    }
    assert!(ran.json["duration_seconds"].as_f64().unwrap() > 0.0);
}

#[test]
fn the_first_keys_are_the_ones_that_every_result_has() {
    let outcome = engine("").execute("print(1)", "").unwrap();
    let begin = r#"{"status":"success","output":"1\n","tool_calls_made":0,"duration_seconds":"#;
    assert!(outcome.json().starts_with(begin), "{}", outcome.json());
    assert_eq!(
        (outcome.status(), outcome.output()),
        (Status::Success, "1\n")
    );
}

#[test]
fn another_exit_code_is_an_error_with_words() {
    let silent = |code: i64| format!("The script ended with exit code {code}.");
    let cases = [
        ("import sys; sys.exit(1)", 1, silent(1), silent(1)),
        ("import sys; sys.exit(3)", 3, silent(3), silent(3)),
        ("import sys; sys.exit(255)", 255, silent(255), silent(255)),
        ("import os; os._exit(7)", 7, silent(7), silent(7)),
        ("raise SystemExit(9)", 9, silent(9), silent(9)),
        ("print('A'); exit(4)", 4, silent(4), "A\n".into()),
        (
            "import sys; sys.exit('gave up')",
            1,
            "gave up".into(),
            "--- stderr ---\ngave up\n".into(),
        ),
        (
            "import sys; print('A', end=''); sys.exit('gave up')",
            1,
            "gave up".into(),
            "A\n--- stderr ---\ngave up\n".into(),
        ),
        (
            "import sys; sys.stderr.write(' \\n'); sys.exit(2)",
            2,
            silent(2),
            silent(2),
        ),
    ];
    for (code, exit_code, error, output) in cases {
        let ran = plain(code);
        assert_eq!(ran.status(), "error", "{code}");
        assert_eq!(ran.json["exit_code"], exit_code, "{code}");
        assert_eq!(ran.error(), error, "{code}");
        assert_eq!(ran.output(), output, "{code}");
        assert!(!ran.has("signal") && !ran.has("started"), "{code}");
    }
}

#[test]
fn the_error_of_an_uncaught_exception_is_the_line_that_names_it() {
    let cases = [
        ("raise ValueError('wrong')", "ValueError: wrong"),
        ("raise ValueError", "ValueError"),
        ("1/0", "ZeroDivisionError: division by zero"),
        ("raise ValueError('one\\ntwo')", "ValueError: one"),
        ("try:\n    1/0\nexcept Exception as e:\n    raise KeyError('k') from e", "KeyError: 'k'"),
        ("try:\n    1/0\nexcept Exception:\n    undefined_name", "NameError: name 'undefined_name' is not defined"),
        ("import json\njson.loads('{')", "json.decoder.JSONDecodeError: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"),
        ("class E(Exception):\n    pass\nraise E('mine')", "E: mine"),
        ("assert 1 == 2, 'no'", "AssertionError: no"),
        ("exec('x = = 1')", "SyntaxError: invalid syntax"),
    ];
    for (code, error) in cases {
        let ran = plain(&format!("print('before')\n{code}"));
        assert_eq!((ran.status(), ran.error()), ("error", error), "{code}");
        assert_eq!(ran.json["exit_code"], 1, "{code}");
        let (stdout, stderr) = ran.output().split_once("--- stderr ---\n").expect(code);
        assert_eq!(stdout, "before\n");
        assert!(stderr.contains(error), "{code}: {stderr}");
    }
}

#[test]
fn the_error_of_an_exception_group_is_its_own_line() {
    let ran = plain(
        "import sys\nif sys.version_info < (3, 11):\n    raise ValueError('several (2 sub-exceptions)')\n\
         raise ExceptionGroup('several', [ValueError('a'), ExceptionGroup('inner', [KeyError('b')])])",
    );
    assert!(
        ran.error().ends_with(": several (2 sub-exceptions)"),
        "{:#}",
        ran.json
    );
}

#[test]
fn a_very_long_error_line_is_shortened_in_error_and_not_in_output() {
    let ran = plain("raise ValueError('é' * 3000)");
    assert!(ran.error().starts_with("ValueError: ééé") && ran.error().ends_with("é…"));
    assert_eq!(ran.error().chars().count(), 501);
    assert!(ran.output().contains(&"é".repeat(3000)));
}

#[test]
fn a_signal_is_named_and_given_as_a_number() {
    let cases = [
        (
            "SIGKILL",
            9,
            "The script was killed by SIGKILL (signal 9), not by ptc: perhaps out of memory.",
        ),
        (
            "SIGSEGV",
            11,
            "The script was ended by SIGSEGV (signal 11).",
        ),
        (
            "SIGTERM",
            15,
            "The script was ended by SIGTERM (signal 15).",
        ),
        ("SIGABRT", 6, "The script was ended by SIGABRT (signal 6)."),
    ];
    for (name, number, error) in cases {
        let ran = plain(&format!(
            "import os, signal, resource\nresource.setrlimit(resource.RLIMIT_CORE, (0, 0))\nprint('A')\n\
             os.kill(os.getpid(), signal.{name})\nwhile True: signal.pause()"
        ));
        assert_eq!(ran.status(), "error", "{name}");
        assert_eq!(ran.json["signal"], number, "{name}");
        assert_eq!(ran.error(), error);
        assert_eq!(ran.output(), format!("A\n{error}"));
        assert!(!ran.has("exit_code"), "{name}");
    }
}

#[test]
fn a_keyboard_interrupt_ends_as_python_ends_by_it() {
    let ran = plain("print('A')\nraise KeyboardInterrupt");
    assert_eq!(ran.status(), "error");
    assert_eq!(ran.json["signal"], 2);
    assert_eq!(ran.error(), "The script was ended by SIGINT (signal 2).");
    assert!(
        ran.output().contains("KeyboardInterrupt"),
        "{}",
        ran.output()
    );
}

// ---- timeout and cancel ----

#[test]
fn a_timeout_gives_the_number_as_it_was_configured() {
    for text in ["0.5", "1", "1.0", "5e-1"] {
        let ran = run(
            &format!(r#"{{"code_execution":{{"timeout":{text},"kill_grace":0.1}}}}"#),
            "",
            "while True: pass",
        );
        let notice = format!("Script timed out after {text}s and was killed.");
        assert_eq!(
            (ran.status(), ran.error(), ran.output()),
            ("timeout", &*notice, &*notice)
        );
    }
    let ran = run(
        r#"{"code_execution":{"timeout":300}}"#,
        r#"{"timeout":0.25}"#,
        "while True: pass",
    );
    assert_eq!(ran.error(), "Script timed out after 0.25s and was killed.");
}

#[test]
fn output_before_a_timeout_is_kept() {
    let engine = engine("");
    // The first run of an engine also looks for the interpreter, and that takes from its time.
    execute(&engine, "", "print(1)").printed();
    let code = "import sys, time\nprint('A')\nsys.stdout.write('no line end')\nprint('E', file=sys.stderr)\ntime.sleep(600)";
    let ran = execute(&engine, r#"{"timeout":4}"#, code);
    assert_eq!(ran.status(), "timeout");
    assert_eq!(
        ran.output(),
        "A\nno line end\n--- stderr ---\nE\nScript timed out after 4s and was killed."
    );
    ran.assert_nothing_survived();
    assert_eq!(ran.json["signal"], 15);
    assert!(ran.json["duration_seconds"].as_f64().unwrap() >= 4.0);
}

/// Starts `code`, waits until it has printed `ready`, and gives the run.
fn started(engine: &Engine, code: &str) -> Run {
    let run = engine.start(code, "").unwrap();
    let mut seen = Vec::new();
    while !seen.ends_with(b"ready\n") {
        let event = run
            .next_event(Some(PATIENCE))
            .unwrap()
            .expect("an event in time");
        match event.kind() {
            EventKind::Stdout => seen.extend_from_slice(event.data()),
            EventKind::End => panic!("{:#}", wait(&run).json),
            _ => {}
        }
    }
    run
}

#[test]
fn a_cancelled_run_keeps_its_output_and_says_why() {
    let engine = engine("");
    let cases = [
        (None, "[execution interrupted - user sent a new message]"),
        (
            Some("the user pressed escape"),
            "[execution interrupted - the user pressed escape]",
        ),
    ];
    for (reason, notice) in cases {
        let run = started(&engine, "import time\nprint('ready')\ntime.sleep(600)");
        run.cancel(reason);
        run.cancel(Some("a second reason comes too late"));
        let ran = wait(&run);
        assert_eq!((ran.status(), ran.error()), ("interrupted", notice));
        assert_eq!(ran.output(), format!("ready\n{notice}"));
        ran.assert_nothing_survived();
        run.cancel(Some("and it has ended"));
        assert_eq!(wait(&run).json, ran.json);
    }
}

#[test]
fn a_script_may_use_its_grace_and_is_killed_when_it_ignores_it() {
    let engine = engine(r#"{"code_execution":{"kill_grace":60}}"#);
    let tidy = "import os, signal, sys\ndef bye(*_):\n    os.write(1, b'bye\\n')\n    sys.exit(0)\nsignal.signal(signal.SIGTERM, bye)\n\
                print('ready')\nwhile True: signal.pause()";
    let run = started(&engine, tidy);
    run.cancel(None);
    let ran = wait(&run);
    assert_eq!(
        ran.output(),
        "ready\nbye\n[execution interrupted - user sent a new message]"
    );
    assert_eq!(
        (ran.status(), &ran.json["exit_code"]),
        ("interrupted", &json!(0))
    );

    let engine = support::engine(r#"{"code_execution":{"kill_grace":0.2}}"#);
    let deaf = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('ready')\nwhile True: signal.pause()";
    let run = started(&engine, deaf);
    run.cancel(None);
    let ran = wait(&run);
    assert_eq!(
        ran.output(),
        "ready\n[execution interrupted - user sent a new message]"
    );
    assert_eq!(
        (ran.status(), &ran.json["signal"]),
        ("interrupted", &json!(9))
    );
}

#[test]
fn a_run_that_is_cancelled_at_once_ends_as_interrupted() {
    let engine = engine("");
    let run = engine.start("import time\ntime.sleep(600)", "").unwrap();
    run.cancel(None);
    let ran = wait(&run);
    assert_eq!(ran.status(), "interrupted");
    assert_eq!(
        ran.output(),
        "[execution interrupted - user sent a new message]"
    );
}

#[test]
fn a_stopped_run_tells_of_its_calls() {
    let config = format!(r#"{{"tools":[{ECHO}]}}"#);
    let engine = engine(&config);
    let run = engine
        .start(
            "from hermes_tools import echo\nprint(echo(value=1))\nprint(echo(value=2))",
            "",
        )
        .unwrap();
    let call = |run: &Run| loop {
        let event = run
            .next_event(Some(PATIENCE))
            .unwrap()
            .expect("a call in time");
        if let Some(call) = event.call() {
            return call.clone();
        }
    };
    call(&run).reply("\"first\"").unwrap();
    let second = call(&run);
    run.cancel(None);
    let ran = wait(&run);
    let lines: Vec<&str> = ran.output().lines().collect();
    assert_eq!(lines[0], "first");
    assert!(
        lines[1].starts_with("[tool calls: 2 made, 1 answered; echo was unanswered after "),
        "{}",
        lines[1]
    );
    assert_eq!(
        lines[2],
        "[execution interrupted - user sent a new message]"
    );
    assert_eq!(ran.of_calls("state"), ["answered", "unanswered"]);
    assert!(!second.is_wanted());
    assert!(second.reply("1").is_err());
}

#[test]
fn a_timeout_that_a_tool_has_caused_names_the_tool() {
    let config = format!(r#"{{"tools":[{ECHO}]}}"#);
    let engine = support::engine(&config);
    let run = engine
        .start(
            "from hermes_tools import echo\necho(value=1)",
            r#"{"timeout":4}"#,
        )
        .unwrap();
    let ran = wait(&run);
    assert_eq!(ran.status(), "timeout");
    assert!(ran
        .output()
        .ends_with("Script timed out after 4s and was killed."));
    assert!(
        ran.hint()
            .starts_with("The time went into waiting for echo, which had not answered after "),
        "{}",
        ran.hint()
    );
}

// ---- limits of the output ----

#[test]
fn up_to_the_limit_output_is_whole() {
    let ran = plain("import sys\nsys.stdout.write('x' * 50000)");
    assert_eq!(ran.printed(), "x".repeat(50_000));
    assert_eq!(ran.json["stdout_truncated"], false);
    assert_eq!(ran.json["stdout_bytes"], 50_000);
}

#[test]
fn one_byte_more_than_the_limit_is_cut_and_counted() {
    let ran = plain("import sys\nsys.stdout.write('a' * 20000 + 'm' + 'z' * 30000)");
    let notice = "\n[output truncated at 50KB] 1 of 50001 bytes are missing here\n";
    assert_eq!(
        ran.printed(),
        "a".repeat(20_000) + notice + &"z".repeat(30_000)
    );
    assert_eq!(ran.json["stdout_truncated"], true);
    assert_eq!(ran.json["stdout_bytes"], 50_001);
    assert!(!ran.has("stdout_path"));
}

#[test]
fn the_label_is_the_configured_limit() {
    for (limit, label) in [
        ("2000", "2KB"),
        ("1000000", "1MB"),
        ("1234", "1234 bytes"),
        ("1", "1 bytes"),
    ] {
        let settings = format!(r#"{{"code_execution":{{"max_stdout_bytes":{limit}}}}}"#);
        let ran = run(&settings, "", "import sys\nsys.stdout.write('x' * 2000000)");
        assert!(
            ran.printed()
                .contains(&format!("[output truncated at {label}] ")),
            "{limit}"
        );
    }
}

#[test]
fn characters_stay_whole_at_both_cuts() {
    let engine = engine(r#"{"code_execution":{"max_stdout_bytes":1000}}"#);
    for character in ["é", "中", "🎉"] {
        for shift in 0..character.len() {
            let code = format!("import sys\nsys.stdout.write('x' * {shift} + '{character}' * 700)");
            let ran = execute(&engine, "", &code);
            let text = ran.printed();
            assert!(!text.contains('\u{fffd}'), "{character} {shift}");
            let (head, rest) = text.split_once("\n[output truncated at 1KB] ").unwrap();
            let (numbers, tail) = rest.split_once('\n').unwrap();
            let total = shift + 700 * character.len();
            assert!(
                head.len() <= 400 && head.len() > 400 - character.len(),
                "{}",
                head.len()
            );
            assert!(
                tail.len() <= 600 && tail.len() > 600 - character.len(),
                "{}",
                tail.len()
            );
            let missing = total - head.len() - tail.len();
            assert_eq!(
                numbers,
                format!("{missing} of {total} bytes are missing here")
            );
        }
    }
}

#[test]
fn what_is_cut_is_in_a_file_if_there_is_a_place_for_it() {
    let dir = TempDir::new();
    let config = format!(
        r#"{{"code_execution":{{"max_stdout_bytes":1000,"spill_dir":{}}}}}"#,
        quoted(dir.join("new/place"))
    );
    let engine = engine(&config);
    let ran = execute(&engine, "", "for i in range(1000): print('line', i, 'é')");
    let path = ran.text("stdout_path");
    assert!(
        path.starts_with(dir.join("new/place").to_str().unwrap()),
        "{path}"
    );
    let whole: String = (0..1000).map(|i| format!("line {i} é\n")).collect();
    assert_eq!(std::fs::read_to_string(path).unwrap(), whole);
    assert_eq!(
        std::fs::metadata(path).unwrap().permissions().mode() & 0o777,
        0o600
    );
    assert!(ran.printed().contains(&format!(
        " bytes are missing here; the whole output is in {path}\n"
    )));

    let before = std::fs::read_dir(dir.join("new/place")).unwrap().count();
    let ran = execute(&engine, "", "import sys\nsys.stdout.write('x' * 1000)");
    assert!(ran.printed().len() == 1000 && !ran.has("stdout_path"));
    assert_eq!(
        std::fs::read_dir(dir.join("new/place")).unwrap().count(),
        before
    );
}

#[test]
fn the_file_is_capped_too_and_says_so() {
    let dir = TempDir::new();
    let config = format!(
        r#"{{"code_execution":{{"max_stdout_bytes":10,"max_spill_bytes":100,"spill_dir":{}}}}}"#,
        quoted(dir.path())
    );
    let ran = run(&config, "", "import sys\nsys.stdout.write('x' * 5000)");
    let text = std::fs::read_to_string(ran.text("stdout_path")).unwrap();
    assert_eq!(text, "x".repeat(100) + "\n[spill capped at 100 bytes]\n");
}

#[test]
fn a_place_that_cannot_be_written_costs_nothing_but_a_note() {
    let dir = TempDir::new();
    dir.write("file", "");
    let config = format!(
        r#"{{"code_execution":{{"max_stdout_bytes":10,"spill_dir":{}}}}}"#,
        quoted(dir.join("file/below"))
    );
    let ran = run(&config, "", "print('x' * 100)");
    assert_eq!(ran.status(), "success");
    assert!(!ran.has("stdout_path"));
    assert!(
        ran.hint().contains("code_execution.spill_dir"),
        "{}",
        ran.hint()
    );
}

#[test]
fn stderr_has_a_limit_of_its_own() {
    let ran =
        plain("import sys\nsys.stderr.write('a' * 4000 + 'm' * 12345 + 'z' * 6000)\nsys.exit(1)");
    let notice = "\n[output truncated at 10KB] 12345 of 22345 bytes are missing here\n";
    let stderr = "a".repeat(4000) + notice + &"z".repeat(6000);
    assert_eq!(ran.output(), format!("--- stderr ---\n{stderr}"));
    assert_eq!(ran.json["stderr_bytes"], 22_345);
    assert_eq!(ran.json["stderr_truncated"], true);
    assert_eq!(ran.json["stdout_truncated"], false);

    let ran = run(r#"{"code_execution":{"max_stderr_bytes":0}}"#, "", "1/0");
    assert_eq!(ran.status(), "error");
    assert!(
        !ran.error().is_empty() && !ran.output().is_empty(),
        "{:#}",
        ran.json
    );
}

#[test]
fn ten_megabytes_without_a_line_end_are_taken() {
    let ran = plain("import os\nleft = memoryview(b'x' * 10000000)\nwhile left: left = left[os.write(1, left):]");
    assert_eq!(ran.json["stdout_bytes"], 10_000_000);
    assert!(ran
        .printed()
        .contains("[output truncated at 50KB] 9950000 of 10000000 bytes are missing here"));
}

// ---- text ----

#[test]
fn output_is_utf8_text_whatever_was_written() {
    let code = r"
import os, sys
print('\x1b[1;31mred\x1b[0m and \x1b]0;title\x07plain')
print('lone \ud800 and \udfff')
sys.stdout.flush()
os.write(1, b'bad \xff\xfe, cut \xf0\x9f\x8e\n')
os.write(1, b'latin \xe9t\xe9\n')
print('é 中 🎉 \0 \x07')
";
    let ran = plain(code);
    let lines: Vec<&str> = ran.printed().lines().collect();
    assert_eq!(
        lines,
        [
            "red and plain",
            "lone \u{fffd} and \u{fffd}",
            "bad \u{fffd}\u{fffd}, cut \u{fffd}",
            "latin \u{fffd}t\u{fffd}",
            "é 中 🎉 \0 \x07",
        ]
    );
}

#[test]
fn stderr_is_cleaned_like_stdout() {
    let ran = plain("import os\nos.write(2, b'\\x1b[31mbad \\xff\\x1b[0m\\n')\nos._exit(1)");
    assert_eq!(ran.output(), "--- stderr ---\nbad \u{fffd}\n");
    assert_eq!(ran.error(), "bad \u{fffd}");
}

#[test]
fn a_character_written_in_two_pieces_is_one() {
    let code = "import os, time\nfor byte in '🎉é'.encode():\n    os.write(1, bytes([byte]))\n    time.sleep(0.01)";
    assert_eq!(plain(code).printed(), "🎉é");
}

// ---- secrets ----

const SECRETS: [(&str, Option<&str>); 3] = [
    ("SOME_API_KEY", Some("hunter2-hunter2")),
    ("SHORT_TOKEN", Some("short12")),
    ("PLAIN_NAME", Some("no-secret-at-all")),
];

fn with_secrets(config: &str, options: &str, code: &str) -> Ran {
    Job {
        env: &SECRETS,
        config,
        options,
        code,
        ..Job::default()
    }
    .run()
}

#[test]
fn secrets_do_not_come_out() {
    let code = "import os, sys, time\nsecret = 'hunter2' + '-hunter2'\nprint('a', secret, 'b', secret + secret)\n\
                os.write(1, secret[:5].encode())\ntime.sleep(0.05)\nos.write(1, secret[5:].encode())\n\
                print('', 'short12', 'no-secret-at-all', secret[:-1])\n\
                print('\\x1b[1m'.join(secret))\n\
                print('in stderr:', secret, file=sys.stderr)\nraise ValueError(secret)";
    let ran = with_secrets("", "", code);
    let (stdout, stderr) = ran.output().split_once("--- stderr ---\n").unwrap();
    assert_eq!(
        stdout,
        "a [redacted] b [redacted][redacted]\n[redacted] short12 no-secret-at-all hunter2-hunter\n[redacted]\n"
    );
    assert!(stderr.starts_with("in stderr: [redacted]\n"), "{stderr}");
    assert_eq!(ran.error(), "ValueError: [redacted]");
    assert!(
        !ran.json.to_string().contains("hunter2-hunter2"),
        "{:#}",
        ran.json
    );
}

#[test]
fn a_secret_over_a_cut_of_the_output_leaves_no_piece() {
    for shift in 0..20 {
        let code = format!("print('x' * {shift} + ('hunter2-' + 'hunter2 ') * 200)");
        let ran = with_secrets(r#"{"code_execution":{"max_stdout_bytes":1000}}"#, "", &code);
        assert!(
            !ran.printed().contains("hunter2"),
            "{shift}: {}",
            ran.output()
        );
    }
}

#[test]
fn the_file_with_the_whole_output_holds_no_secret() {
    let dir = TempDir::new();
    let config = format!(
        r#"{{"code_execution":{{"max_stdout_bytes":100,"spill_dir":{}}}}}"#,
        quoted(dir.path())
    );
    let ran = with_secrets(
        &config,
        "",
        "for n in range(50): print(n, 'hunter2' + '-hunter2')",
    );
    let text = std::fs::read_to_string(ran.text("stdout_path")).unwrap();
    let expected: String = (0..50).map(|n| format!("{n} [redacted]\n")).collect();
    assert_eq!(text, expected);
}

#[test]
fn output_that_is_shown_while_the_script_runs_holds_no_secret() {
    // The command shows what the events bring.
    let dir = TempDir::new();
    let code = "import os, sys\nsecret = 'hunter2' + '-hunter2'\n\
                for stream in sys.stdout, sys.stderr:\n    \
                stream.write('a ' + secret[:5]); stream.flush()\n    \
                stream.write(secret[5:] + ' b'); stream.flush()\n";
    let script = dir.write("script.py", code);
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_ptc"))
        .arg("run")
        .arg(script)
        .env("SOME_API_KEY", "hunter2-hunter2")
        .output()
        .unwrap();
    assert_eq!(output.stdout, b"a [redacted] b");
    assert_eq!(output.stderr, b"a [redacted] b");
}

#[test]
fn a_secret_that_was_passed_on_is_none() {
    let options = r#"{"env_passthrough":["SOME_API_KEY"]}"#;
    let ran = with_secrets("", options, "import os\nprint(os.environ['SOME_API_KEY'])");
    assert_eq!(ran.printed(), "hunter2-hunter2\n");
}

#[test]
fn the_ledger_shows_no_secret() {
    let config = format!(r#"{{"tools":[{ECHO}]}}"#);
    let code = "from hermes_tools import echo\ns = 'hunter2-' + 'hunter2'\necho(value=s)\necho(value='x' * 60 + s)\nprint(1)";
    let ran = with_secrets(&config, "", code);
    let previews = ran.of_calls("args_preview");
    assert_eq!(previews[0], r#"{"value":"[redacted]"}"#);
    assert!(!previews[1].contains("hunter"), "{}", previews[1]);
}

#[test]
fn the_ledger_shows_no_piece_of_a_secret_wherever_it_is_cut() {
    let config = format!(r#"{{"tools":[{ECHO}],"code_execution":{{"max_tool_calls":200}}}}"#);
    let code = format!(
        "{RAW_CALL}\nfrom hermes_tools import echo\ns = 'hunter2-' + 'hunter2'\n\
         for n in range(80): echo(value='x' * n + (s + ' ') * 20)\nraw(s)\nraw('no ' + s)\n"
    );
    let ran = with_secrets(&config, "", &code);
    ran.printed();
    for preview in ran.of_calls("args_preview") {
        let rest = preview.replace("[redacted]", "");
        assert!(!rest.contains("hu"), "{preview}");
    }
    let tools = ran.of_calls("tool");
    assert_eq!(tools[80..], ["[redacted]", "no [redacted]"]);
}

#[test]
fn a_secret_is_found_in_the_forms_that_programs_give_it() {
    let config = format!(r#"{{"tools":[{ECHO}]}}"#);
    let job = |code| Job {
        env: &[("ODD_SECRET", Some("pa\"ss\\wörd-one\n"))],
        config: &config,
        code,
        ..Job::default()
    };
    let code = "import json, sys\nfrom hermes_tools import echo\n\
                secret = 'pa' + '\"ss\\\\wörd-' + 'one'\n\
                print(secret, repr(secret), json.dumps([secret]), json.dumps(secret, ensure_ascii=False))\n\
                echo(value=secret)\nraise ValueError(secret + '\\n')\n";
    let ran = job(code).run();
    let stdout = "[redacted] '[redacted]' [\"[redacted]\"] \"[redacted]\"\n";
    assert!(ran.output().starts_with(stdout), "{}", ran.output());
    assert_eq!(ran.error(), "ValueError: [redacted]");
    assert_eq!(ran.of_calls("args_preview"), [r#"{"value":"[redacted]"}"#]);
    let all = ran.json.to_string();
    assert!(!all.contains("rd-one"), "{all}");
}

// ---- tool calls ----

/// Speaks the wire protocol itself, since the generated module has no function for a tool that there is not.
const RAW_CALL: &str = "
import json, os, socket
def raw(tool, **args):
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(os.environ['PTC_RPC_SOCKET'])
        s.sendall((json.dumps({'token': os.environ['PTC_RPC_TOKEN']}) + '\\n').encode())
        s.sendall((json.dumps({'id': 1, 'tool': tool, 'args': args}) + '\\n').encode())
        return json.loads(s.makefile().readline())
";

#[test]
fn the_ledger_tells_what_became_of_each_call() {
    let tools =
        format!(r#"{{"tools":[{ECHO},{{"name":"broken","description":"","input_schema":{{}}}}]}}"#);
    let engine = engine_with(&tools, |tool, args| match tool {
        "echo" => echo(tool, args),
        _ => Err("it is broken".into()),
    });
    let code = format!(
        "{RAW_CALL}\nfrom hermes_tools import echo, broken\nprint(echo(value=[1, 'é']))\nprint(broken())\nprint(raw('none'))\n\
         echo(value='y' * 200)"
    );
    let ran = execute(&engine, "", &code);
    assert_eq!(
        ran.printed(),
        "[1, 'é']\n{'error': 'it is broken'}\n\
         {'id': 1, 'error': \"Tool 'none' is not available in execute_code. Available: broken, echo\"}\n"
    );
    assert_eq!(
        ran.of_calls("state"),
        ["answered", "failed", "refused", "answered"]
    );
    assert_eq!(ran.of_calls("tool"), ["echo", "broken", "none", "echo"]);
    assert_eq!(ran.json["tool_calls_made"], 3);
    let previews = ran.of_calls("args_preview");
    assert_eq!(&previews[1..3], ["{}", "{}"]);
    assert!(previews[3].starts_with(r#"{"value":"yyy"#) && previews[3].ends_with("y…"));
    assert_eq!(previews[3].chars().count(), 80);
    let mut last = 0;
    for call in ran.calls() {
        let id = call["id"].as_u64().unwrap();
        assert!(id > last, "{:#}", ran.json);
        last = id;
        assert!(call["duration_seconds"].as_f64().unwrap() >= 0.0);
        assert!(call["request_bytes"].as_u64().unwrap() > 20);
        assert!(call["reply_bytes"].as_u64().unwrap() > 10);
    }
}

#[test]
fn a_long_ledger_keeps_both_ends_and_counts_the_middle() {
    let engine = echo_engine(r#""max_tool_calls":1000"#);
    let ran = execute(
        &engine,
        "",
        "from hermes_tools import echo\nfor i in range(250): echo(value=i)\nprint('done')",
    );
    assert_eq!(ran.printed(), "done\n");
    assert_eq!(ran.json["tool_calls_made"], 250);
    assert_eq!(ran.json["tool_calls_omitted"], 50);
    let expected: Vec<String> = (0..100)
        .chain(150..250)
        .map(|i| format!(r#"{{"value":{i}}}"#))
        .collect();
    assert_eq!(ran.of_calls("args_preview"), expected);
}

#[test]
fn at_the_limit_calls_are_refused_and_the_script_goes_on() {
    let code =
        "from hermes_tools import echo\nfor i in range(4): print(echo(value=i))\nprint('end')";
    let engine = echo_engine(r#""max_tool_calls":2"#);
    let refusal =
        "{'error': 'Tool call limit reached (2). No more tool calls allowed in this execution.'}\n";
    let ran = execute(&engine, "", code);
    assert_eq!(ran.printed(), format!("0\n1\n{refusal}{refusal}end\n"));
    assert_eq!(ran.json["tool_calls_made"], 2);
    assert_eq!(
        ran.of_calls("state"),
        ["answered", "answered", "refused", "refused"]
    );
    // A run's own limit, up and down.
    let ran = execute(&engine, r#"{"max_tool_calls":3}"#, code);
    assert_eq!(ran.json["tool_calls_made"], 3);
    assert!(ran.printed().contains("limit reached (3)"));
    let ran = execute(&engine, r#"{"max_tool_calls":0}"#, code);
    assert_eq!(ran.json["tool_calls_made"], 0);
    assert!(ran.printed().contains("limit reached (0)"));
}

#[test]
fn the_default_limit_is_fifty() {
    let ran = execute(
        &echo_engine(""),
        "",
        "from hermes_tools import echo\nr = [echo(value=i) for i in range(51)]\nprint(r[-1])",
    );
    assert_eq!(
        ran.printed(),
        "{'error': 'Tool call limit reached (50). No more tool calls allowed in this execution.'}\n"
    );
}

#[test]
fn a_failed_call_is_counted_and_a_refused_one_is_not() {
    let engine = engine_with(
        &format!(r#"{{"code_execution":{{"max_tool_calls":2}},"tools":[{ECHO}]}}"#),
        |_, _| Err("no".into()),
    );
    let code = format!("{RAW_CALL}\nfrom hermes_tools import echo\nfor _ in range(3): raw('other')\nfor _ in range(3): print(echo())");
    let ran = execute(&engine, "", &code);
    assert_eq!(ran.json["tool_calls_made"], 2);
    assert!(ran
        .printed()
        .starts_with("{'error': 'no'}\n{'error': 'no'}\n{'error': 'Tool call limit"));
}

#[test]
fn with_no_tools_a_refusal_says_that_there_are_none() {
    let ran = plain(&format!(
        "{RAW_CALL}\nprint(raw('read_file', path='x')['error'])"
    ));
    assert_eq!(
        ran.printed(),
        "Tool 'read_file' is not available in execute_code. Available: none\n"
    );
}

#[test]
fn a_thousand_refusals_end_the_run() {
    let engine = echo_engine(r#""max_tool_calls":1"#);
    let code = "from hermes_tools import echo\nprint('A')\nwhile True: echo(value=1)";
    let ran = execute(&engine, "", code);
    assert_eq!(ran.status(), "error");
    let notice = "The script was ended: 1000 of its tool calls were refused.";
    assert_eq!(ran.error(), notice);
    assert_eq!(ran.output(), format!("A\n{notice}"));
    assert_eq!(ran.json["tool_calls_made"], 1);
    assert_eq!(ran.calls().len(), 200);
    assert!(ran.json["tool_calls_omitted"] == 801);

    let fewer = "from hermes_tools import echo\nfor _ in range(1000): r = echo(value=1)\nprint('still here')";
    assert_eq!(execute(&engine, "", fewer).printed(), "still here\n");
}

#[test]
fn an_error_raises_if_the_host_wants_that() {
    let engine = echo_engine(r#""max_tool_calls":1,"on_tool_error":"raise""#);
    let ran = execute(&engine, "", "from hermes_tools import echo, ToolError\necho(value=1)\ntry:\n    echo(value=2)\n\
                                   except ToolError as e:\n    print(e.tool, '-', e.message)\necho(value=3)");
    assert_eq!(ran.status(), "error");
    let message = "Tool call limit reached (1). No more tool calls allowed in this execution.";
    assert!(
        ran.output().starts_with(&format!("echo - {message}\n")),
        "{}",
        ran.output()
    );
    assert!(
        ran.error()
            .ends_with(&format!("ToolError: echo: {message}")),
        "{}",
        ran.error()
    );
}

// ---- capture on every way out ----

#[test]
fn output_is_kept_on_every_way_out() {
    let cases = [
        (
            "os.write",
            "import os\nos.write(1, b'A\\n')",
            "success",
            "A\n",
        ),
        (
            "no line end",
            "import sys\nsys.stdout.write('A')",
            "success",
            "A",
        ),
        (
            "os._exit",
            "import os\nprint('A')\nos._exit(0)",
            "success",
            "A\n",
        ),
        (
            "a subprocess",
            "import subprocess\nprint('A')\nsubprocess.run(['echo', 'B'])\nprint('C')",
            "success",
            "A\nB\nC\n",
        ),
        (
            "os.system",
            "import os\nos.system('echo A; echo B >&2')",
            "success",
            "A\n",
        ),
        (
            "exec",
            "import os\nprint('A')\nos.execvp('echo', ['echo', 'B'])",
            "success",
            "A\nB\n",
        ),
        (
            "closed stdout",
            "import sys\nprint('A')\nsys.stdout.close()",
            "success",
            "A\n",
        ),
        (
            "closed descriptors",
            "import os\nprint('A')\nos.close(1)\nos.close(2)",
            "success",
            "A\n",
        ),
        (
            "dup2",
            "import os\nprint('A')\nos.dup2(2, 1)\nprint('B')",
            "success",
            "A\n",
        ),
        (
            "dup2 back",
            "import os\nout = os.dup(1)\nos.dup2(2, 1)\nprint('lost')\nos.dup2(out, 1)\nprint('A')",
            "success",
            "A\n",
        ),
        (
            "a thread",
            "import threading\nt = threading.Thread(target=print, args=('A',))\nt.start()",
            "success",
            "A\n",
        ),
        (
            "atexit",
            "import atexit\natexit.register(print, 'A')",
            "success",
            "A\n",
        ),
        (
            "a forked child",
            "import os\npid = os.fork()\nprint('A' if pid else 'A', flush=True)\npid and os.wait()",
            "success",
            "A\nA\n",
        ),
        (
            "a binary layer",
            "import sys\nsys.stdout.buffer.write(b'A\\n')",
            "success",
            "A\n",
        ),
        (
            "a signal",
            "import os, signal\nprint('A')\nos.kill(os.getpid(), signal.SIGHUP)\nsignal.pause()",
            "error",
            "A\nThe script was ended by SIGHUP (signal 1).",
        ),
    ];
    let engine = engine("");
    for (name, code, status, output) in cases {
        let ran = execute(&engine, "", code);
        assert_eq!(
            (ran.status(), ran.output()),
            (status, output),
            "{name}: {:#}",
            ran.json
        );
    }
}

#[test]
fn a_process_that_is_left_behind_delays_nothing_and_loses_nothing() {
    let code = "import subprocess, sys\np = subprocess.Popen(['sh', '-c', 'echo B; echo >&2; exec sleep 600'], stderr=subprocess.PIPE)\n\
                p.stderr.read(1)\nprint('A')";
    let ran = plain(code);
    assert_eq!(ran.printed(), "B\nA\n");
    ran.assert_nothing_survived();
    assert!(ran.json["duration_seconds"].as_f64().unwrap() < 300.0);
}

#[test]
fn output_comes_in_events_while_the_script_runs() {
    let engine = engine("");
    let run = started(
        &engine,
        "import sys, time\nprint('E', file=sys.stderr)\nprint('ready')\ntime.sleep(600)",
    );
    assert!(run.wait(Some(Duration::ZERO)).unwrap().is_none());
    run.cancel(None);
    let mut kinds = Vec::new();
    while let Some(event) = run.next_event(Some(PATIENCE)).unwrap() {
        kinds.push(event.kind());
    }
    assert_eq!(kinds.last(), Some(&EventKind::End));
    wait(&run);
}

// ---- hints ----

#[test]
fn known_mistakes_are_explained() {
    let cases = [
        (
            "from hermes_tools import echo\necho(value=1)",
            "The script printed nothing: only what it prints comes back, so print the result.",
        ),
        (
            "import surely_no_such_module",
            "surely_no_such_module is not installed for the interpreter that runs scripts, ",
        ),
        (
            "import json\nfrom hermes_tools import echo\njson.loads(echo(value={'a': 1}))",
            "Tool results are parsed already: use them as they are, without json.loads.",
        ),
        (
            "from hermes_tools import echo\necho(value='text')['data']",
            "A string was used as an object: print the value to see what the tool returns.",
        ),
        ("from hermes_tools import wiki_search", "echo"),
        (
            "async def f(): return {}\nf()['a']",
            "A coroutine was used as if it were its result: await it.",
        ),
    ];
    let engine = echo_engine("");
    for (code, hint) in cases {
        let ran = execute(&engine, "", code);
        assert!(ran.hint().contains(hint), "{code}: {:#}", ran.json);
    }
    let strict = execute(&engine, r#"{"mode":"strict"}"#, "open('data.csv')");
    assert!(
        strict
            .hint()
            .starts_with("Scripts run in an empty temporary directory in strict mode"),
        "{}",
        strict.hint()
    );
    assert!(!execute(&engine, "", "print(1)").has("hint"));
    let value = execute(
        &engine,
        "",
        "from hermes_tools import echo\nprint(echo(value=1))",
    );
    assert_eq!((value.printed(), value.has("hint")), ("1\n", false));
}

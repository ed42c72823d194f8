//! The command `ptc`, from outside: exit statuses, streams, tools, signals.

#[path = "support/cli.rs"]
mod cli;

use cli::{broken_pipe, expect_line, json, ptc, run, send, start, text, Folder};
use std::io::{BufReader, Read};
use std::process::{Command, Stdio};

#[test]
fn success_prints_the_output_and_nothing_else() {
    let folder = Folder::new();
    let script = folder.write(
        "s.py",
        "import sys\nprint('out')\nprint('err', file=sys.stderr)\n",
    );
    let output = ptc(&["run", &script]).output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(
        (text(&output.stdout), text(&output.stderr)),
        ("out\n", "err\n")
    );
}

#[test]
fn a_failed_script_shows_its_own_traceback_and_no_more() {
    let output = run("print('before')\n1/0\n", &[]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(text(&output.stdout), "before\n");
    assert!(text(&output.stderr).ends_with("ZeroDivisionError: division by zero\n"));
    assert_eq!(run("import sys; sys.exit(3)", &[]).status.code(), Some(1));
    assert_eq!(run("x = = 1", &[]).status.code(), Some(1));
}

#[test]
fn a_script_that_cannot_be_started_says_why() {
    let output = run("print(1)", &["--python", "/no/such/python"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        text(&output.stderr).contains("/no/such/python"),
        "{}",
        text(&output.stderr)
    );
}

#[test]
fn a_timeout_keeps_the_output_and_has_its_own_status() {
    // Long enough for a busy machine to get to the first line.
    let code = "print('kept')\nimport time\ntime.sleep(1000)\n";
    let output = run(code, &["--timeout=4"]);
    assert_eq!(output.status.code(), Some(124));
    assert_eq!(text(&output.stdout), "kept\n");
    let notice = "ptc: Script timed out after 4s and was killed.\n";
    assert_eq!(text(&output.stderr), notice);
}

#[test]
fn an_interrupt_cancels_and_keeps_the_output() {
    for signal in ["-INT", "-TERM"] {
        let mut child = start("print('ready')\nimport time\ntime.sleep(1000)\n", &[]);
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        expect_line(&mut stdout, "ready");
        send(signal, &child);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(130));
        assert!(text(&output.stderr).contains("[execution interrupted - "));
    }
}

#[test]
fn a_second_interrupt_does_not_wait_for_a_deaf_script() {
    let code = "import os, signal, time\nsignal.signal(signal.SIGTERM, lambda *_: os.write(1, b'deaf\\n'))\nprint('ready')\nwhile True: time.sleep(1)\n";
    let config = Folder::new();
    let patient = config.write("c.json", r#"{"code_execution": {"kill_grace": 3600}}"#);
    let mut child = start(code, &["--config", &patient]);
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    for expected in ["ready", "deaf"] {
        expect_line(&mut stdout, expected);
        send("-INT", &child);
    }
    assert_eq!(child.wait().unwrap().code(), Some(130));
    // The kernel has killed the script: nobody holds its output any more.
    let mut rest = Vec::new();
    stdout.read_to_end(&mut rest).unwrap();
}

#[test]
fn output_appears_while_the_script_runs() {
    let folder = Folder::new();
    let seen = folder.path("seen");
    let code = format!("import os, time\nprint('first')\nwhile not os.path.exists({seen:?}): time.sleep(0.01)\nprint('second')\n");
    let mut child = start(&code, &[]);
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    expect_line(&mut stdout, "first");
    folder.write("seen", "");
    expect_line(&mut stdout, "second");
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_reader_that_goes_away_ends_the_run_quietly() {
    let mut child = start("while True: print('x' * 1000)\n", &[]);
    let mut first = [0; 10];
    child.stdout.take().unwrap().read_exact(&mut first).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(text(&output.stderr), "");
}

#[test]
fn a_hangup_is_an_interrupt_but_not_under_nohup() {
    let code = "import time\nprint('ready')\nwhile True: time.sleep(1)\n";
    let folder = Folder::new();
    // These tests may themselves run under nohup, whose choice is inherited.
    let reset = "import os, signal, sys\nsignal.signal(signal.SIGHUP, signal.SIG_DFL)\nos.execv(sys.argv[1], sys.argv[1:])";
    let mut child = Command::new("python3")
        .args(["-c", reset, env!("CARGO_BIN_EXE_ptc"), "run"])
        .arg(folder.write("endless.py", code))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    expect_line(&mut stdout, "ready");
    send("-HUP", &child);
    assert_eq!(child.wait().unwrap().code(), Some(130));

    let seen = folder.path("seen");
    let code = format!("import os, time\nprint('ready')\nwhile not os.path.exists({seen:?}): time.sleep(0.01)\nprint('still here')\n");
    let mut child = Command::new("nohup")
        .args([
            env!("CARGO_BIN_EXE_ptc"),
            "run",
            &folder.write("s.py", &code),
        ])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    expect_line(&mut stdout, "ready");
    send("-HUP", &child);
    folder.write("seen", "");
    expect_line(&mut stdout, "still here");
    assert!(child.wait().unwrap().success());
}

#[test]
fn an_interrupt_ends_the_commands_of_a_script_that_goes_on() {
    let folder = Folder::new();
    let config = folder.write("c.json", r#"{"code_execution": {"kill_grace": 3600}}"#);
    // The command holds the script's pipe: the script ends when that is closed, which is when the command has ended.
    let fifo = folder.path("fifo");
    let code = format!("import os, signal, threading\nfrom hermes_tools import hold\nsignal.signal(signal.SIGTERM, lambda *_: None)\nos.mkfifo({fifo:?})\nthreading.Thread(target=hold, daemon=True).start()\nwith open({fifo:?}) as f:\n    print(f.readline(), end='')\n    f.read()\nprint('gone')\n");
    let command = format!("exec > {fifo}; echo held; exec sleep 1000");
    let mut child = start(
        &code,
        &["--config", &config, "--tool", &format!("hold={command}")],
    );
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    expect_line(&mut stdout, "held");
    send("-INT", &child);
    expect_line(&mut stdout, "gone");
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

#[test]
fn a_slow_reader_gets_every_byte() {
    let folder = Folder::new();
    let halted = folder.path("halted");
    assert!(Command::new("mkfifo")
        .arg(&halted)
        .status()
        .unwrap()
        .success());
    // More than all pipes and queues on the way hold. Nothing is read until the script makes no progress any more; if it
    // only looked so, this test is easier to pass and no less true.
    let code = format!(
        "\
import threading, time
written = 0
def watch():
    before = -1
    while written != before:
        before = written
        time.sleep(0.5)
    open({halted:?}, 'w').close()
threading.Thread(target=watch).start()
for n in range(200000):
    print('%099d' % n)
    written = n + 1
"
    );
    let mut child = start(&code, &[]);
    drop(std::fs::File::open(&halted).unwrap());
    let mut output = String::new();
    let mut stdout = child.stdout.take().unwrap();
    stdout.read_to_string(&mut output).unwrap();
    let numbers: Vec<Result<u32, _>> = output.lines().map(str::parse).collect();
    assert!(numbers.into_iter().eq((0..200_000).map(Ok)));
    assert!(child.wait().unwrap().success());
}

#[test]
fn nobody_on_standard_error_is_no_crash() {
    for (args, status) in [(&["rum"][..], 2), (&["run", "/no/such.py"], 2)] {
        let ended = ptc(args).stderr(broken_pipe()).status().unwrap();
        assert_eq!(ended.code(), Some(status), "{args:?}");
    }
    let folder = Folder::new();
    let script = folder.write("s.py", "1/0");
    let ended = ptc(&["run", &script]).stderr(broken_pipe()).status();
    assert_eq!(ended.unwrap().code(), Some(1));
    for args in [&["--help"][..], &["run", &script, "--json"]] {
        let output = ptc(args).stdout(broken_pipe()).output().unwrap();
        assert_eq!(
            (output.status.code(), text(&output.stderr)),
            (Some(1), ""),
            "{args:?}"
        );
    }
}

#[test]
fn output_that_cannot_be_written_is_an_error_with_its_reason() {
    let Ok(full) = std::fs::OpenOptions::new().write(true).open("/dev/full") else {
        return;
    };
    let folder = Folder::new();
    let script = folder.write("s.py", "print(1)");
    for args in [
        &["run", &script][..],
        &["run", &script, "--json"],
        &["--help"],
    ] {
        let output = ptc(args)
            .stdout(full.try_clone().unwrap())
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(1));
        let message = text(&output.stderr);
        assert!(
            message.starts_with("ptc: cannot write the output: "),
            "{message}"
        );
    }
}

#[test]
fn json_is_one_line_with_the_whole_result() {
    let output = run("print(6 * 7)", &["--json", "--mode", "strict"]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(output.stdout.iter().filter(|b| **b == b'\n').count(), 1);
    let result = json(&output);
    assert_eq!(result["status"], "success");
    assert_eq!(result["output"], "42\n");
    assert_eq!(result["mode"], "strict");
    let output = run("while True: pass", &["--json", "--timeout", "0.3"]);
    assert_eq!(output.status.code(), Some(124));
    assert_eq!(json(&output)["status"], "timeout");
}

#[test]
fn commands_serve_tools() {
    let code = "from hermes_tools import echo, word, nothing, web_search\n\
        print(echo(number=10**30, text='ä\"'))\nprint(word())\nprint(nothing())\nprint(web_search('q', limit=3))\n";
    let output = run(
        code,
        &[
            "--tool",
            "echo=cat",
            "--tool",
            "word=echo plain words",
            "--tool=nothing=true",
            "--tool",
            "web_search=cat",
        ],
    );
    assert_eq!(text(&output.stderr), "");
    assert_eq!(
        text(&output.stdout),
        "{'number': 1000000000000000000000000000000, 'text': 'ä\"'}\nplain words\nNone\n{'query': 'q', 'limit': 3}\n"
    );
}

/// An exit that is seen at a moment when nobody acts on it is waited for ever after; it takes many to meet that moment.
#[test]
fn the_end_of_no_command_is_missed() {
    let code =
        "from hermes_tools import n\nfor i in range(1000): assert n() is None\nprint('all')\n";
    let output = run(code, &["--tool", "n=:", "--max-tool-calls", "1000"]);
    assert_eq!((text(&output.stdout), text(&output.stderr)), ("all\n", ""));
}

#[test]
fn a_command_that_fails_is_a_failed_call() {
    let code = "from hermes_tools import bad\nprint(bad()['error'])\n";
    let output = run(code, &["--tool", "bad=echo no luck >&2; exit 4"]);
    assert_eq!(
        text(&output.stdout),
        "'bad' ended with exit code 4: no luck\n"
    );
    let output = run(code, &["--tool", "bad=kill -9 $$"]);
    assert_eq!(text(&output.stdout), "'bad' was killed by signal 9\n");
}

#[test]
fn commands_run_at_once_and_end_with_the_run() {
    let folder = Folder::new();
    let meeting = folder.0.to_str().unwrap();
    // Each waits for the other's file, which only two at once can do.
    let command = format!(
        "read line; case $line in *1*) me=1 you=2;; *) me=2 you=1;; esac; touch {meeting}/$me; \
         while [ ! -e {meeting}/$you ]; do sleep 0.01; done; echo $me"
    );
    let code = "from hermes_tools import meet, parallel\nprint(parallel([lambda: meet(n=1), lambda: meet(n=2)]))\n";
    let output = run(code, &["--tool", &format!("meet={command}")]);
    assert_eq!(text(&output.stdout), "[1, 2]\n");
    // A command that outlives its run would hold the pipes of this one.
    let output = run(
        "from hermes_tools import slow\nslow()",
        &["--tool", "slow=sleep 1000", "--timeout", "0.5"],
    );
    assert_eq!(output.status.code(), Some(124));
}

#[test]
fn a_configuration_file_gives_limits_and_specifications() {
    let folder = Folder::new();
    let config = folder.write(
        "c.json",
        r#"{"code_execution": {"max_tool_calls": 1}, "tools": [{"name": "served", "description": "d",
            "input_schema": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}}, "terminal"]}"#,
    );
    let code = "from hermes_tools import served, terminal\nprint(served(1))\nprint(served(2)['error'][:23])\n";
    let output = run(code, &["--config", &config, "--tool", "served=cat"]);
    assert_eq!(text(&output.stdout), "{'n': 1}\nTool call limit reached\n");
    let output = run(
        "from hermes_tools import terminal\nprint(terminal('ls')['error'])",
        &["--config", &config],
    );
    assert_eq!(
        text(&output.stdout),
        "'terminal' has no command: give one with --tool 'terminal=COMMAND'\n"
    );
    let output = run(
        "from hermes_tools import served\nfor n in range(3): served(n)\nprint('all')",
        &[
            "--config",
            &config,
            "--tool",
            "served=cat",
            "--max-tool-calls=3",
        ],
    );
    assert_eq!(text(&output.stdout), "all\n");
}

#[test]
fn bad_usage_is_explained() {
    let folder = Folder::new();
    let broken = folder.write("broken.json", "{");
    let list = folder.write("list.json", "[]");
    let wrong = folder.write("wrong.json", r#"{"code_execution": {"timeout": "5m"}}"#);
    let cases: [(&[&str], &str); 19] = [
        (&[], "say what to do"),
        (&["rum"], "did you mean \"run\"?"),
        (&["run"], "say which script to run"),
        (&["run", "a.py", "b.py"], "scripts take no arguments"),
        (&["run", "/no/such.py"], "cannot read /no/such.py"),
        (
            &["run", "-", "--tiemout", "5"],
            "did you mean \"--timeout\"?",
        ),
        (&["run", "-", "--timeout"], "--timeout needs a value"),
        (
            &["run", "-", "--timeout", "5m"],
            "--timeout expects a number",
        ),
        (
            &["run", "-", "--timeout", "0"],
            "expected a number of seconds > 0",
        ),
        (&["run", "-", "--mode", "loose"], "strict"),
        (&["run", "-", "--json=yes"], "--json takes no value"),
        (
            &["run", "-", "--cwd", "/no/such"],
            "--cwd expects a directory",
        ),
        (
            &["run", "-", "--config", "/no/such"],
            "cannot read /no/such",
        ),
        (&["run", "-", "--config", &list], "is not a JSON object"),
        (
            &["run", "-", "--tool", "echo"],
            "--tool expects NAME=COMMAND",
        ),
        (
            &["run", "-", "--tool", "a=1", "--tool", "a=2"],
            "two commands",
        ),
        (&["run", "-", "--tool", "execute_code=true"], "execute_code"),
        (&["run", "-", "--config", &broken], "is not valid JSON"),
        (&["run", "-", "--config", &wrong], "code_execution.timeout"),
    ];
    for (args, expected) in cases {
        let output = ptc(args).output().unwrap();
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {message}");
        assert!(message.contains(expected), "{args:?}: {message}");
        assert_eq!(text(&output.stdout), "");
    }
}

#[test]
fn arguments_and_files_that_are_no_text_are_refused() {
    use std::os::unix::ffi::OsStrExt as _;
    let bad = std::ffi::OsStr::from_bytes(b"a\xff.py");
    let folder = Folder::new();
    std::fs::write(folder.path("latin1"), b"{\"a\": \"\xe4\"}").unwrap();
    for args in [
        &["run".as_ref(), bad][..],
        &[bad],
        &[
            "run".as_ref(),
            "-".as_ref(),
            "--config".as_ref(),
            folder.path("latin1").as_ref(),
        ],
    ] {
        let output = ptc(&[]).args(args).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(text(&output.stderr).contains("UTF-8"), "{args:?}");
    }
}

#[test]
fn a_script_that_can_be_none_is_its_own_error() {
    for (code, expected) in [
        (&b""[..], "empty"),
        (b"a\0b", "NUL byte"),
        (b"x = '\xff'", "UTF-8"),
    ] {
        let folder = Folder::new();
        std::fs::write(folder.path("s.py"), code).unwrap();
        let output = ptc(&["run", &folder.path("s.py")]).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        let message = text(&output.stderr);
        assert!(message.contains(expected), "{message}");
        assert!(!message.contains("--help"), "{message}");
    }
}

#[test]
fn help_and_version_are_results() {
    for args in [&["--help"][..], &["-h"], &["help"]] {
        let output = ptc(args).output().unwrap();
        assert_eq!(output.status.code(), Some(0));
        for command in ["run", "check", "definition", "doctor"] {
            assert!(text(&output.stdout).contains(&format!("ptc {command} ")));
        }
    }
    for command in ["run", "check", "definition", "doctor"] {
        for args in [[command, "--help"], [command, "-h"], ["help", command]] {
            let output = ptc(&args).output().unwrap();
            assert_eq!(output.status.code(), Some(0));
            let help = text(&output.stdout);
            let title = format!("ptc {command}: ");
            assert!(
                help.starts_with(&title) && help.contains("exit status") || command == "definition"
            );
            assert!(
                help.contains("--config") && help.contains("--json"),
                "{help}"
            );
            assert!(help.lines().all(|line| line.len() <= 120), "{help}");
        }
    }
    let output = ptc(&["--version"]).output().unwrap();
    assert_eq!(
        text(&output.stdout),
        format!("ptc {}\n", env!("CARGO_PKG_VERSION"))
    );
}

#[test]
fn a_mistake_names_the_help_that_explains_it() {
    for (args, help) in [
        (&["rum"][..], "`ptc --help`"),
        (&["run", "-", "--tiemout"], "`ptc run --help`"),
        (&["check"], "`ptc check --help`"),
        (&["definition", "x"], "`ptc definition --help`"),
        (&["help", "rnu"], "`ptc --help`"),
    ] {
        let output = ptc(args).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        let message = text(&output.stderr);
        assert!(message.contains(help), "{message}");
    }
}

#[test]
fn the_level_of_isolation_can_be_chosen() {
    let folder = Folder::new();
    let config = folder.write(
        "c.json",
        r#"{"code_execution": {"isolation": {"level": "sandbox", "open_files": 64}}}"#,
    );
    for level in ["none", "guard", "sandbox"] {
        let output = run(
            "print(1)",
            &["--json", "--config", &config, "--isolation", level],
        );
        assert_eq!(json(&output)["isolation"]["requested"], level);
    }
    let output = run("print(1)", &["--isolation", "guards"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("code_execution.isolation"));
}

#[test]
fn built_in_tools_are_served_without_a_host() {
    let folder = Folder::new();
    let file = folder.write("greeting", "hello\n");
    let code = format!("from hermes_tools import *\nprint(read_file({file:?})['content'], end='')\nprint(tools.names())\n");
    let output = run(&code, &["--builtin", "read_file,terminal"]);
    assert_eq!(
        (text(&output.stdout), text(&output.stderr)),
        ("hello\n['read_file', 'terminal']\n", "")
    );
    let output = run("print(1)", &["--builtin", "red_file"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("did you mean \"read_file\"?"));
}

#[test]
fn a_tool_that_takes_anything_takes_a_dict_as_its_arguments_in_parallel() {
    let code = "from hermes_tools import echo, parallel\nprint(parallel([(echo, {'n': 1}), (echo, {'n': 2})]))\n";
    let output = run(code, &["--tool", "echo=cat"]);
    assert_eq!(text(&output.stdout), "[{'n': 1}, {'n': 2}]\n");
}

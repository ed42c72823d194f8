//! What a script finds around itself: variables, directories, imports, and the interpreter that runs it.
//!
//! The environment of this process is not touched: where it matters, the script is run by a child of this program.

mod support;

use serde_json::{json, Value};
use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use support::*;

#[test]
#[ignore = "run by other tests, as a process with an environment of its own"]
fn child_with_an_environment_of_its_own() {
    serve_job();
}

const SHOW_ENVIRONMENT: &str = "import json, os\nprint(json.dumps(dict(os.environ)))";

fn names(environment: &Value) -> BTreeSet<&str> {
    environment
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect()
}

fn in_mode(mode: &str) -> String {
    json!({ "mode": mode }).to_string()
}

// ---- variables ----

#[test]
fn only_names_that_are_known_to_be_harmless_reach_the_script() {
    const PASSES: [&str; 14] = [
        "HOME",
        "USER",
        "LOGNAME",
        "SHELL",
        "LANG",
        "LANGUAGE",
        "TERM",
        "TZ",
        "TMP",
        "TEMP",
        "LC_ALL",
        "XDG_CACHE_HOME",
        "CONDA_EXE",
        "CONDA",
    ];
    const STAYS: [&str; 25] = [
        "OPENAI_API_KEY",
        "GITHUB_TOKEN",
        "MY_SECRET",
        "DB_PASSWORD",
        "PASSWD",
        "A_CREDENTIAL",
        "AWS_CREDS",
        "SSH_AUTH_SOCK",
        "SENTRY_DSN",
        "SLACK_WEBHOOK",
        "THE_BEARER",
        "lower_case_token",
        "LC_SECRET",
        "XDG_TOKEN",
        "CONDA_PASSWORD",
        "EDITOR",
        "LD_PRELOAD_X",
        "PYTHONHOME_X",
        "PYTHONSTARTUP",
        "PYTHONWARNINGS",
        "PTC_MADE_UP",
        "HOMEX",
        "home",
        "LC",
        "_X",
    ];
    let env: Vec<(&str, Option<&str>)> = PASSES
        .iter()
        .chain(&STAYS)
        .filter(|n| **n != "LC_ALL")
        .map(|n| (*n, Some("a value")))
        .chain([("LC_ALL", Some("C"))])
        .collect();
    for mode in ["project", "strict"] {
        let ran = Job {
            env: &env,
            code: SHOW_ENVIRONMENT,
            options: &in_mode(mode),
            ..Job::default()
        }
        .run();
        let seen = ran.printed_json();
        for name in PASSES {
            let value = if name == "LC_ALL" { "C" } else { "a value" };
            assert_eq!(seen[name], value, "{mode}: {name}");
        }
        for name in STAYS {
            assert!(seen.get(name).is_none(), "{mode}: {name} = {}", seen[name]);
        }
        // Nothing that this test has not thought of either: cargo alone sets dozens.
        let others: Vec<&str> = names(&seen)
            .into_iter()
            .filter(|n| {
                !PASSES.contains(n)
                    && !["LC_", "XDG_", "CONDA", "__CF"]
                        .iter()
                        .any(|p| n.starts_with(p))
            })
            .collect();
        let own = [
            "PATH",
            "PTC_RPC_SOCKET",
            "PTC_RPC_TOKEN",
            "PTC_RUN",
            "PYTHONDONTWRITEBYTECODE",
            "PYTHONPATH",
            "PYTHONUTF8",
            "TMPDIR",
            "VIRTUAL_ENV",
        ];
        assert!(others.iter().all(|n| own.contains(n)), "{mode}: {others:?}");
    }
}

#[test]
fn declared_names_pass_and_only_they() {
    let env = [
        ("FIRST_API_KEY", Some("first-value")),
        ("SECOND_TOKEN", Some("second-value")),
        ("SECOND_TOKEN_2", Some("other-value")),
        ("EDITOR", Some("vi")),
        ("NOT_THERE", None),
    ];
    let code = "import os\nfor n in ('FIRST_API_KEY', 'SECOND_TOKEN', 'SECOND_TOKEN_2', 'EDITOR', 'NOT_THERE'): print(os.environ.get(n))";
    let config = r#"{"terminal":{"env_passthrough":["FIRST_API_KEY","NOT_THERE"]}}"#;
    for mode in ["project", "strict"] {
        let options =
            json!({"mode": mode, "env_passthrough": ["SECOND_TOKEN", "EDITOR"]}).to_string();
        let ran = Job {
            env: &env,
            config,
            options: &options,
            code,
            ..Job::default()
        }
        .run();
        assert_eq!(ran.printed(), "first-value\nsecond-value\nNone\nvi\nNone\n");
        let ran = Job {
            env: &env,
            config,
            options: &in_mode(mode),
            code,
            ..Job::default()
        }
        .run();
        assert_eq!(ran.printed(), "first-value\nNone\nNone\nNone\nNone\n");
    }
}

#[test]
fn extra_pairs_win_over_the_host_and_the_engines_own_over_them() {
    let env = [
        ("HOME", Some("/home/of-host")),
        ("PTC_RPC_TOKEN", Some("of the host")),
        ("PYTHONUTF8", Some("0")),
    ];
    let options = json!({"env": {
        "HOME": "/home/of-run", "MY_API_KEY": "a new one", "EMPTY": "", "LINES": "a\nb=c", "UNICODE": "é 🎉",
        "PTC_RPC_TOKEN": "of the run", "PTC_RPC_SOCKET": "/nowhere", "PYTHONUTF8": "0", "PTC_BOOT": "", "TMPDIR": "/tmp",
    }});
    let config = format!(r#"{{"tools":[{ECHO}]}}"#);
    let code = "import json, os, sys\nfrom hermes_tools import echo\nassert echo(value=1) == 1 and sys.flags.utf8_mode == 1\n\
                print(json.dumps(dict(os.environ)))";
    let ran = Job {
        env: &env,
        config: &config,
        options: &options.to_string(),
        code,
        ..Job::default()
    }
    .run();
    let seen = ran.printed_json();
    for name in ["HOME", "MY_API_KEY", "EMPTY", "LINES", "UNICODE", "TMPDIR"] {
        assert_eq!(seen[name], options["env"][name], "{name}");
    }
    assert!(
        names(&seen)
            .iter()
            .all(|n| *n != "PTC_BOOT" && *n != "PTC_LEASH_FD"),
        "{seen}"
    );
    assert!(seen["PTC_RPC_TOKEN"].as_str().unwrap().len() >= 32);
}

#[test]
fn every_run_has_a_token_and_a_socket_of_its_own() {
    let engine = engine("");
    let code = "import os\nprint(os.environ['PTC_RPC_TOKEN'], os.environ['PTC_RPC_SOCKET'])";
    let (first, second) = (execute(&engine, "", code), execute(&engine, "", code));
    for (a, b) in first
        .printed()
        .split_whitespace()
        .zip(second.printed().split_whitespace())
    {
        assert_ne!(a, b);
    }
}

// ---- the process ----

#[test]
fn the_child_is_a_process_of_its_own_kind() {
    let code = "
import json, os, signal, stat, sys
here = os.path.dirname(os.path.abspath(__file__))
print(json.dumps({
    'leads': os.getsid(0) == os.getpid() == os.getpgrp(),
    'stdin': sys.stdin.read(),
    'utf8': [sys.flags.utf8_mode, sys.stdout.encoding, open(__file__).encoding.lower()],
    'tidy': sys.dont_write_bytecode,
    'stage': oct(stat.S_IMODE(os.stat(here).st_mode)),
    'readable': [f for f in os.listdir(here) if os.stat(os.path.join(here, f)).st_mode & 0o077 and f != '__pycache__'],
    'blocked': [int(s) for s in signal.pthread_sigmask(signal.SIG_BLOCK, [])],
    'name': __name__,
    'argv': [os.path.basename(a) for a in sys.argv],
    'tty': [os.isatty(n) for n in range(3)],
}))
try:
    open('/dev/tty')
    print('a terminal')
except OSError:
    pass
";
    let ran = Job {
        env: &[("LC_ALL", Some("C")), ("LANG", Some("C"))],
        code,
        ..Job::default()
    }
    .run();
    assert_eq!(
        ran.printed_json(),
        json!({"leads": true, "stdin": "", "utf8": [1, "utf-8", "utf-8"], "tidy": true, "stage": "0o700", "readable": [],
               "blocked": [], "name": "__main__", "argv": ["script.py"], "tty": [false, false, false]})
    );
}

#[test]
fn nothing_is_left_of_a_run_in_the_temporary_directory() {
    let tmp = TempDir::new();
    let env = [("TMPDIR", Some(tmp.str())), ("XDG_RUNTIME_DIR", None)];
    let code = "import os, sys\nhere = os.path.dirname(__file__)\nos.makedirs(here + '/a/b')\nopen(here + '/a/b/c', 'w').close()\n\
                os.chmod(here + '/a/b', 0)\nprint(here)\nsys.exit(3)";
    let ran = Job {
        env: &env,
        code,
        ..Job::default()
    }
    .run();
    let stage = ran.output().lines().next().unwrap();
    assert_eq!(ran.json["exit_code"], 3, "{:#}", ran.json);
    assert!(!Path::new(stage).exists(), "{stage}");
    assert_eq!(std::fs::read_dir(tmp.path()).unwrap().count(), 0);
}

#[test]
fn a_long_or_missing_temporary_directory_does_no_harm() {
    let tmp = TempDir::new();
    let long = tmp.join(&format!("{}/{}", "l".repeat(120), "m".repeat(120)));
    std::fs::create_dir_all(&long).unwrap();
    tmp.write("file", "");
    let config = format!(r#"{{"tools":[{ECHO}]}}"#);
    for dir in [
        long.as_path(),
        &tmp.join("missing"),
        &tmp.join("file"),
        Path::new("relative"),
        Path::new(""),
    ] {
        let env = [("TMPDIR", dir.to_str()), ("XDG_RUNTIME_DIR", None)];
        let ran = Job {
            env: &env,
            config: &config,
            code: "from hermes_tools import echo\nprint(echo(value='A'))",
            ..Job::default()
        }
        .run();
        assert_eq!(ran.printed(), "A\n", "{}", dir.display());
    }
}

// ---- directories and imports ----

#[test]
fn a_project_is_where_the_script_works() {
    let project = TempDir::new();
    project.write("own_module.py", "WORD = 'from the project'");
    project.write("data.txt", "some data");
    let config = format!(r#"{{"terminal":{{"cwd":{}}}}}"#, quoted(project.path()));
    let code = "import os, sys, own_module\nprint(own_module.WORD)\nprint(open('data.txt').read())\nprint(os.getcwd())\n\
                print(sys.path[0] == os.path.dirname(os.path.abspath(__file__)), sys.path[1] == os.getcwd())";
    let ran = run(&config, "", code);
    assert_eq!(
        ran.printed(),
        format!(
            "from the project\nsome data\n{}\nTrue True\n",
            project.str()
        )
    );
    assert_eq!(
        (ran.text("cwd"), ran.text("mode")),
        (project.str(), "project")
    );
    assert_eq!(
        std::fs::read_dir(project.path()).unwrap().count(),
        2,
        "no compiled files are left in it"
    );
}

#[test]
fn strict_mode_works_in_the_staging_directory() {
    let project = TempDir::new();
    project.write("own_module.py", "");
    let config = format!(
        r#"{{"code_execution":{{"mode":"strict"}},"terminal":{{"cwd":{}}}}}"#,
        quoted(project.path())
    );
    let code = "import os, sys\nprint(os.getcwd() == os.path.dirname(os.path.abspath(__file__)))\nprint(os.getcwd())\nimport own_module";
    let ran = run(&config, "", code);
    assert_eq!(
        ran.error(),
        "ModuleNotFoundError: No module named 'own_module'"
    );
    let lines: Vec<&str> = ran.output().lines().collect();
    assert_eq!(lines[0], "True");
    assert_eq!((ran.text("cwd"), ran.text("mode")), (lines[1], "strict"));
    assert!(!Path::new(lines[1]).exists());
}

#[test]
fn without_a_setting_it_is_the_hosts_directory() {
    let dir = TempDir::new();
    let ran = Job {
        cwd: Some(dir.path()),
        code: "import os\nprint(os.getcwd())",
        ..Job::default()
    }
    .run();
    assert_eq!(ran.printed(), format!("{}\n", dir.str()));
}

#[test]
fn a_directory_that_is_gone_is_replaced_and_said() {
    let dir = TempDir::new();
    let file = dir.write("file", "");
    let code = "import os\nprint(os.getcwd() == os.path.dirname(os.path.abspath(__file__)))";
    for missing in [dir.join("missing"), file] {
        let ran = run("", &format!(r#"{{"cwd":{}}}"#, quoted(&missing)), code);
        assert_eq!(ran.printed(), "True\n");
        let note = format!("the working directory {} ", missing.display());
        assert!(ran.hint().starts_with(&note), "{}", ran.hint());
        assert!(
            ran.hint()
                .ends_with("; the script ran in a temporary directory instead."),
            "{}",
            ran.hint()
        );
        assert_ne!(ran.text("cwd"), missing.to_str().unwrap());
    }
    let lost = dir.join("lost");
    std::fs::create_dir(&lost).unwrap();
    let ran = Job {
        cwd: Some(&lost),
        loses_cwd: true,
        code,
        ..Job::default()
    }
    .run();
    assert_eq!(ran.printed(), "True\n");
    assert!(
        ran.hint()
            .starts_with("the host's working directory is gone"),
        "{}",
        ran.hint()
    );
}

#[test]
fn a_directory_that_may_not_be_entered_is_replaced_or_said() {
    let dir = TempDir::new();
    let closed = dir.join("closed");
    std::fs::create_dir(&closed).unwrap();
    std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o000)).unwrap();
    let ran = run(
        "",
        &format!(r#"{{"cwd":{}}}"#, quoted(&closed)),
        "import os\nprint(os.getcwd())",
    );
    std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o700)).unwrap();
    // Root may enter it; everybody else is told.
    let told = ran.hint().contains("closed") || ran.error().contains("closed");
    assert!(
        told || ran.output() == format!("{}\n", closed.display()),
        "{:#}",
        ran.json
    );
}

#[test]
fn pythonpath_is_kept_behind_the_staging_directory() {
    let (library, other) = (TempDir::new(), TempDir::new());
    library.write("from_path.py", "WORD = 'host'");
    other.write("from_path.py", "WORD = 'run'");
    let code = "import os, sys, from_path\npath = os.environ['PYTHONPATH'].split(':')\n\
                print(from_path.WORD, path[0] == os.path.dirname(os.path.abspath(__file__)), path[1:])";
    let env = [("PYTHONPATH", Some(library.str()))];
    for mode in ["project", "strict"] {
        let ran = Job {
            env: &env,
            options: &in_mode(mode),
            code,
            ..Job::default()
        }
        .run();
        assert_eq!(
            ran.printed(),
            format!("host True ['{}']\n", library.str()),
            "{mode}"
        );
    }
    let options = json!({"env": {"PYTHONPATH": other.str()}}).to_string();
    let ran = Job {
        env: &env,
        options: &options,
        code,
        ..Job::default()
    }
    .run();
    assert_eq!(ran.printed(), format!("run True ['{}']\n", other.str()));
}

#[test]
fn a_python_that_the_script_starts_can_call_tools() {
    let config = format!(r#"{{"tools":[{ECHO}]}}"#);
    let engine = engine_with(&config, echo);
    let code = "import subprocess, sys\nfrom hermes_tools import echo\nprint(echo(value='parent'))\n\
                child = 'from hermes_tools import echo; print(echo(value=\"child\"))'\n\
                print(subprocess.run([sys.executable, '-c', child], capture_output=True, text=True, cwd='/'))";
    let ran = execute(&engine, "", code);
    assert!(
        ran.printed().contains(r"stdout='child\n', stderr=''"),
        "{}",
        ran.output()
    );
    assert_eq!(ran.json["tool_calls_made"], 2);
}

#[test]
fn files_that_are_called_like_the_library_break_nothing() {
    let project = TempDir::new();
    let library = [
        "json",
        "socket",
        "os",
        "sys",
        "asyncio",
        "threading",
        "random",
        "time",
        "struct",
        "itertools",
        "shlex",
        "types",
        "typing",
        "re",
        "enum",
        "collections",
        "functools",
        "inspect",
        "concurrent",
        "selectors",
        "string",
        "io",
        "site",
        "codecs",
        "encodings",
        "traceback",
        "signal",
        "queue",
        "contextlib",
        "logging",
        "_socket",
        "_json",
        "_thread",
        "abc",
        "keyword",
        "linecache",
        "sitecustomize_",
    ];
    for name in library {
        project.write(
            &format!("{name}.py"),
            "raise RuntimeError('the project\\'s own ' + __name__)",
        );
    }
    let config = format!(
        r#"{{"tools":[{ECHO}],"terminal":{{"cwd":{}}}}}"#,
        quoted(project.path())
    );
    let engine = engine_with(&config, echo);
    let calls = "from hermes_tools import echo, parallel, json_parse, shell_quote\nprint(echo(value={'a': [1, 'é']}))\n\
                 print(parallel([lambda: echo(value=1), lambda: echo(value=2)]))\nprint(json_parse('{\"a\": 1}'), shell_quote('a b'))";
    let ran = execute(&engine, "", calls);
    assert_eq!(ran.printed(), "{'a': [1, 'é']}\n[1, 2]\n{'a': 1} 'a b'\n");
    let awaited = "from hermes_tools import aio\nprint(await aio.echo(value=3))";
    assert_eq!(execute(&engine, "", awaited).printed(), "3\n");
    // They are the script's to import, as under `python -c` in that directory.
    let ran = execute(&engine, "", "import shlex");
    assert_eq!(ran.error(), "RuntimeError: the project's own shlex");
    let ran = execute(&engine, "", "raise ValueError('still told')");
    assert_eq!(ran.error(), "ValueError: still told");
}

// ---- interpreters ----

fn python3() -> String {
    plain_printed("import sys\nprint(sys.executable)")
}

fn plain_printed(code: &str) -> String {
    run("", r#"{"mode":"strict"}"#, code)
        .printed()
        .trim()
        .to_string()
}

/// A virtual environment with a module of its own; false where this machine's Python cannot make one.
fn make_venv(dir: &Path) -> bool {
    let made = std::process::Command::new(python3())
        .args(["-m", "venv", "--without-pip"])
        .arg(dir)
        .output();
    if !made.is_ok_and(|m| m.status.success()) {
        return false;
    }
    let version = plain_printed("import sys\nprint('python%d.%d' % sys.version_info[:2])");
    let packages = dir.join("lib").join(version).join("site-packages");
    std::fs::create_dir_all(&packages).unwrap();
    std::fs::write(packages.join("only_in_venv.py"), "WORD = 'of the venv'").unwrap();
    true
}

#[test]
fn an_active_venv_is_used_in_project_mode_and_not_in_strict() {
    let dir = TempDir::new();
    let venv = dir.join("venv");
    if !make_venv(&venv) {
        eprintln!("skipped: this Python makes no venv");
        return;
    }
    let config = format!(r#"{{"tools":[{ECHO}]}}"#);
    let code = "import sys, only_in_venv\nfrom hermes_tools import echo\nprint(echo(value=only_in_venv.WORD))\nprint(sys.prefix)";
    for variable in ["VIRTUAL_ENV", "CONDA_PREFIX"] {
        let env = [
            ("VIRTUAL_ENV", None),
            ("CONDA_PREFIX", None),
            (variable, venv.to_str()),
        ];
        let ran = Job {
            env: &env,
            config: &config,
            code,
            ..Job::default()
        }
        .run();
        assert_eq!(
            ran.printed(),
            format!("of the venv\n{}\n", venv.display()),
            "{variable}"
        );
        assert!(
            ran.text("python").starts_with(venv.to_str().unwrap()),
            "{}",
            ran.text("python")
        );
        let ran = Job {
            env: &env,
            config: &config,
            options: &in_mode("strict"),
            code,
            ..Job::default()
        }
        .run();
        assert_eq!(
            ran.error(),
            "ModuleNotFoundError: No module named 'only_in_venv'"
        );
        assert!(
            !ran.text("python").starts_with(venv.to_str().unwrap()),
            "{}",
            ran.text("python")
        );
        assert!(ran.hint().contains(ran.text("python")), "{}", ran.hint());
    }
    // The active one goes before conda's, and before the setting.
    let env = [
        ("VIRTUAL_ENV", venv.to_str()),
        ("CONDA_PREFIX", Some("/nowhere")),
    ];
    let config = format!(r#"{{"tools":[{ECHO}],"python":"/no/such/python"}}"#);
    let ran = Job {
        env: &env,
        config: &config,
        code,
        ..Job::default()
    }
    .run();
    assert!(ran.printed().starts_with("of the venv\n"));
}

#[test]
fn a_broken_venv_is_passed_over() {
    let dir = TempDir::new();
    let program = |name: &str, text: &str| {
        let path = dir.write(&format!("{name}/bin/python"), text);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    };
    program("fails", "#!/bin/sh\nexit 3\n");
    program("answers nonsense", "#!/bin/sh\necho hello\n");
    program("has no interpreter", "#!/no/such/interpreter\n");
    program("is no program", "just text");
    dir.write("is not executable/bin/python", "#!/bin/sh\n");
    std::fs::create_dir_all(dir.join("is a directory/bin/python")).unwrap();
    std::fs::create_dir_all(dir.join("dangles/bin")).unwrap();
    std::os::unix::fs::symlink("/no/such/python", dir.join("dangles/bin/python")).unwrap();
    let expected = python3();
    for name in [
        "fails",
        "answers nonsense",
        "has no interpreter",
        "is no program",
        "is not executable",
        "is a directory",
        "dangles",
        "missing",
    ] {
        let env = [
            ("VIRTUAL_ENV", dir.join(name).to_str().map(String::from)),
            ("CONDA_PREFIX", None),
        ];
        let env: Vec<_> = env.iter().map(|(n, v)| (*n, v.as_deref())).collect();
        let ran = Job {
            env: &env,
            code: "import sys\nprint(sys.executable)",
            ..Job::default()
        }
        .run();
        assert_eq!(ran.printed().trim(), expected, "{name}");
        assert_eq!(ran.text("python"), expected, "{name}");
    }
}

#[test]
fn a_python_setting_that_will_not_do_is_an_error_result() {
    let dir = TempDir::new();
    let fails = dir.write(
        "fails",
        "#!/bin/sh\necho 'libx.so is missing' >&2\nexit 127\n",
    );
    std::fs::set_permissions(&fails, std::fs::Permissions::from_mode(0o755)).unwrap();
    let text = dir.write("text", "no program");
    let cases = [
        ("/no/such/python".to_string(), "does not exist"),
        (dir.str().to_string(), "is a directory, not an interpreter"),
        (text.to_str().unwrap().to_string(), "does not start"),
        (
            fails.to_str().unwrap().to_string(),
            "does not run: libx.so is missing",
        ),
        ("no-such-python-at-all".to_string(), "no-such-python-at-all"),
        ("/bin/sh".to_string(), "does not run"),
    ];
    for mode in ["project", "strict"] {
        for (python, reason) in &cases {
            let config = json!({"code_execution": {"mode": mode}, "python": python}).to_string();
            let env = [("VIRTUAL_ENV", None), ("CONDA_PREFIX", None)];
            let ran = Job {
                env: &env,
                config: &config,
                code: "print(1)",
                ..Job::default()
            }
            .run();
            assert_eq!(
                (ran.status(), &ran.json["started"]),
                ("error", &json!(false)),
                "{python}"
            );
            let error = ran.error();
            assert!(
                error.starts_with("no usable Python interpreter: "),
                "{error}"
            );
            assert!(
                error.contains(python.as_str()) && error.contains(reason),
                "{error}"
            );
            assert!(error.contains("the setting \"python\""), "{error}");
            assert!(
                error.ends_with("Install Python 3.8 or newer, or set \"python\" to one"),
                "{error}"
            );
            assert_eq!(ran.output(), error);
            for absent in ["exit_code", "signal", "stdout_bytes", "python"] {
                assert!(!ran.has(absent), "{absent}: {:#}", ran.json);
            }
        }
    }
}

#[test]
fn without_any_python_the_result_says_so() {
    let empty = TempDir::new();
    let env = [
        ("PATH", Some(empty.str())),
        ("VIRTUAL_ENV", None),
        ("CONDA_PREFIX", None),
    ];
    let ran = Job {
        env: &env,
        code: "print(1)",
        ..Job::default()
    }
    .run();
    assert_eq!(ran.json["started"], false);
    assert!(
        ran.error().contains("there is no python3 on PATH"),
        "{}",
        ran.error()
    );
}

#[test]
fn a_python_can_be_set_by_path_or_by_name() {
    let real = python3();
    let dir = TempDir::new();
    std::os::unix::fs::symlink(&real, dir.join("python-by-link")).unwrap();
    let shim = dir.write(
        "python-by-shim",
        format!("#!/bin/sh\nexec '{real}' \"$@\"\n"),
    );
    std::fs::set_permissions(&shim, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", dir.str(), std::env::var("PATH").unwrap());
    for python in [
        real.clone(),
        dir.join("python-by-link").display().to_string(),
        "python-by-shim".to_string(),
    ] {
        let env = [
            ("PATH", Some(path.as_str())),
            ("VIRTUAL_ENV", None),
            ("CONDA_PREFIX", None),
        ];
        let config = json!({ "python": python }).to_string();
        let ran = Job {
            env: &env,
            config: &config,
            code: "print('ran')",
            ..Job::default()
        }
        .run();
        assert_eq!(ran.printed(), "ran\n", "{python}");
        // A shim is asked once for what is behind it, and that is what runs.
        assert!(
            !ran.text("python").ends_with("shim"),
            "{}",
            ran.text("python")
        );
    }
}

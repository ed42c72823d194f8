//! What the boot hook does to an interpreter, and what it leaves alone.

use super::*;

fn lines(text: &str) -> Vec<&str> {
    text.lines().collect()
}

#[test]
fn the_boot_value_keeps_every_byte_of_a_path() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;
    let dir = OsStr::from_bytes(b"/a:b\xff c");
    let boot = Boot {
        module: "m",
        import_dir: Some(Path::new(dir)),
        watch_leash: true,
        check: true,
        tell_status: true,
        only_check: false,
    };
    assert_eq!(boot_value(boot).as_bytes(), b"lce:m:/a:b\xff c");
    assert_eq!(
        boot_value(Boot {
            module: "m",
            ..Boot::default()
        }),
        ":m:"
    );
}

#[test]
fn the_script_is_main_and_sees_little_of_us() {
    for python in pythons() {
        let stage = Stage::new();
        stage
            .project
            .write("beside.py", "where = 'in the project'\n");
        let code = r#"
import os, sys
print(__name__, os.path.basename(__file__), __spec__, sys.argv == [__file__])
import beside
print(beside.where)
here, project = os.path.dirname(__file__), os.getcwd()
print(sys.path[0] == here, sys.path[1] == project, sys.path.count(here), "" in sys.path)
print(sorted(name for name in os.environ if name.startswith("PTC_")))
print(sys.stdout.encoding, sys.stdout.errors, sys.stdout.line_buffering, sys.stderr.errors)
print("lone \ud800".encode("utf-8", "replace"))
sys.stdout.write("\ud800\n")
"#;
        let stdout = stage.run(python, code).clean(python);
        let expected = "__main__ script.py None True\nin the project\nTrue True 1 False\n\
            ['PTC_RPC_SOCKET', 'PTC_RPC_TOKEN']\nutf-8 surrogatepass True surrogatepass\nb'lone ?'\n\u{fffd}\u{fffd}\u{fffd}\n";
        assert_eq!(stdout, expected);
    }
}

#[test]
fn an_interpreter_that_is_asked_to_leaves_word_of_its_end() {
    let cases = [
        ("pass", "0"),
        ("import sys; sys.exit()", "0"),
        ("import sys; sys.exit(7)", "7"),
        ("import sys; sys.exit(-1)", "255"),
        ("import sys; sys.exit(True)", "1"),
        ("import sys; sys.exit('a message')", "1"),
        ("def main():\n    import sys\n    sys.exit(3)\nmain()", "3"),
        (
            "import sys\ntry:\n    sys.exit(4)\nexcept SystemExit:\n    pass",
            "0",
        ),
        ("import os; os._exit(9)", "9"),
        ("1 / 0", "1"),
        ("import sys; sys.excepthook = lambda *e: None; 1 / 0", "1"),
        (
            "import sys\ntry:\n    1 / 0\nexcept Exception:\n    sys.excepthook(*sys.exc_info())",
            "0",
        ),
        ("raise KeyboardInterrupt", "-2"),
        ("import atexit, os; atexit.register(os._exit, 8)", "8"),
        (
            "import os, sys\nif os.fork():\n    os.wait()\nelse:\n    sys.exit(6)",
            "0",
        ),
        (
            "import threading, sys; threading.Thread(target=sys.exit, args=(5,)).start()",
            "0",
        ),
        ("import asyncio; await asyncio.sleep(0)", "0"),
        (
            "import asyncio, sys; await asyncio.sleep(0); sys.exit(2)",
            "2",
        ),
        ("import asyncio; await asyncio.sleep(0); 1 / 0", "1"),
        ("def", "1"),
        (
            "import os, signal; os.kill(os.getpid(), signal.SIGTERM)",
            "-15",
        ),
        // Of these there is nothing to be seen.
        ("raise SystemExit(3)", ""),
        ("import os; os.kill(os.getpid(), 9)", ""),
        ("import os; os.execv('/bin/true', ['true'])", ""),
    ];
    for python in pythons() {
        let mut stage = Stage::new();
        stage.flags.tell_status = true;
        for (code, status) in cases {
            let _ = fs::remove_file(stage.staging.0.join("status"));
            let outcome = stage.run(python, code);
            let told = fs::read_to_string(stage.staging.0.join("status")).unwrap_or_default();
            let name = python.executable.display();
            assert_eq!(told, status, "{name}: {code}");
            let real = outcome.code.or(outcome.signal.map(|signal| -signal));
            assert!(
                told.is_empty() || real == told.parse().ok(),
                "{name}: {code}: {real:?}"
            );
        }
        stage.flags.tell_status = false;
        stage.run(python, "import sys; sys.exit(7)");
        assert!(!stage.staging.0.join("status").exists());
    }
}

#[test]
fn what_stands_in_for_sys_exit_looks_and_fails_like_it() {
    let code = "
import os, sys
for f in (sys.exit, os._exit):
    print(f.__module__, f.__qualname__, (f.__doc__ or '').splitlines()[0][:4])
for wrong in (lambda: sys.exit(1, 2), lambda: os._exit('x'), lambda: os._exit()):
    try:
        wrong()
    except TypeError as error:
        print('TypeError')
try:
    sys.exit((1, 2))
except SystemExit as error:
    print(error.code)
";
    for python in pythons() {
        let mut stage = Stage::new();
        stage.flags.tell_status = true;
        assert_eq!(
            stage.run(python, code).clean(python),
            "sys exit Exit\nposix _exit Exit\nTypeError\nTypeError\nTypeError\n(1, 2)\n"
        );
    }
}

#[test]
fn without_an_import_directory_only_the_staging_directory_is_in_front() {
    for python in pythons() {
        let mut stage = Stage::new();
        let boot = boot_value(Boot {
            module: MODULE,
            ..Boot::default()
        });
        stage.environment.insert("PTC_BOOT".into(), boot);
        let code = "import os, sys\nhere = os.path.dirname(__file__)\nprint(sys.path[0] == here, sys.path.count(here), os.getcwd() in sys.path)\n";
        assert_eq!(stage.run(python, code).clean(python), "True 1 False\n");
    }
}

#[test]
fn nothing_is_imported_that_a_bare_interpreter_has_not() {
    let code = "import sys\nprint(' '.join(sorted(sys.modules)))\n";
    for python in pythons() {
        let stage = Stage::new();
        let ours = stage.run(python, code).clean(python);
        let bare = Command::new(&python.executable)
            .args(["-c", code])
            .env_clear()
            .env("PYTHONUTF8", "1")
            .output()
            .unwrap();
        let bare = String::from_utf8(bare.stdout).unwrap();
        let known = lines(&bare)[0].split(' ').collect::<Vec<_>>();
        let new: Vec<&str> = ours
            .split_whitespace()
            .filter(|name| !known.contains(name))
            .collect();
        // Some distributions have a sitecustomize of their own, so that a bare interpreter has one.
        let only_ours = new.iter().all(|name| *name == "sitecustomize");
        assert!(only_ours, "{}: {new:?}", python.executable.display());
    }
}

#[test]
fn importing_the_module_costs_three_built_in_modules() {
    let code = "import sys\nbefore = set(sys.modules)\nimport hermes_tools\nhermes_tools.echo(1)\nprint(sorted(set(sys.modules) - before))\n";
    for python in pythons() {
        if python.implementation != "cpython" {
            continue;
        }
        let stdout = Stage::new().run(python, code).clean(python);
        let new: Vec<&str> = stdout.trim().trim_matches(['[', ']']).split(", ").collect();
        let allowed = ["'_json'", "'_socket'", "'hermes_tools'", "'itertools'"];
        assert!(new.iter().all(|name| allowed.contains(name)), "{stdout}");
    }
}

#[test]
fn the_users_sitecustomize_works_as_without_us() {
    for python in pythons() {
        let mut stage = Stage::new();
        let users = Folder::new();
        users.write("sitecustomize.py", "import sys\nsys.from_users = [p for p in sys.path if 'ptc-python' in p]\nsys.path.append('/added')\nname = __name__\n");
        stage.extra_path = vec![users.0.clone()];
        let code = r#"
import os, sys, sitecustomize
print(sitecustomize.name, os.path.dirname(sitecustomize.__file__) in sys.from_users, len(sys.from_users))
print(sys.path[-1], sys.path[1] == os.getcwd(), sys.path[2] == sys.from_users[0])
"#;
        assert_eq!(
            stage.run(python, code).clean(python),
            "sitecustomize True 1\n/added True True\n"
        );
        users.write("sitecustomize.py", "import nothing_like_it\n");
        let outcome = stage.run(
            python,
            "print('runs')\nimport os, sys\nprint(os.getcwd() in sys.path)\n",
        );
        assert_eq!(outcome.stdout, "runs\nTrue\n");
        let expected = "Error in sitecustomize; set PYTHONVERBOSE for traceback:\nModuleNotFoundError: No module named 'nothing_like_it'\n";
        assert_eq!(outcome.stderr, expected);
    }
}

#[test]
fn other_pythons_that_the_script_starts_only_see_their_own_sitecustomize() {
    let python = pythons().last().unwrap();
    let stage = Stage::new();
    let others: Vec<String> = installed()
        .iter()
        .map(|path| json::quote(path.to_str().unwrap()))
        .collect();
    let code = format!(
        "import subprocess\nfor python in [{}]:\n    done = subprocess.run([python, '-c', 'import sys; print(sys.excepthook is sys.__excepthook__)'], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)\n    assert done.stdout == b'True\\n', (python, done.stdout)\nprint('ok')\n",
        others.join(", ")
    );
    assert_eq!(stage.run(python, &code).clean(python), "ok\n");
}

/// The stderr of a script, and that of the same script under the interpreter's own hook.
fn ours_and_plain(python: &Interpreter, code: &str) -> (Outcome, Outcome) {
    let stage = Stage::new();
    stage.project.write("broken.py", "x = 1\ny = = 2\n");
    let plain = format!("import sys; sys.excepthook = sys.__excepthook__\n{code}");
    (
        stage.run(python, &format!("\n{code}")),
        stage.run(python, &plain),
    )
}

#[test]
fn uncaught_exceptions_look_as_ever() {
    let cases = [
        "def inner(x):\n    return 1 / x\ntry:\n    inner(0)\nexcept ZeroDivisionError as error:\n    raise ValueError('outer') from error\n",
        "try:\n    {}['a']\nexcept KeyError:\n    undefined_name\n",
        "import broken\n",
        "exec('1 +')\n",
        "e = ValueError('with a note')\nif hasattr(e, 'add_note'): e.add_note('the note')\nraise e\n",
        "try:\n    group = ExceptionGroup('several', [ValueError(1), TypeError(2)])\nexcept NameError:\n    group = ValueError\nraise group\n",
        "class Odd(Exception):\n    def __str__(self): raise ValueError\nraise Odd\n",
        "assert 1 == 2, 'text'\n",
        "raise SystemExit('gave up')\n",
        "import sys\nsys.exit(3)\n",
        "raise KeyboardInterrupt\n",
        "import threading\nt = threading.Thread(target=lambda: 1 / 0)\nt.start(); t.join()\n",
        "class Bad:\n    def __del__(self): raise ValueError('in del')\nBad()\n",
        "def f(n): return f(n - 1) if n else 1 / 0\nf(15)\n",
    ];
    for python in pythons() {
        for code in cases {
            let (ours, plain) = ours_and_plain(python, code);
            assert_eq!(
                without_addresses(&ours.stderr),
                without_addresses(&plain.stderr)
            );
            assert_eq!(
                (ours.code, ours.signal),
                (plain.code, plain.signal),
                "{code}"
            );
            assert_eq!(ours.report, None);
        }
    }
}

/// Texts like `<Bad object at 0x7f...>` differ from run to run.
fn without_addresses(text: &str) -> String {
    let mut parts = text.split("0x");
    let mut out = parts.next().unwrap_or_default().to_string();
    for part in parts {
        out += part.trim_start_matches(|c: char| c.is_ascii_hexdigit());
    }
    out
}

#[test]
fn tracebacks_show_none_of_our_frames() {
    let code = r#"
from hermes_tools import echo, retry, parallel
import hermes_tools
def deliver():
    try:
        echo({1, 2})
    except TypeError as error:
        retry(lambda: hermes_tools.nothing, attempts=1)
parallel([deliver])
"#;
    for python in pythons() {
        let stage = Stage::new();
        let outcome = stage.run(python, code);
        assert_eq!(outcome.code, Some(1));
        let files: Vec<&str> = lines(&outcome.stderr)
            .into_iter()
            .filter(|line| line.starts_with("  File "))
            .collect();
        let numbers: Vec<&str> = files
            .iter()
            .map(|file| file.split(", ").nth(1).unwrap())
            .collect();
        assert_eq!(
            numbers,
            ["line 6", "line 9", "line 8", "line 8"],
            "{}",
            outcome.stderr
        );
        assert!(
            files.iter().all(|file| file.contains("/script.py\"")),
            "{}",
            outcome.stderr
        );
    }
}

#[test]
fn a_recursion_shows_its_beginning_and_its_last_frames() {
    let code = "def f(n):\n    return g(n + 1)\ndef g(n):\n    return f(n + 1)\nf(0)\n";
    for python in pythons() {
        let outcome = Stage::new().run(python, code);
        let stderr = outcome.stderr;
        let frames = stderr.matches("  File ").count();
        assert_eq!(frames, 21, "{stderr}");
        assert!(stderr.contains("line 5, in <module>"), "{stderr}");
        let first = lines(&stderr)[0];
        assert!(
            first.starts_with("[a recursion: 9")
                && first.ends_with(" frames are left out of this traceback]"),
            "{first}"
        );
        assert!(
            lines(&stderr)
                .last()
                .unwrap()
                .starts_with("RecursionError: "),
            "{stderr}"
        );
    }
}

#[test]
fn a_script_that_does_not_parse_is_reported_and_never_starts() {
    let cases = [
        ("print('A')\nx = 'ab\"\n", "SyntaxError", 2),
        ("print('A')\nif True:\nx = 1\n", "IndentationError", 3),
        (
            "print('A')\nawait x\ndef f():\n    await y\n",
            "SyntaxError",
            4,
        ),
        ("print('A')\nreturn 1\n", "SyntaxError", 2),
    ];
    for python in pythons() {
        for (code, kind, line) in cases {
            let outcome = Stage::new().run(python, code);
            assert_eq!(
                (outcome.code, outcome.stdout.as_str()),
                (Some(1), ""),
                "{code}"
            );
            let report = json::parse(&outcome.report.expect("no report")).unwrap();
            assert_eq!(
                report.get("started").and_then(json::Value::as_bool),
                Some(false)
            );
            assert_eq!(report.get("type").and_then(json::Value::as_str), Some(kind));
            let text = report
                .get("text")
                .map(|t| t.as_str().unwrap().trim_end().to_string());
            if python.version >= (3, 9, 0) {
                assert_eq!(
                    report.get("line"),
                    Some(&json::Value::Number(line.to_string())),
                    "{code}"
                );
                assert_eq!(text.as_deref(), code.lines().nth(line - 1), "{code}");
            }
            assert!(report.get("message").is_some());
            assert!(
                outcome.stderr.contains(kind) && outcome.stderr.contains("script.py"),
                "{}",
                outcome.stderr
            );
            assert!(
                !outcome.stderr.contains("sitecustomize"),
                "{}",
                outcome.stderr
            );
        }
    }
}

#[test]
fn await_works_outside_of_functions() {
    let code = r#"
import asyncio, atexit, multiprocessing, os, sys
from hermes_tools import aio
atexit.register(print, "at exit")
def double(x): return 2 * x
print(__name__, os.path.basename(__file__))
print(await asyncio.gather(*(aio.echo(i) for i in range(3))))
async with asyncio.Lock():
    print(sys.exc_info())
try:
    asyncio.run(asyncio.sleep(0))
except RuntimeError as error:
    print(error)
if __name__ == "__main__":
    with multiprocessing.get_context("fork").Pool(1) as pool:
        print(pool.map(double, [1, 2]))
"#;
    let expected = "__main__ script.py\n[0, 1, 2]\n(None, None, None)\n\
        asyncio.run() cannot be called from a running event loop\n[2, 4]\nat exit\n";
    for python in pythons() {
        let outcome = Stage::new().run(python, code);
        let told = outcome
            .stderr
            .replace("RuntimeWarning: coroutine 'sleep' was never awaited", "");
        assert!(!told.contains("Traceback"), "{told}");
        assert_eq!(
            (outcome.code, outcome.stdout.as_str()),
            (Some(0), expected),
            "{told}"
        );
        assert_eq!(outcome.report, None);
    }
}

#[test]
fn a_script_with_await_ends_as_others_do() {
    for python in pythons() {
        let outcome = Stage::new().run(
            python,
            "import asyncio, sys\nawait asyncio.sleep(0)\nprint('A')\nsys.exit(3)\n",
        );
        assert_eq!(
            (
                outcome.code,
                outcome.stdout.as_str(),
                outcome.stderr.as_str()
            ),
            (Some(3), "A\n", "")
        );
        let outcome = Stage::new().run(
            python,
            "import asyncio, sys\nawait asyncio.sleep(0)\nsys.exit('gave up')\n",
        );
        assert_eq!(
            (outcome.code, outcome.stderr.as_str()),
            (Some(1), "gave up\n")
        );
        let outcome = Stage::new().run(
            python,
            "import asyncio\nawait asyncio.sleep(0)\nawait wrong()\n",
        );
        assert_eq!(outcome.code, Some(1));
        assert_eq!(
            outcome.stderr.matches("  File ").count(),
            1,
            "{}",
            outcome.stderr
        );
        assert!(
            outcome
                .stderr
                .starts_with("Traceback (most recent call last):\n"),
            "{}",
            outcome.stderr
        );
        assert!(
            outcome
                .stderr
                .ends_with("NameError: name 'wrong' is not defined\n"),
            "{}",
            outcome.stderr
        );
        let outcome = Stage::new().run(
            python,
            "import asyncio\nawait asyncio.sleep(0)\nraise KeyboardInterrupt\n",
        );
        assert_eq!(outcome.signal, Some(2), "{}", outcome.stderr);
        let outcome = Stage::new().run(python, "import sys, asyncio\nsys.excepthook = lambda *what: print('hook', what[0].__name__)\nawait asyncio.sleep(0)\n1 / 0\n");
        assert_eq!(
            (outcome.code, outcome.stdout.as_str()),
            (Some(1), "hook ZeroDivisionError\n")
        );
    }
}

#[test]
fn a_hook_of_the_scripts_own_wins() {
    for python in pythons() {
        let outcome = Stage::new().run(
            python,
            "import sys\nsys.excepthook = lambda *what: print('mine', what[0].__name__)\n1 / 0\n",
        );
        assert_eq!(
            (
                outcome.code,
                outcome.stdout.as_str(),
                outcome.stderr.as_str()
            ),
            (Some(1), "mine ZeroDivisionError\n", "")
        );
    }
}

fn terminate(stage: &Stage, child: Child) -> Outcome {
    stage.server.shared.await_guests("here", 1);
    assert!(Command::new("kill")
        .arg(child.id().to_string())
        .status()
        .unwrap()
        .success());
    stage.finish(child)
}

#[test]
fn sigterm_saves_what_was_printed_and_ends_by_the_signal() {
    for python in pythons() {
        let stage = Stage::new();
        let code = "import sys\nfrom hermes_tools import meet\nprint('no newline', end='')\nmeet(2, 'here')\n";
        let outcome = terminate(&stage, stage.spawn(python, code));
        assert_eq!(
            (outcome.signal, outcome.stdout.as_str()),
            (Some(15), "no newline")
        );
    }
}

#[test]
fn a_sigterm_handler_of_the_scripts_own_wins() {
    for python in pythons() {
        let stage = Stage::new();
        let code = "import signal, sys\nfrom hermes_tools import meet\nsignal.signal(signal.SIGTERM, lambda *_: sys.exit(7))\nmeet(2, 'here')\n";
        assert_eq!(terminate(&stage, stage.spawn(python, code)).code, Some(7));
    }
}

#[test]
fn a_child_that_is_ended_as_soon_as_it_is_made_ends() {
    expect_everywhere(
        r#"
import os, signal, threading, warnings
warnings.simplefilter("ignore")
def rounds():
    for _ in range(200):
        pid = os.fork()
        if pid == 0:
            while True:
                signal.pause()
        os.kill(pid, signal.SIGTERM)
        assert os.WTERMSIG(os.waitpid(pid, 0)[1]) == signal.SIGTERM
rounds()
threads = [threading.Thread(target=rounds) for _ in range(2)]
for t in threads: t.start()
for t in threads: t.join()
print(signal.SIGTERM in signal.pthread_sigmask(signal.SIG_BLOCK, []))
pid = os.fork()
if pid == 0:
    os._exit(signal.SIGTERM in signal.pthread_sigmask(signal.SIG_BLOCK, []))
print(os.waitpid(pid, 0)[1])
"#,
        "False\n0\n",
    );
}

#[test]
fn forked_children_die_of_sigterm_at_once_and_print_nothing_twice() {
    let code = r#"
import multiprocessing, os, signal, sys, threading
from hermes_tools import meet
sys.stdout.write("once ")
def child():
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    meet(2, "child")
    meet(2, f"never {os.getpid()}")
def fork():
    global pid
    pid = os.fork()
    if pid == 0: child()
thread = threading.Thread(target=fork)
thread.start(); thread.join()
meet(2, "child")
os.kill(pid, signal.SIGTERM)
status = os.waitpid(pid, 0)[1]
process = multiprocessing.get_context("fork").Process(target=child)
process.start()
meet(2, "child")
process.terminate(); process.join()
print(os.WTERMSIG(status), process.exitcode)
"#;
    for python in pythons() {
        let outcome = Stage::new().run(python, code);
        assert_eq!(
            (outcome.code, outcome.stdout.as_str()),
            (Some(0), "once 15 -15\n"),
            "{}",
            outcome.stderr
        );
    }
}

#[test]
fn a_leash_that_breaks_ends_the_group_and_disturbs_nothing_before() {
    let launcher = "import os, subprocess, sys\n\
        read, write = os.pipe()\n\
        os.environ['PTC_LEASH_FD'] = str(read)\n\
        child = subprocess.Popen(sys.argv[1:], pass_fds=[read], preexec_fn=os.setsid, stdout=subprocess.PIPE)\n\
        os.close(read)\n\
        print(child.stdout.readline().decode(), end='')\n\
        os.close(write)\n\
        print(child.wait(), child.stdout.read())\n";
    let code = r#"
import os, threading
from hermes_tools import meet
pid = os.fork()
if pid == 0: os._exit(0)
print(os.waitpid(pid, 0)[1], threading.active_count(), "PTC_LEASH_FD" in os.environ, flush=True)
meet(2, "never")
"#;
    for python in pythons() {
        let mut stage = Stage::new();
        stage.flags.watch_leash = true;
        stage.wrapper = Some(launcher);
        let outcome = stage.run(python, code);
        assert_eq!(
            (outcome.stdout.as_str(), outcome.stderr.as_str()),
            ("0 1 False\n-9 b''\n", "")
        );
    }
}

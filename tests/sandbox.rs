//! The level `sandbox` as hosts and scripts see it: what scripts can still do, what they cannot, and what is said of it.
//!
//! Every attempt that has to fail is also made without a sandbox, where it has to work. What this kernel lacks, or a
//! build that knows no such means, is said and not tested.

mod support;

use serde_json::{json, Value};
use support::*;

#[test]
#[ignore = "run by other tests, as a process with an environment of its own"]
fn child_with_an_environment_of_its_own() {
    serve_job();
}

/// A configuration with the level `sandbox` and these members besides.
fn sandbox(extra: Value) -> String {
    with_level("sandbox", extra)
}

fn with_level(level: &str, extra: Value) -> String {
    let mut isolation = json!({ "level": level });
    let members = extra.as_object().expect("members").clone();
    isolation.as_object_mut().unwrap().extend(members);
    let echo: Value = serde_json::from_str(ECHO).unwrap();
    let code_execution = json!({"isolation": isolation, "max_tool_calls": 1000});
    json!({"code_execution": code_execution, "tools": [echo]}).to_string()
}

fn run_in(config: &str, dir: &TempDir, code: &str) -> Ran {
    let options = json!({ "cwd": dir.str() }).to_string();
    execute(&engine_with(config, echo), &options, code)
}

fn names(list: &Value) -> Vec<&str> {
    let entries = list.as_array().expect("a list").iter();
    entries
        .map(|entry| entry.as_str().expect("a string").split(':').next().unwrap())
        .collect()
}

/// Whether the sandbox of this system does all of `measures`.
fn has(measures: &[&str]) -> bool {
    let ran = run(&sandbox(json!({})), "", "pass");
    let applied = names(&ran.json["isolation"]["applied"]);
    let lacking: Vec<_> = measures.iter().filter(|m| !applied.contains(m)).collect();
    if !lacking.is_empty() {
        println!("skipped: no {lacking:?} here");
    }
    lacking.is_empty()
}

/// Defines `tell(name, function)`, which collects what becomes of attempts, and prints all of it at the end.
const TELL: &str = "\
import atexit, json, os, sys
_told = {}
atexit.register(lambda: print(json.dumps(_told)))
def tell(name, function):
    try:
        function()
        _told[name] = 'works'
    except BaseException as e:
        _told[name] = type(e).__name__
";

/// What becomes of each attempt of `code` in a directory of its own.
fn told(config: &str, dir: &TempDir, code: &str) -> Value {
    run_in(config, dir, &format!("{TELL}{code}")).printed_json()
}

// ---- files ----

#[test]
fn scripts_write_where_they_work_and_nowhere_else() {
    if !has(&["landlock_files"]) {
        return;
    }
    let (cwd, granted, other) = (TempDir::new(), TempDir::new(), TempDir::new());
    let code = format!(
        "import shutil, tempfile
cwd, granted, other = {}, {}, {}
def put(path, mode='w'):
    with open(path, mode) as file: file.write('x')
tell('cwd', lambda: put('new'))
tell('granted', lambda: put(granted + '/new'))
tell('temporary', lambda: tempfile.NamedTemporaryFile().write(b'x'))
tell('directory', lambda: os.makedirs(tempfile.mkdtemp() + '/a/b'))
tell('staging', lambda: put(os.path.dirname(__file__) + '/new'))
tell('between', lambda: os.replace(put('moved') or 'moved', granted + '/moved'))
tell('null', lambda: put('/dev/null'))
tell('read', lambda: open(other + '/victim').read())
tell('other', lambda: put(other + '/new'))
tell('append', lambda: put(other + '/victim', 'a'))
tell('truncate', lambda: os.truncate(other + '/victim', 0))
tell('remove', lambda: os.remove(other + '/victim'))
tell('mkdir', lambda: os.mkdir(other + '/dir'))
tell('link', lambda: (os.symlink(other + '/victim', 'link'), put('link')))
tell('out', lambda: os.rename('new', other + '/out'))
tell('in', lambda: os.rename(other + '/victim', 'in'))
",
        quoted(cwd.path()),
        quoted(granted.path()),
        quoted(other.path())
    );
    const REFUSED: [&str; 8] = [
        "other", "append", "truncate", "remove", "mkdir", "link", "out", "in",
    ];
    other.write("victim", "precious");
    let found = told(&sandbox(json!({"write": [granted.str()]})), &cwd, &code);
    for (attempt, outcome) in found.as_object().unwrap() {
        match REFUSED.contains(&attempt.as_str()) {
            true => assert_ne!(outcome, "works", "{attempt}"),
            false => assert_eq!(outcome, "works", "{attempt}"),
        }
    }
    assert_eq!(other.read("victim"), "precious");
    let unbounded = told(&with_level("none", json!({})), &TempDir::new(), &code);
    for attempt in ["other", "append", "truncate", "remove", "mkdir", "out"] {
        assert_eq!(unbounded[attempt], "works", "{attempt}");
    }
}

#[test]
fn the_working_directory_can_be_kept_from_writing() {
    if !has(&["landlock_files"]) {
        return;
    }
    let dir = TempDir::new();
    dir.write("data", "text");
    let code = "tell('read', lambda: open('data').read())\n\
                tell('write', lambda: open('new', 'w'))\n\
                tell('temporary', lambda: __import__('tempfile').TemporaryFile())\n";
    let found = told(&sandbox(json!({"write_cwd": false})), &dir, code);
    let expected = json!({"read": "works", "write": "PermissionError", "temporary": "works"});
    assert_eq!(found, expected);
}

#[test]
fn a_host_that_works_in_the_root_directory_gives_nothing_away() {
    if !has(&["landlock_files"]) {
        return;
    }
    let other = TempDir::new();
    let code = format!(
        "{TELL}tell('write', lambda: open({} + '/new', 'w'))",
        quoted(other.path())
    );
    let found = run(&sandbox(json!({})), r#"{"cwd": "/"}"#, &code).printed_json();
    assert_eq!(found, json!({"write": "PermissionError"}));
}

#[test]
fn reading_can_be_restricted_to_what_is_named() {
    if !has(&["landlock_files"]) {
        return;
    }
    let (cwd, named, other) = (TempDir::new(), TempDir::new(), TempDir::new());
    named.write("data", "text");
    other.write("data", "text");
    let code = format!(
        "import ctypes, decimal, sqlite3, subprocess, ssl, tempfile
from hermes_tools import echo
named, other = {}, {}
tell('named', lambda: open(named + '/data').read())
tell('named_write', lambda: open(named + '/data', 'w'))
tell('cwd', lambda: open('new', 'w'))
tell('itself', lambda: open('/proc/self/status').read())
tell('zone', lambda: os.stat('/etc/localtime'))
tell('child', lambda: subprocess.run([sys.executable, '-c', 'import json'], check=True))
tell('tool', lambda: echo(value=1))
tell('other', lambda: open(other + '/data').read())
tell('list', lambda: os.listdir(other))
tell('host', lambda: open(f'/proc/{{os.getppid()}}/cmdline').read())
",
        quoted(named.path()),
        quoted(other.path())
    );
    let found = told(&sandbox(json!({"read": [named.str()]})), &cwd, &code);
    for (attempt, outcome) in found.as_object().unwrap() {
        let refused = ["named_write", "other", "list", "host"].contains(&attempt.as_str());
        let expected = if refused { "PermissionError" } else { "works" };
        assert_eq!(outcome, expected, "{attempt}");
    }
    let everything = told(&sandbox(json!({})), &cwd, &code);
    for attempt in ["other", "list", "host"] {
        assert_eq!(everything[attempt], "works", "{attempt}");
    }
}

#[test]
fn a_path_that_is_not_there_is_an_error_that_names_its_key() {
    for key in ["write", "read"] {
        let ran = run(&sandbox(json!({key: ["/no/such/place"]})), "", "print(1)");
        let error = format!("code_execution.isolation.{key}: cannot open /no/such/place: ");
        assert_eq!(
            (ran.status(), &ran.json["started"]),
            ("error", &json!(false))
        );
        assert!(ran.error().starts_with(&error), "{}", ran.error());
    }
}

#[test]
fn temporary_files_go_with_the_run() {
    let code = "import os, tempfile\n\
                path = tempfile.mkdtemp()\n\
                open(path + '/file', 'w').close()\n\
                os.mkdir(path + '/shut', 0)\n\
                os.chmod(path, 0)\n\
                print(path)\n\
                assert os.environ['TMP'] == os.environ['TEMP'] == os.environ['TMPDIR'] == os.path.dirname(path)\n\
                assert os.path.dirname(__file__) == os.path.dirname(os.environ['TMPDIR'])\n";
    let ran = run(&sandbox(json!({})), "", code);
    let path = ran.printed().trim_end();
    assert!(!std::path::Path::new(path).exists());
    // Without a sandbox it is the host's place.
    let ran = run("", "", "import os\nprint(os.environ.get('TMPDIR'))");
    assert!(!ran.printed().contains("/ptc-"));
}

// ---- the network and the system ----

const SOCKETS: &str = "\
import socket
def listen(family, address):
    with socket.socket(family) as s:
        s.bind(address)
        s.listen()
tell('inet', lambda: listen(socket.AF_INET, ('127.0.0.1', 0)))
tell('udp', lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).close())
tell('netlink', lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW).close())
tell('unix', lambda: listen(socket.AF_UNIX, 'own'))
tell('pair', lambda: [s.close() for s in socket.socketpair()])
";

#[test]
fn the_network_is_refused_unless_it_is_granted() {
    if !has(&["no_network"]) {
        return;
    }
    let all = |outcome| json!({"inet": outcome, "udp": outcome, "netlink": outcome, "unix": "works", "pair": "works"});
    let found = |config: &str| told(config, &TempDir::new(), SOCKETS);
    assert_eq!(found(&sandbox(json!({}))), all("PermissionError"));
    assert_eq!(found(&sandbox(json!({"network": true}))), all("works"));
    assert_eq!(found(&with_level("guard", json!({}))), all("works"));
}

#[test]
fn the_number_of_a_refused_socket_is_that_of_a_permission() {
    if !has(&["no_network"]) {
        return;
    }
    let code = "import errno, socket\n\
                try: socket.create_connection(('127.0.0.1', 9))\n\
                except PermissionError as e: print(e.errno == errno.EACCES)\n";
    let ran = run(&sandbox(json!({})), "", code);
    assert_eq!(ran.printed(), "True\n");
}

/// Calls the kernel by number; numbers differ between processors.
const SYSTEM_CALLS: &str = "\
import ctypes, errno, json, platform
libc = ctypes.CDLL(None, use_errno=True)
column = {'x86_64': 0, 'aarch64': 1}[platform.machine()]
def call(numbers, *args):
    ctypes.set_errno(0)
    result = libc.syscall(ctypes.c_long(numbers[column]), *map(ctypes.c_long, args))
    return errno.errorcode.get(ctypes.get_errno(), result)
none = 0
print(json.dumps({
    'io_uring_setup': call((425, 425), 8, none),
    'unshare': call((272, 97), 0),
    'setns': call((308, 268), -1, 0),
    'mount': call((165, 40), none, none, none, 0, none),
    'umount2': call((166, 39), none, 0),
    'keyctl': call((250, 219), 0, -3, 0),
    'bpf': call((321, 280), 0, none, 0),
    'perf_event_open': call((298, 241), none, 0, -1, -1, 0),
    'userfaultfd': call((323, 282), 0),
    'ptrace': call((101, 117), 0, 0, none, none),
    'process_vm_readv': call((310, 270), 1, none, 0, none, 0, 0),
    'pidfd_getfd': call((438, 438), -1, 0, 0),
    'kcmp': call((312, 272), 1, 1, 0, 0, 0),
    'open_by_handle_at': call((304, 265), -1, none, 0),
    'init_module': call((175, 105), none, 0, none),
    'kexec_load': call((246, 104), 0, 0, none, 0),
    'clock_settime': call((227, 112), 0, none),
    'reboot': call((169, 142), 0, 0, 0, none),
    'swapon': call((167, 224), none, 0),
    'quotactl': call((179, 60), 0, none, 0, none),
    'clone_newuser': call((56, 220), 0x10000000 | 17, none, none, none, none),
    'tiocsti': call((16, 29), -1, 0x5412, none),
    'clone3': call((435, 435), none, 0),
}))
";

#[test]
fn calls_that_are_about_the_system_are_refused() {
    if !has(&["seccomp"]) {
        return;
    }
    let found = run(&sandbox(json!({})), "", SYSTEM_CALLS).printed_json();
    for (call, outcome) in found.as_object().unwrap() {
        let expected = if call == "clone3" { "ENOSYS" } else { "EPERM" };
        assert_eq!(outcome, expected, "{call}");
    }
    // Those that need no privilege do something else without a sandbox, whoever asks.
    let code = SYSTEM_CALLS.replace("    'clone_newuser'", "    #");
    let guarded = run(&with_level("none", json!({})), "", &code).printed_json();
    for call in ["unshare", "pidfd_getfd", "tiocsti"] {
        assert_ne!(guarded[call], found[call], "{call}");
    }
}

/// What a child of the script comes to that calls the kernel as a 32-bit program does: `getpid` by `int 0x80`.
const FOREIGN_CALL: &str = "\
import ctypes, mmap, os, signal
pid = os.fork()
if not pid:
    code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    code.write(bytes([0xb8, 20, 0, 0, 0, 0xcd, 0x80, 0xc3]))
    address = ctypes.addressof(ctypes.c_char.from_buffer(code))
    os._exit(0 if ctypes.CFUNCTYPE(ctypes.c_int)(address)() > 0 else 1)
status = os.waitpid(pid, 0)[1]
print(signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else os.WEXITSTATUS(status))
";

#[test]
#[cfg(target_arch = "x86_64")]
fn calls_by_another_convention_are_refused() {
    if !has(&["seccomp"]) {
        return;
    }
    // A kernel that knows no 32-bit programs sends SIGSEGV by itself.
    let found = run(&sandbox(json!({})), "", FOREIGN_CALL);
    assert!(["SIGSYS\n", "SIGSEGV\n"].contains(&found.printed()));
    let unbounded = run(&with_level("none", json!({})), "", FOREIGN_CALL);
    assert!(["0\n", "SIGSEGV\n"].contains(&unbounded.printed()));
    let x32 = "import ctypes\n\
               libc = ctypes.CDLL(None, use_errno=True)\n\
               print(libc.syscall(ctypes.c_long(0x40000000 | 39)), ctypes.get_errno())\n";
    assert_eq!(run(&sandbox(json!({})), "", x32).printed(), "-1 38\n");
}

// ---- what goes on working ----

#[test]
fn ordinary_programs_notice_nothing() {
    let code = r##"
import asyncio, concurrent.futures, ctypes, multiprocessing, os, queue, sqlite3, subprocess, sys, tempfile, threading
from multiprocessing import shared_memory
from hermes_tools import echo, parallel

def double(number):
    return number * 2

def call(number):
    return echo(value=number)

async def shell():
    process = await asyncio.create_subprocess_shell("echo async", stdout=subprocess.PIPE)
    return (await process.communicate())[0]

if __name__ == "__main__":
    assert subprocess.run("echo $((6 * 7)) | cat", shell=True, capture_output=True).stdout == b"42\n"
    assert subprocess.run([sys.executable, "-c", "import hermes_tools; print(hermes_tools.echo(value=7))"],
                          capture_output=True).stdout == b"7\n"
    assert asyncio.run(shell()) == b"async\n"
    for method in ["fork", "spawn", "forkserver"]:
        with multiprocessing.get_context(method).Pool(2) as pool:
            assert pool.map(double, range(4)) == [0, 2, 4, 6], method
            assert pool.map(call, range(4)) == [0, 1, 2, 3], method
    with multiprocessing.Manager() as manager:
        shared = manager.dict(a=1)
        assert dict(shared) == {"a": 1}
    memory = shared_memory.SharedMemory(create=True, size=100)
    memory.close()
    memory.unlink()
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert list(pool.map(call, range(32))) == list(range(32))
    assert parallel([(echo, n) for n in range(8)]) == list(range(8))
    with sqlite3.connect("file.db") as db:
        db.execute("create table t (a)")
        db.execute("insert into t values (1)")
    assert ctypes.CDLL(None).getpid() == os.getpid()
    child = subprocess.Popen(["sleep", "1000"])
    child.terminate()
    assert child.wait() == -15
    with open(tempfile.mkdtemp() + "/tool.sh", "w") as script:
        script.write("#!/bin/sh\necho run\n")
    os.chmod(script.name, 0o700)
    assert subprocess.check_output([script.name]) == b"run\n"
    print("fine")
"##;
    let ran = run_in(&sandbox(json!({})), &TempDir::new(), code);
    assert_eq!(ran.printed(), "fine\n");
    ran.assert_nothing_survived();
}

#[test]
fn what_leaves_the_group_is_found_in_a_sandbox_too() {
    let code = "import os, time\n\
                read, write = os.pipe()\n\
                if not os.fork():\n    os.setsid()\n    if os.fork(): os._exit(0)\n    \
                os.write(write, str(os.getpid()).encode())\n    time.sleep(1000)\n\
                os.wait()\nprint(os.read(read, 20).decode())\n";
    let ran = run(&sandbox(json!({})), "", code);
    assert!(ran.printed().trim_end().parse::<u32>().is_ok());
    ran.assert_nothing_survived();
}

#[test]
fn a_sandboxed_script_is_stopped_like_any_other() {
    let code =
        "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('A', flush=True)\n\
                while True: pass\n";
    let config =
        json!({"code_execution": {"isolation": "sandbox", "kill_grace": 0.2, "timeout": 1}});
    let ran = run(&config.to_string(), "", code);
    assert_eq!(ran.status(), "timeout");
    assert!(ran.output().starts_with("A\n"));
    ran.assert_nothing_survived();
}

#[test]
#[cfg(target_os = "linux")]
fn the_host_stays_as_it_was() {
    let state = || {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let kept = ["NoNewPrivs", "Seccomp", "Cap", "Sig", "Shd"];
        let lines = status
            .lines()
            .filter(|l| kept.iter().any(|k| l.starts_with(k)));
        let limits = std::fs::read_to_string("/proc/self/limits").unwrap();
        (lines.map(String::from).collect::<Vec<_>>(), limits)
    };
    let engine = engine(&sandbox(
        json!({"memory_mb": 256, "cpu_seconds": 60, "open_files": 64}),
    ));
    let before = state();
    assert_eq!(execute(&engine, "", "print(1)").printed(), "1\n");
    assert_eq!(state(), before);
    std::fs::write("/dev/null", "x").expect("the host writes where it likes");
}

// ---- honesty ----

/// A run in a process whose kernel seems to lack `features`.
fn without(features: &str, isolation: Value, code: &str) -> Ran {
    let config = json!({"code_execution": {"isolation": isolation}}).to_string();
    Job {
        env: &[("PTC_TEST_DENY", Some(features))],
        config: &config,
        code,
        ..Job::default()
    }
    .run()
}

#[test]
fn the_result_tells_what_was_done_and_what_could_not_be() {
    let ran = run(&sandbox(json!({})), "", "pass");
    let isolation = &ran.json["isolation"];
    assert_eq!(isolation["requested"], "sandbox");
    let told = [names(&isolation["applied"]), names(&isolation["missing"])].concat();
    for measure in [
        "no_new_privs",
        "capabilities",
        "landlock_scope",
        "landlock_files",
        "seccomp",
        "no_network",
        "unix_sockets",
    ] {
        let times = told.iter().filter(|name| **name == measure).count();
        assert_eq!(times, 1, "{measure}: {isolation:#}");
    }
    // What is missing is told in a sentence that says what follows from it.
    let missing = isolation["missing"].as_array().unwrap();
    assert!(missing.iter().all(|m| m.as_str().unwrap().contains(": ")));
}

#[test]
fn who_accepts_foreign_sockets_is_not_told_of_them() {
    for accepted in [json!({"unix_sockets": true}), json!({"network": true})] {
        let ran = run(&sandbox(accepted), "", "pass");
        assert!(!ran.json["isolation"].to_string().contains("unix_sockets"));
    }
}

#[test]
fn a_kernel_without_a_means_is_told_of_and_the_rest_is_done() {
    if !has(&["landlock_scope", "landlock_files", "seccomp"]) {
        return;
    }
    let code = "import socket\ntry:\n    socket.socket().close()\n    print('network')\nexcept PermissionError: print('none')";
    let full = [
        "no_new_privs",
        "capabilities",
        "landlock_scope",
        "landlock_files",
        "seccomp",
        "no_network",
    ];
    for (features, lost, printed) in [
        (
            "landlock",
            &["landlock_scope", "landlock_files"][..],
            "none\n",
        ),
        ("landlock_scope", &["landlock_scope"], "none\n"),
        ("seccomp", &["seccomp", "no_network"], "network\n"),
        (
            "seccomp,landlock",
            &["landlock_scope", "landlock_files", "seccomp", "no_network"],
            "network\n",
        ),
    ] {
        let ran = without(
            features,
            json!({"level": "sandbox", "unix_sockets": true}),
            code,
        );
        let isolation = &ran.json["isolation"];
        assert_eq!(ran.printed(), printed, "without {features}");
        assert_eq!(names(&isolation["missing"]), lost, "without {features}");
        let kept: Vec<_> = full.iter().copied().filter(|m| !lost.contains(m)).collect();
        assert_eq!(names(&isolation["applied"]), kept, "without {features}");
    }
}

#[test]
fn what_is_required_and_missing_fails_before_anything_runs() {
    let dir = TempDir::new();
    let code = format!("open({}, 'w')", quoted(dir.join("ran")));
    for (features, level, name) in [
        ("landlock", "guard", "landlock_scope: "),
        ("landlock", "sandbox", "landlock_files: "),
        ("landlock_scope", "sandbox", "landlock_scope: "),
        ("seccomp", "sandbox", "no_network: "),
    ] {
        let mut isolation = json!({"level": level, "require": true});
        if level == "sandbox" {
            isolation["write"] = json!([dir.str()]);
        }
        let ran = without(features, isolation, &code);
        assert_eq!(
            (ran.status(), &ran.json["started"]),
            ("error", &json!(false))
        );
        assert!(ran
            .error()
            .starts_with("isolation is required and cannot be had here: "));
        assert!(ran.error().contains(name), "{}", ran.error());
        let missing = ran.json["isolation"]["missing"].to_string();
        assert!(missing.contains(name), "{missing}");
        assert_eq!(ran.json["isolation"]["applied"], json!([]));
        assert!(!dir.join("ran").exists());
    }
}

#[test]
fn what_is_required_and_there_runs() {
    if !has(&["landlock_scope", "landlock_files", "seccomp"]) {
        return;
    }
    let config = sandbox(json!({"require": true, "unix_sockets": true}));
    let ran = run(&config, "", "print(1)");
    assert_eq!(ran.printed(), "1\n");
    assert_eq!(ran.json["isolation"]["missing"], json!([]));
}

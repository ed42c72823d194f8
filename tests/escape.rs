//! Attempts to break out, each a script in `tests/escape/`: the level that must stop it does, and without isolation it
//! succeeds, so that it is known to bite. As root and as an ordinary user.
//!
//! A script begins with what it needs: `level` (the level that must stop it), `root` (`only` or `no`), `machine`, and
//! `limit` (settings of the sandbox). Where the system lacks what would stop it, the result has to say so.
#![cfg(target_os = "linux")]

mod support;

use ptc::{Engine, EventKind, Host, Run};
use serde_json::{json, Value};
use std::collections::HashMap;
use std::io::Write as _;
use std::net::TcpListener;
use std::os::fd::AsRawFd as _;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::{chown, PermissionsExt};
use std::os::unix::net::{SocketAddr, UnixListener};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::Mutex;
use support::{execute, quoted, Ran, TempDir};

const PRELUDE: &str = include_str!("escape/support/prelude.py");
const VERDICT: &str = include_str!("escape/support/verdict.py");

/// An account without any rights, on every system.
const NOBODY: u32 = 65534;

/// What a script that reads the host's memory finds.
static IN_MEMORY: [u8; 16] = *b"sixteen bytes...";

// ---- the scripts ----

struct Attempt {
    name: String,
    code: String,
    head: HashMap<String, String>,
}

impl Attempt {
    fn all() -> Vec<Attempt> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/escape");
        let entries = std::fs::read_dir(folder)
            .unwrap()
            .map(|e| e.unwrap().path());
        let mut scripts: Vec<PathBuf> = entries
            .filter(|path| path.extension().is_some_and(|e| e == "py"))
            .collect();
        scripts.sort();
        scripts.iter().map(|path| Attempt::read(path)).collect()
    }

    fn read(path: &Path) -> Attempt {
        let code = std::fs::read_to_string(path).unwrap();
        let head = code.lines().take_while(|line| line.starts_with('#'));
        let head = head.filter_map(|line| line[1..].split_once(':'));
        Attempt {
            name: path.file_stem().unwrap().to_string_lossy().into_owned(),
            head: head
                .map(|(key, value)| (key.trim().into(), value.trim().into()))
                .collect(),
            code,
        }
    }

    fn head(&self, key: &str) -> &str {
        self.head.get(key).map_or("", String::as_str)
    }

    /// Whether it can be made by this user on this machine.
    fn applies(&self) -> bool {
        let is_root = own_uid() == 0;
        let fits_user = match self.head("root") {
            "only" => is_root,
            "no" => !is_root,
            _ => true,
        };
        let machine = self.head("machine");
        fits_user && (machine.is_empty() || machine == std::env::consts::ARCH)
    }

    /// The levels that stop it.
    fn levels(&self) -> &'static [&'static str] {
        match self.head("level") {
            "guard" => &["guard", "sandbox"],
            "sandbox" => &["sandbox"],
            other => panic!("{}: level {other:?}", self.name),
        }
    }

    fn isolation(&self, level: &str) -> Value {
        let limits = match level {
            "sandbox" => self.head("limit"),
            _ => "",
        };
        let comma = if limits.is_empty() { "" } else { "," };
        serde_json::from_str(&format!(r#"{{"level":"{level}"{comma}{limits}}}"#)).unwrap()
    }
}

fn own_uid() -> u32 {
    std::os::unix::fs::MetadataExt::uid(&std::fs::metadata("/proc/self").unwrap())
}

// ---- the world ----

/// What scripts try to get at. Everything ends with it.
struct World {
    dir: TempDir,
    python: Option<String>,
    _unnamed: std::fs::File,
    _server: TcpListener,
    _abstract: UnixListener,
    stranger: Child,
    sibling: Run,
    variables: Value,
}

impl World {
    fn new() -> World {
        let dir = TempDir::new();
        let unnamed_path = dir.write("unnamed", "ESCAPE_CANARY=in a file");
        let unnamed = std::fs::File::open(&unnamed_path).unwrap();
        std::fs::remove_file(unnamed_path).unwrap();
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let name = format!("escape-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let abstract_socket = UnixListener::bind_addr(&address).unwrap();
        let stranger = Command::new("sleep").arg("1000").spawn().unwrap();
        let python = std::env::var("ESCAPE_PYTHON").ok();
        let (sibling, sibling_pid) = sibling(python.as_deref());
        let variables = json!({
            "UNNAMED": unnamed.as_raw_fd().to_string(),
            "PORT": server.local_addr().unwrap().port().to_string(),
            "ABSTRACT": name,
            "STRANGER": stranger.id().to_string(),
            "STRANGER_ADDRESS": address_of_stack(stranger.id()).to_string(),
            "HOST_ADDRESS": (IN_MEMORY.as_ptr() as usize).to_string(),
            "SIBLING": sibling_pid.to_string(),
            "SETUID_ID": std::env::var("ESCAPE_SETUID_ID").unwrap_or_default(),
        });
        World {
            dir,
            python,
            _unnamed: unnamed,
            _server: server,
            _abstract: abstract_socket,
            stranger,
            sibling,
            variables,
        }
    }

    /// What came of `attempt` at `level`.
    fn attempt(&self, attempt: &Attempt, level: &str) -> Ran {
        let place = self.dir.join(&format!("{}-{level}", attempt.name));
        for folder in ["cwd", "out/folder"] {
            std::fs::create_dir_all(place.join(folder)).unwrap();
        }
        std::fs::write(place.join("out/file"), "outside").unwrap();
        let mut variables = self.variables.clone();
        variables["OUT"] = place.join("out").to_string_lossy().into();
        let mut config =
            json!({"code_execution": {"isolation": attempt.isolation(level), "kill_grace": 1}});
        if let Some(python) = &self.python {
            config["python"] = python.as_str().into();
        }
        let options =
            json!({"env": variables, "cwd": place.join("cwd"), "timeout": 100, "mode": "project"});
        let code = format!("{PRELUDE}\n{}\n{VERDICT}", attempt.code);
        execute(
            &support::engine(&config.to_string()),
            &options.to_string(),
            code,
        )
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.sibling.cancel(None);
        let _ = support::wait(&self.sibling);
        let _ = self.stranger.kill();
        let _ = self.stranger.wait();
    }
}

/// Another run, which goes on, and its process.
fn sibling(python: Option<&str>) -> (Run, u64) {
    let mut config = json!({"code_execution": {"kill_grace": 0.1}});
    if let Some(python) = python {
        config["python"] = python.into();
    }
    let engine = Engine::new(&config.to_string(), Host::new()).unwrap();
    let run = engine
        .start(
            "import signal\nprint('up', flush=True)\nwhile True: signal.pause()",
            "",
        )
        .unwrap();
    // The handle of the engine may go: the run keeps what it needs.
    std::mem::forget(engine);
    let mut pid = None;
    loop {
        let event = run
            .next_event(Some(support::PATIENCE))
            .unwrap()
            .expect("it goes on");
        match event.kind() {
            EventKind::Started => {
                let data: Value = serde_json::from_slice(event.data()).unwrap();
                pid = data["pid"].as_u64();
            }
            EventKind::Stdout => return (run, pid.unwrap()),
            _ => {}
        }
    }
}

fn address_of_stack(pid: u32) -> usize {
    loop {
        // Until it has become the program it is a copy of this one.
        let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
        if let (true, Some(line)) = (
            maps.contains("/sleep"),
            maps.lines().find(|line| line.ends_with("[stack]")),
        ) {
            let end = line.split(['-', ' ']).nth(1).unwrap();
            return usize::from_str_radix(end, 16).unwrap() - 64;
        }
        std::thread::yield_now();
    }
}

// ---- the suite ----

/// What is wrong with the outcome of `attempt`, if anything is.
fn judge(world: &World, attempt: &Attempt) -> Result<(), String> {
    let name = &attempt.name;
    let free = world.attempt(attempt, "none");
    let said = verdict(&free);
    // A kernel that does not have the call has nothing to be kept from.
    if said.starts_with("skipped: ") || said.contains("Function not implemented") {
        println!("{name}: skipped: without isolation: {said}");
        return Ok(());
    }
    if !said.starts_with("ESCAPED") {
        return Err(format!("{name}: does not bite: {said}\n{}", free.json));
    }
    for level in attempt.levels() {
        let ran = world.attempt(attempt, level);
        let said = verdict(&ran);
        if said.starts_with("ESCAPED") {
            // What stops it is not to be had here, and the result has said so.
            let missing = missing(&ran);
            if !missing.is_empty() {
                println!("{name}: {level}: skipped: without {}", missing.join("; "));
                continue;
            }
            return Err(format!(
                "{name}: {level} does not stop it: {said}\n{}",
                ran.json
            ));
        }
        if !said.starts_with("stopped: ") {
            return Err(format!("{name}: {level}: no verdict: {said}\n{}", ran.json));
        }
        println!("{name}: {level}: {said}");
    }
    Ok(())
}

/// What the result says that this system lacks, but for what no attempt is about.
fn missing(ran: &Ran) -> Vec<&str> {
    let missing = ran.json["isolation"]["missing"].as_array().unwrap().iter();
    let named = missing.map(|m| m.as_str().unwrap());
    named
        .filter(|m| !m.starts_with("unix_sockets") && !m.starts_with("processes"))
        .collect()
}

/// The line that an attempt has printed last; a script that was killed has not.
fn verdict(ran: &Ran) -> String {
    let line = ran.output().lines().find(|line| {
        ["ESCAPED", "stopped: ", "skipped: "]
            .iter()
            .any(|word| line.starts_with(word))
    });
    match line {
        Some(line) => line.to_string(),
        None if ran.json["signal"].is_number() => format!("stopped: {}", ran.error()),
        None => ran.output().to_string(),
    }
}

#[test]
#[ignore = "a part of the tests below, in a process of its own"]
fn the_suite_alone() {
    if std::env::var_os("ESCAPE_CANARY").is_none() {
        return;
    }
    let world = World::new();
    let attempts: Vec<Attempt> = Attempt::all()
        .into_iter()
        .filter(Attempt::applies)
        .collect();
    let queue = Mutex::new(attempts.iter());
    let faults = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| loop {
                let Some(attempt) = queue.lock().unwrap().next() else {
                    return;
                };
                if let Err(fault) = judge(&world, attempt) {
                    faults.lock().unwrap().push(fault);
                }
            });
        }
    });
    println!("{} attempts", attempts.len());
    let faults = faults.into_inner().unwrap();
    assert!(
        faults.is_empty(),
        "{} faults:\n{}",
        faults.len(),
        faults.join("\n")
    );
}

/// This program again, for the suite alone, as a host with a secret.
fn suite() -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([
        "--exact",
        "the_suite_alone",
        "--ignored",
        "--nocapture",
        "--test-threads=1",
    ]);
    command.env("ESCAPE_CANARY", "what the host was started with");
    command
}

fn assert_stopped(command: &mut Command) {
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    println!("{said}");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && said.contains(" attempts\n"),
        "{errors}"
    );
}

#[test]
fn attempts_of_this_user_are_stopped() {
    let mut command = suite();
    // An ordinary user cannot make such a program, and lends none of root's own to a test.
    command.env_remove("ESCAPE_SETUID_ID");
    assert_stopped(&mut command);
}

#[test]
fn attempts_of_an_ordinary_user_are_stopped() {
    if own_uid() != 0 {
        return println!(
            "skipped: only root can become somebody else; this user is an ordinary one"
        );
    }
    let python = "/usr/bin/python3";
    let dir = TempDir::new();
    // What is in root's own folders cannot be read by others.
    let program = dir.join("suite");
    std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    let id = dir.join("id");
    std::fs::copy("/usr/bin/id", &id).unwrap();
    std::fs::set_permissions(&id, PermissionsExt::from_mode(0o4755)).unwrap();
    let home = dir.join("home");
    std::fs::create_dir(&home).unwrap();
    chown(&home, Some(NOBODY), Some(NOBODY)).unwrap();
    for path in [dir.path(), &program] {
        std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
    }
    let mut probe = Command::new(python);
    let probed = probe.arg("-c").arg("").uid(NOBODY).gid(NOBODY).status();
    if !probed.is_ok_and(|status| status.success()) {
        return println!("skipped: no Python that every user can run");
    }
    let given = suite();
    let mut command = Command::new(&program);
    command
        .args(given.get_args())
        .current_dir(&home)
        .uid(NOBODY)
        .gid(NOBODY);
    command.envs(
        given
            .get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    command
        .env("ESCAPE_PYTHON", python)
        .env("ESCAPE_SETUID_ID", &id);
    command.env("HOME", &home).env("TMPDIR", &home);
    // The scripts are read where the repository is, which may be closed to others.
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/escape");
    let mut look = Command::new("ls");
    let seen = look.arg(&scripts).uid(NOBODY).gid(NOBODY).output();
    if !seen.is_ok_and(|output| output.status.success()) {
        return println!("skipped: other users cannot read {}", scripts.display());
    }
    assert_stopped(&mut command);
}

// ---- runs and each other ----

#[test]
fn there_are_enough_attempts_and_each_says_what_it_is() {
    let attempts = Attempt::all();
    assert!(attempts.len() >= 40, "{}", attempts.len());
    for attempt in attempts {
        assert!(
            !attempt.levels().is_empty() && attempt.code.contains("def attempt():\n    \"\"\""),
            "{}",
            attempt.name
        );
    }
}

#[test]
fn a_script_has_no_descriptors_but_its_three() {
    for level in ["none", "guard", "sandbox"] {
        let config = format!(r#"{{"code_execution":{{"isolation":"{level}"}}}}"#);
        // One is that of the listing itself.
        let code = "import os\nprint(sorted(map(int, os.listdir('/proc/self/fd')))[:-1])";
        let ran = execute(&support::engine(&config), "", code);
        // By plain POSIX means the script's own interpreter watches for the end of its host.
        let expected = if cfg!(ptc_portable) {
            "[0, 1, 2, 3]\n"
        } else {
            "[0, 1, 2]\n"
        };
        assert_eq!(ran.printed(), expected, "{level}");
    }
}

#[test]
fn one_run_cannot_speak_for_another() {
    let dir = TempDir::new();
    let config = format!(
        r#"{{"tools":[{{"name":"own"}}],"terminal":{{"cwd":{}}}}}"#,
        quoted(dir.path())
    );
    let engine = Engine::new(&config, Host::new()).unwrap();
    let other = Engine::new(&config, Host::new()).unwrap();
    for second in [&engine, &other] {
        let waiting = second
            .start("import os\nprint(os.environ['PTC_RPC_SOCKET'], flush=True)\nwhile True: os.read(os.pipe()[0], 1)", "")
            .unwrap();
        let path = loop {
            let event = waiting
                .next_event(Some(support::PATIENCE))
                .unwrap()
                .unwrap();
            if event.kind() == EventKind::Stdout {
                break String::from_utf8_lossy(event.data()).trim().to_string();
            }
        };
        let code = format!(
            "import os, socket\nc = socket.socket(socket.AF_UNIX)\nc.connect({path:?})\n\
             c.sendall(('{{\"token\": \"' + os.environ['PTC_RPC_TOKEN'] + '\"}}\\n{{\"id\": 1, \"tool\": \"own\", \"args\": {{}}}}\\n').encode())\n\
             print(c.makefile().read())"
        );
        let first = engine.start(code, "").unwrap();
        let ran = support::wait(&first);
        assert!(ran.printed().contains("\"error\""), "{}", ran.output());
        assert!(ran.calls().is_empty());
        waiting.cancel(None);
        assert!(support::wait(&waiting).calls().is_empty());
    }
    std::io::stdout().flush().unwrap();
}

//! Attempts to break out, each a script in `tests/escape/`: the level that must stop it does, and without isolation it
//! succeeds, so that it is known to bite. As root and as an ordinary user.
//!
//! A script begins with what it needs: `level` (the level that must stop it), `kernel` (the measures that do, as the
//! result names them), `root` (`only` or `no`), `machine`, `limit` (settings of the sandbox), and `signal` (it sends one to
//! the victim). Where the system lacks what would stop it, the result has to say so.
#![cfg(target_os = "linux")]

mod support;
#[path = "escape/support/world.rs"]
mod world;

use ptc::{Engine, EventKind, Host};
use serde_json::Value;
use std::collections::HashMap;
use std::os::unix::fs::{chown, PermissionsExt};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use support::{execute, quoted, Ran, TempDir};
use world::World;

/// An account without any rights, on every system.
const NOBODY: u32 = 65534;

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

    /// What has to be there for that, as results name it.
    fn measures(&self) -> impl Iterator<Item = &str> {
        self.head("kernel")
            .split(' ')
            .filter(|name| !name.is_empty())
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
            if let Some(missing) = missing(&ran, attempt) {
                println!("{name}: {level}: skipped: without {missing}");
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

/// What the result names as missing of that which stops `attempt`.
fn missing<'a>(ran: &'a Ran, attempt: &Attempt) -> Option<&'a str> {
    let missing = ran.json["isolation"]["missing"].as_array().unwrap().iter();
    let mut named = missing.map(|m| m.as_str().unwrap());
    named.find(|m| {
        attempt
            .measures()
            .any(|name| m.split(':').next() == Some(name))
    })
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
    let only = std::env::var("ESCAPE_ONLY").unwrap_or_default();
    let attempts: Vec<Attempt> = Attempt::all()
        .into_iter()
        .filter(Attempt::applies)
        .filter(|attempt| {
            only.split(' ')
                .any(|name| name.is_empty() || name == attempt.name)
        })
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

/// What the suite says.
fn assert_stopped(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    println!("{said}");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && said.contains(" attempts\n"),
        "{errors}"
    );
    said
}

/// On a kernel that lacks what stops them the same attempts succeed, and the result says what is missing.
#[test]
fn what_a_poorer_kernel_does_not_stop_is_told() {
    if cfg!(ptc_portable) {
        return println!("skipped: plain POSIX has nothing that could be missing");
    }
    let lacking = [
        ("signalled_by_a_pipe", "landlock_scope"),
        ("host_signalled", "landlock_scope"),
        ("abstract_socket", "landlock_scope"),
        ("file_made", "landlock_files"),
        ("udp", "no_network"),
        ("keyring_asked", "seccomp"),
        ("own_child_traced", "seccomp"),
    ];
    let mut command = suite();
    command.env("PTC_TEST_DENY", "landlock,seccomp");
    command.env("ESCAPE_ONLY", lacking.map(|(name, _)| name).join(" "));
    let said = assert_stopped(&mut command);
    for (name, measure) in lacking {
        // The first line stands behind the name of the test.
        let told = said.contains(&format!("{name}: sandbox: skipped: without {measure}: "))
            || said.contains(&format!("{name}: skipped: without isolation: "));
        assert!(told, "{name}: {said}");
    }
}

#[test]
fn attempts_of_this_user_are_stopped() {
    let mut command = suite();
    // An ordinary user cannot make such a program, and lends none of root's own to a test.
    command
        .env_remove("ESCAPE_SETUID_ID")
        .env_remove("ESCAPE_CAPABLE_CAT");
    assert_stopped(&mut command);
}

/// A program with CAP_DAC_OVERRIDE of its own; empty where the file system takes none.
fn capable_cat(dir: &TempDir, python: &str) -> PathBuf {
    // struct vfs_ns_cap_data of linux/capability.h, revision 2: effective, and bit 1 permitted.
    const GIVE: &str = "import os, struct, sys\n\
        os.setxattr(sys.argv[1], 'security.capability', struct.pack('<5I', 0x02000001, 2, 0, 0, 0))";
    let cat = dir.join("cat");
    std::fs::copy("/bin/cat", &cat).unwrap();
    let mut give = Command::new(python);
    let given = give.args(["-c", GIVE]).arg(&cat).status();
    match given {
        Ok(status) if status.success() => cat,
        _ => PathBuf::new(),
    }
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
    std::fs::set_permissions(&id, PermissionsExt::from_mode(0o6755)).unwrap();
    let cat = capable_cat(&dir, python);
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
        .env("ESCAPE_SETUID_ID", &id)
        .env("ESCAPE_CAPABLE_CAT", cat);
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
            attempt.measures().next().is_some()
                && attempt.code.contains("def attempt():\n    \"\"\""),
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
    for level in ["none", "guard", "sandbox"] {
        let dir = TempDir::new();
        let config = format!(
            r#"{{"tools":[{{"name":"own"}}],"terminal":{{"cwd":{}}},"code_execution":{{"isolation":"{level}"}}}}"#,
            quoted(dir.path())
        );
        let engine = Engine::new(&config, Host::new()).unwrap();
        let other = Engine::new(&config, Host::new()).unwrap();
        for second in [&engine, &other] {
            speak_for_a_run_of(second, &engine);
        }
    }
}

/// A script on `first` tries to call the tools of a run on `second`: with its own token, with none, and with guesses.
fn speak_for_a_run_of(second: &Engine, first: &Engine) {
    let code = "import os\nprint(os.environ['PTC_RPC_SOCKET'], flush=True)\n\
                while True: os.read(os.pipe()[0], 1)";
    let waiting = second.start(code, "").unwrap();
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
        "import json, os, socket\n\
         own = os.environ['PTC_RPC_TOKEN']\n\
         guesses = [{{'token': t}} for t in (own, '', '0' * len(own), own[:-1], own * 2, None, True, 0, [own])]\n\
         for greeting in guesses + [{{}}, []]:\n\
         \x20   try:\n\
         \x20       c = socket.socket(socket.AF_UNIX)\n\
         \x20       c.connect({path:?})\n\
         \x20       c.sendall((json.dumps(greeting) + '\\n{{\"id\": 1, \"tool\": \"own\", \"args\": {{}}}}\\n').encode())\n\
         \x20       print('said', c.makefile().read())\n\
         \x20   except OSError as error:\n\
         \x20       print('said \"error\"', error)"
    );
    let ran = support::wait(&first.start(code, "").unwrap());
    let answers = ran.printed().split("said ").skip(1);
    let refused = answers.filter(|answer| answer.contains("\"error\"") || answer.trim().is_empty());
    assert_eq!(refused.count(), 11, "{}", ran.output());
    assert!(ran.calls().is_empty());
    waiting.cancel(None);
    assert!(support::wait(&waiting).calls().is_empty());
}

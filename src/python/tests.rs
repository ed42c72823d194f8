//! Runs real interpreters, every one that can be found, against a small server that speaks the wire protocol.

use super::environ::Environ;
use super::interpreter::{Interpreter, Interpreters};
use super::*;
use crate::json::{self, ObjectWriter};
use std::collections::HashMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{mpsc, Arc, Condvar, Mutex, OnceLock};
use std::time::Duration;

mod boot;
mod calls;
mod helpers;
mod interpreters;

const MODULE: &str = "hermes_tools";
const TOKEN: &str = "t\"0ken";
/// Only a test that fails waits this long.
const GUARD: Duration = Duration::from_secs(60);

/// The tools of these tests, as the stub generator would write them. `list` and `retry` share their names with a
/// built-in function and a helper.
const STUBS: &str = r#"

_ABSENT = object()

def echo(value):
    """Returns its argument."""
    return _call("echo", {"value": value})

def fail(message="no luck"):
    return _call("fail", {"message": message})

def reply(text):
    return _call("reply", {"text": text})

def meet(count, name=_ABSENT):
    args = {"count": count}
    if name is not _ABSENT:
        args["name"] = name
    return _call("meet", args)

def hang_up():
    return _call("hang-up", {})

def list(path="."):
    return _call("list", {"path": path})

__all__ = ["echo"]
"#;

const CONFIG: &str = r#"_CONFIG = {"module": "hermes_tools", "max_message_bytes": 1000000, "on_tool_error": "ON_ERROR", "tools": {
    "echo": {"function": "echo", "summary": "Returns its argument.", "signature": "echo(value: any)", "description": "Gives back what it gets."},
    "fail": {"function": "fail", "summary": "Fails.", "signature": "fail(message: str)", "description": "Always an error."},
    "reply": {"function": "reply", "summary": "", "signature": "reply(text)", "description": ""},
    "meet": {"function": "meet", "summary": "Waits for others.", "signature": "meet(count, name=...)", "description": ""},
    "hang-up": {"function": "hang_up", "summary": "Ends the line.", "signature": "hang_up()", "description": ""},
    "list": {"function": "list", "summary": "Lists files.", "signature": "list(path='.')", "description": "The search word is zebra."},
}}"#;

fn interpreters_with(module_source: String) -> Interpreters {
    Interpreters::new(module_source, crate::sys::dir::candidates())
}

fn module_source(on_error: &str) -> String {
    let config = CONFIG.replace("ON_ERROR", on_error);
    assert!(RUNTIME.contains("\n_CONFIG = {}\n"));
    RUNTIME.replace("\n_CONFIG = {}\n", &format!("\n{config}\n")) + STUBS + FINISH
}

/// Every interpreter on this machine, compiled for; at least one.
fn pythons() -> &'static [Arc<Interpreter>] {
    static FOUND: OnceLock<Vec<Arc<Interpreter>>> = OnceLock::new();
    FOUND.get_or_init(|| {
        let found: Vec<_> = installed()
            .iter()
            .filter_map(|path| {
                let interpreters = interpreters_with(module_source("return"));
                interpreters
                    .find(false, Some(path.to_str()?), &Environ::capture())
                    .ok()
            })
            .collect();
        assert!(!found.is_empty(), "these tests need a Python 3.8 or newer");
        found
    })
}

/// Files that may be interpreters, old ones included.
fn installed() -> Vec<PathBuf> {
    let home = std::env::var_os("HOME")
        .map(PathBuf::from)
        .unwrap_or_default();
    let versions = fs::read_dir(home.join(".pyenv/versions"));
    let mut paths: Vec<PathBuf> = versions
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path().join("bin/python"))
        .filter(|path| path.exists())
        .collect();
    paths.sort();
    let on_path = std::env::var_os("PATH").unwrap_or_default();
    let system = std::env::split_paths(&on_path).map(|dir| dir.join("python3"));
    paths.extend(system.filter(|path| path.is_file() && !path.to_string_lossy().contains("shims")));
    paths
}

/// A directory that is removed at the end of its test.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static COUNTER: AtomicU64 = AtomicU64::new(0);
        let number = COUNTER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("ptc-python-{}-{number}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).unwrap();
        Folder(path.canonicalize().unwrap())
    }

    fn write(&self, name: &str, content: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// One script's surroundings: a staging directory, a project directory that is its cwd, and a server.
struct Stage {
    staging: Folder,
    project: Folder,
    server: Server,
    environment: HashMap<String, OsString>,
    flags: Boot<'static>,
    on_error: &'static str,
    extra_path: Vec<PathBuf>,
    /// A Python program that starts its arguments, the interpreter's command line.
    wrapper: Option<&'static str>,
}

struct Outcome {
    stdout: String,
    stderr: String,
    code: Option<i32>,
    signal: Option<i32>,
    report: Option<String>,
}

impl Outcome {
    /// Asserts a clean end and returns stdout.
    fn clean(self, python: &Interpreter) -> String {
        assert_eq!(
            (self.code, self.stderr.as_str()),
            (Some(0), ""),
            "{}: stdout {:?}",
            python.executable.display(),
            self.stdout
        );
        self.stdout
    }
}

impl Stage {
    fn new() -> Self {
        let staging = Folder::new();
        let server = Server::start(&staging.0.join("rpc"));
        Stage {
            server,
            staging,
            project: Folder::new(),
            environment: HashMap::new(),
            flags: Boot {
                module: MODULE,
                ..Boot::default()
            },
            on_error: "return",
            extra_path: Vec::new(),
            wrapper: None,
        }
    }

    fn spawn(&self, python: &Interpreter, code: &str) -> Child {
        let script = self.staging.write("script.py", code);
        let _ = fs::remove_file(self.staging.0.join("report.json"));
        self.staging.write("sitecustomize.py", BOOT);
        self.staging
            .write("hermes_tools.py", &module_source(self.on_error));
        let cache = self.staging.0.join("__pycache__");
        fs::create_dir_all(&cache).unwrap();
        for (name, pyc) in [
            ("sitecustomize", &python.boot_pyc),
            (MODULE, &python.module_pyc),
        ] {
            let file = cache.join(format!("{name}.{}.pyc", python.cache_tag));
            if name == MODULE && self.on_error != "return" {
                let _ = fs::remove_file(file);
            } else {
                fs::write(file, pyc).unwrap();
            }
        }
        let boot = Boot {
            import_dir: Some(&self.project.0),
            ..self.flags
        };
        let path = std::iter::once(self.staging.0.clone()).chain(self.extra_path.iter().cloned());
        let mut command = Command::new(&python.executable);
        if let Some(wrapper) = self.wrapper {
            command
                .args(["-E", "-S", "-c", wrapper])
                .arg(&python.executable);
        }
        command
            .arg(script)
            .current_dir(&self.project.0)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("PYTHONPATH", std::env::join_paths(path).unwrap())
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env("PYTHONUTF8", "1")
            .env("PTC_RPC_SOCKET", self.staging.0.join("rpc"))
            .env("PTC_RPC_TOKEN", TOKEN)
            .env("PTC_BOOT", boot_value(boot))
            .envs(&self.environment)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    fn finish(&self, child: Child) -> Outcome {
        let (sender, ended) = mpsc::channel();
        let pid = child.id().to_string();
        std::thread::spawn(move || sender.send(child.wait_with_output()));
        let output = match ended.recv_timeout(GUARD) {
            Ok(output) => output.unwrap(),
            Err(_) => {
                let tree = Command::new("ps")
                    .args(["-eo", "pid,ppid,stat,wchan:20,args", "--forest"])
                    .output();
                let _ = Command::new("kill").args(["-9", &pid]).status();
                let said = ended
                    .recv_timeout(Duration::from_secs(5))
                    .ok()
                    .and_then(Result::ok);
                let tree = tree.map(|tree| String::from_utf8_lossy(&tree.stdout).into_owned());
                panic!("the script {pid} hangs; it said {said:?}; processes: {tree:?}");
            }
        };
        Outcome {
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            code: output.status.code(),
            signal: output.status.signal(),
            report: fs::read_to_string(self.staging.0.join("report.json")).ok(),
        }
    }

    fn run(&self, python: &Interpreter, code: &str) -> Outcome {
        self.finish(self.spawn(python, code))
    }
}

/// Runs `code` everywhere; it must end cleanly and print `expected`.
fn expect_everywhere(code: &str, expected: &str) {
    for python in pythons() {
        let stdout = Stage::new().run(python, code).clean(python);
        assert_eq!(stdout, expected, "{}", python.executable.display());
    }
}

/// The engine's side of the wire, as simple as can be.
struct Server {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    /// How many calls wait in `meet`, by its name; how many meetings there were.
    meetings: Mutex<(HashMap<String, usize>, HashMap<String, usize>)>,
    changed: Condvar,
    connections: AtomicU64,
    calls: AtomicU64,
}

impl Server {
    fn start(path: &Path) -> Self {
        let listener = UnixListener::bind(path).unwrap();
        let shared = Arc::new(Shared::default());
        let serving = Arc::clone(&shared);
        // Ends with the test process.
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = Arc::clone(&serving);
                std::thread::spawn(move || shared.serve(stream));
            }
        });
        Server { shared }
    }

    fn connections(&self) -> u64 {
        self.shared.connections.load(Ordering::SeqCst)
    }

    fn calls(&self) -> u64 {
        self.shared.calls.load(Ordering::SeqCst)
    }
}

impl Shared {
    fn serve(&self, mut stream: UnixStream) {
        self.connections.fetch_add(1, Ordering::SeqCst);
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let mut line = String::new();
        reader.read_line(&mut line).unwrap_or(0);
        if line.trim_end() != format!("{{\"token\":{}}}", json::quote(TOKEN)) {
            let _ = stream.write_all(b"{\"error\": \"Unauthorized\"}\n");
            return;
        }
        loop {
            line.clear();
            if reader.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            self.calls.fetch_add(1, Ordering::SeqCst);
            let members = json::members(json::validate(&line).unwrap()).unwrap();
            let find = |key: &str| members.iter().find(|(k, _)| k == key).unwrap().1;
            let tool = json::decode_string(find("tool")).unwrap();
            let args: HashMap<String, &str> =
                json::members(find("args")).unwrap().into_iter().collect();
            let mut answer = ObjectWriter::default();
            answer.raw("id", find("id"));
            match tool.as_str() {
                "echo" => answer.raw("result", args["value"]),
                "list" => answer.raw("result", format!("[{}]", args["path"])),
                "reply" => answer.raw("result", json::decode_string(args["text"]).unwrap()),
                "fail" => answer.raw("error", args["message"]),
                "meet" => match self.meet(&args) {
                    Some(text) => answer.string("result", &text),
                    None => answer.string("error", "nobody came"),
                },
                "hang-up" => return,
                _ => answer.string("error", "unknown tool"),
            };
            if stream
                .write_all((answer.finish() + "\n").as_bytes())
                .is_err()
            {
                return;
            }
        }
    }

    /// Waits until `count` calls are here at once, which only real parallelism brings about.
    fn meet(&self, args: &HashMap<String, &str>) -> Option<String> {
        let count: usize = args["count"].parse().unwrap();
        let name = args
            .get("name")
            .map_or(String::new(), |name| json::decode_string(name).unwrap());
        let mut meetings = self.meetings.lock().unwrap();
        let round = meetings.1.get(&name).copied().unwrap_or(0);
        *meetings.0.entry(name.clone()).or_default() += 1;
        if meetings.0[&name] == count {
            meetings.0.insert(name.clone(), 0);
            *meetings.1.entry(name.clone()).or_default() += 1;
        }
        self.changed.notify_all();
        let not_yet = |m: &mut (HashMap<String, usize>, HashMap<String, usize>)| {
            m.1.get(&name).copied().unwrap_or(0) == round
        };
        let (meetings, waited) = self
            .changed
            .wait_timeout_while(meetings, GUARD / 2, not_yet)
            .unwrap();
        drop(meetings);
        (!waited.timed_out()).then_some(name)
    }

    /// Waits until `count` calls named `name` are in `meet`.
    fn await_guests(&self, name: &str, count: usize) {
        let meetings = self.meetings.lock().unwrap();
        let missing = |m: &mut (HashMap<String, usize>, HashMap<String, usize>)| {
            m.0.get(name).copied().unwrap_or(0) < count
        };
        let (_guests, waited) = self
            .changed
            .wait_timeout_while(meetings, GUARD, missing)
            .unwrap();
        assert!(!waited.timed_out(), "no call arrived");
    }
}

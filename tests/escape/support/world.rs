//! The world around an attempt: a host with secrets, other processes and other runs to get at.

use super::support::{self, execute, Ran, TempDir};
use super::Attempt;
use ptc::{Engine, EventKind, Host, Run};
use serde_json::{json, Value};
use std::collections::HashMap;
use std::io::Read as _;
use std::net::TcpListener;
use std::os::fd::AsRawFd as _;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

const PRELUDE: &str = include_str!("prelude.py");
const VERDICT: &str = include_str!("verdict.py");

/// What a script that reads the host's memory finds.
static IN_MEMORY: [u8; 16] = *b"sixteen bytes...";

/// Those of real-time that the C libraries leave to programs.
const FIRST_SIGNAL: u32 = 35;
const LAST_SIGNAL: u32 = 64;

/// What scripts try to get at. Everything ends with it.
pub struct World {
    dir: TempDir,
    python: Option<String>,
    _unnamed: std::fs::File,
    _server: TcpListener,
    _abstract: UnixListener,
    stranger: Child,
    /// It takes no signals: what is sent to it stays to be seen.
    victim: Child,
    next_signal: AtomicU32,
    engines: Mutex<HashMap<String, Arc<Engine>>>,
    sibling: Run,
    variables: Value,
}

impl World {
    pub fn new() -> World {
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
        let victim = victim(python.as_deref().unwrap_or("python3"));
        let (sibling, sibling_pid) = sibling(python.as_deref());
        let variables = json!({
            "UNNAMED": unnamed.as_raw_fd().to_string(),
            "PORT": server.local_addr().unwrap().port().to_string(),
            "ABSTRACT": name,
            "STRANGER": stranger.id().to_string(),
            "STRANGER_ADDRESS": address_of_stack(stranger.id()).to_string(),
            "HOST_ADDRESS": (IN_MEMORY.as_ptr() as usize).to_string(),
            "SIBLING": sibling_pid.to_string(),
            "VICTIM": victim.id().to_string(),
            "SETUID_ID": std::env::var("ESCAPE_SETUID_ID").unwrap_or_default(),
            "CAPABLE_CAT": std::env::var("ESCAPE_CAPABLE_CAT").unwrap_or_default(),
            "USERS_HOME": std::env::var("HOME").unwrap_or_default(),
        });
        World {
            dir,
            python,
            _unnamed: unnamed,
            _server: server,
            _abstract: abstract_socket,
            stranger,
            victim,
            next_signal: AtomicU32::new(FIRST_SIGNAL),
            engines: Mutex::default(),
            sibling,
            variables,
        }
    }

    /// The engine for scripts that are locked in like this; they share it.
    fn engine(&self, isolation: Value) -> Arc<Engine> {
        let mut engines = self.engines.lock().unwrap();
        let made = engines.entry(isolation.to_string()).or_insert_with(|| {
            let mut config = json!({"code_execution": {"isolation": isolation, "kill_grace": 1}});
            if let Some(python) = &self.python {
                config["python"] = python.as_str().into();
            }
            Arc::new(support::engine(&config.to_string()))
        });
        Arc::clone(made)
    }

    /// A signal that only this attempt at this level sends; 0 for one that sends none.
    fn signal_for(&self, attempt: &Attempt) -> u32 {
        if attempt.head("signal").is_empty() {
            return 0;
        }
        let signal = self.next_signal.fetch_add(1, Ordering::Relaxed);
        assert!(signal <= LAST_SIGNAL, "one signal for each attempt");
        signal
    }

    /// What came of `attempt` at `level`.
    pub fn attempt(&self, attempt: &Attempt, level: &str) -> Ran {
        let place = self.dir.join(&format!("{}-{level}", attempt.name));
        for folder in ["cwd", "out/folder"] {
            std::fs::create_dir_all(place.join(folder)).unwrap();
        }
        std::fs::write(place.join("out/file"), "outside").unwrap();
        let mut variables = self.variables.clone();
        variables["OUT"] = place.join("out").to_string_lossy().into();
        variables["SIGNAL"] = self.signal_for(attempt).to_string().into();
        let options =
            json!({"env": variables, "cwd": place.join("cwd"), "timeout": 100, "mode": "project"});
        let code = format!("{PRELUDE}\n{}\n{VERDICT}", attempt.code);
        execute(
            &self.engine(attempt.isolation(level)),
            &options.to_string(),
            code,
        )
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.sibling.cancel(None);
        let _ = support::wait(&self.sibling);
        for child in [&mut self.stranger, &mut self.victim] {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A process that lets every signal wait that can.
fn victim(python: &str) -> Child {
    let code = "import signal, sys\n\
                signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())\n\
                print('up', flush=True)\n\
                sys.stdin.read()";
    let mut command = Command::new(python);
    command.args(["-c", code]);
    let streams = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut victim = streams.spawn().unwrap();
    let said = victim.stdout.as_mut().unwrap().read_exact(&mut [0; 3]);
    said.expect("it blocks its signals");
    victim
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

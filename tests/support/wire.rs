//! Ways into a running script: a gate through which it reports and is told to go on, a raw client of its tool socket,
//! and test processes of their own.
#![allow(dead_code)] // Every test program takes what it needs of this.

use super::support::{quoted, wait, Ran, TempDir, ECHO, PATIENCE};
use ptc::{Engine, Host, Run};
use serde_json::{json, Value};
use std::io::{BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// What a script begins with to have `gate`, its connection to the test.
pub const GATE: &str = "
import os, socket
def open_gate():
    gate = socket.socket(socket.AF_UNIX)
    gate.connect(os.environ['GATE'])
    return gate
gate = open_gate()
";

/// A socket of the test to which scripts and their children connect: what they say arrives in order, and their end shows
/// as the end of the connection, whatever they died of.
pub struct Gate {
    dir: TempDir,
    visitors: Mutex<Receiver<UnixStream>>,
    closing: Arc<AtomicBool>,
    porter: Option<JoinHandle<()>>,
}

impl Gate {
    pub fn new() -> Gate {
        let dir = TempDir::new();
        let listener = UnixListener::bind(dir.join("gate")).expect("a socket");
        let (send, visitors) = mpsc::channel();
        let closing = Arc::new(AtomicBool::new(false));
        let closed = Arc::clone(&closing);
        let porter = std::thread::spawn(move || {
            for visitor in listener.incoming().map_while(Result::ok) {
                if closed.load(Ordering::Acquire) || send.send(visitor).is_err() {
                    return;
                }
            }
        });
        Gate {
            dir,
            visitors: Mutex::new(visitors),
            closing,
            porter: Some(porter),
        }
    }

    pub fn path(&self) -> PathBuf {
        self.dir.join("gate")
    }

    /// Options of a run that let its script find the gate; `more` is what follows, such as `"timeout":1`.
    pub fn options(&self, more: &str) -> String {
        let comma = if more.is_empty() { "" } else { "," };
        format!(
            r#"{{"env":{{"GATE":{}}}{comma}{more}}}"#,
            quoted(self.path())
        )
    }

    /// The next one that connects.
    pub fn visitor(&self) -> Visitor {
        let visitors = self.visitors.lock().unwrap();
        let stream = visitors
            .recv_timeout(PATIENCE)
            .expect("the script comes to the gate");
        Visitor::new(stream)
    }

    /// Starts a script with a timeout that says `up` at the gate when it is ready for it, and again with a longer one
    /// if that has come first: how long a start takes is the machine's business.
    pub fn visitor_in_time(&self, start: impl Fn(&str) -> Run) -> (Run, Visitor) {
        let has_ended = |run: &Run| run.wait(Some(Duration::ZERO)).unwrap().is_some();
        self.visitor_before(start, has_ended)
    }

    /// As [`Gate::visitor_in_time`] for a run that this thread must not wait for, not even for a moment.
    pub fn visitor_before(
        &self,
        start: impl Fn(&str) -> Run,
        has_ended: impl Fn(&Run) -> bool,
    ) -> (Run, Visitor) {
        for timeout in ["1", "5", "25", "100"] {
            let run = start(&self.options(&format!(r#""timeout":{timeout}"#)));
            if let Some(mut visitor) = self.visitor_or_end(|| has_ended(&run)) {
                let mut line = String::new();
                if visitor.0.read_line(&mut line).is_ok() && line == "up\n" {
                    return (run, visitor);
                }
            }
        }
        panic!("the script never came to the gate");
    }

    fn visitor_or_end(&self, has_ended: impl Fn() -> bool) -> Option<Visitor> {
        let visitors = self.visitors.lock().unwrap();
        loop {
            if let Ok(stream) = visitors.recv_timeout(Duration::from_millis(20)) {
                return Some(Visitor::new(stream));
            }
            if has_ended() {
                // It may have come and gone meanwhile.
                return visitors.try_recv().ok().map(Visitor::new);
            }
        }
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.closing.store(true, Ordering::Release);
        drop(UnixStream::connect(self.path()));
        if let Some(porter) = self.porter.take() {
            let _ = porter.join();
        }
    }
}

/// A script, or a child of it, at the gate.
pub struct Visitor(BufReader<UnixStream>);

impl Visitor {
    fn new(stream: UnixStream) -> Visitor {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        Visitor(BufReader::new(stream))
    }

    /// The next line that it says.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).expect("a line in time");
        assert!(line.ends_with('\n'), "it ended after {line:?}");
        line.pop();
        line
    }

    pub fn say(&mut self, line: &str) {
        let stream = self.0.get_mut();
        stream.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    /// Waits until nobody holds the other end any more and gives what was said until then.
    pub fn rest(mut self) -> String {
        let mut rest = Vec::new();
        match self.0.read_to_end(&mut rest) {
            Ok(_) => {}
            // It died with something unread.
            Err(e) if e.kind() == ErrorKind::ConnectionReset => {}
            Err(e) => panic!("it still holds the gate: {e}"),
        }
        String::from_utf8(rest).unwrap()
    }
}

/// A running script that stays for as long as the test talks to its socket, and calls tools itself when it is asked to.
pub struct Talk {
    pub run: Run,
    pub engine: Engine,
    pub socket: PathBuf,
    pub token: String,
    script: Visitor,
    _gate: Gate,
}

const TALK: &str = "
import json, hermes_tools
gate.sendall((os.environ['PTC_RPC_SOCKET'] + '\\n' + os.environ['PTC_RPC_TOKEN'] + '\\n').encode())
for line in gate.makefile():
    gate.sendall((json.dumps(eval(line)) + '\\n').encode())
";

impl Talk {
    /// Starts one. The host needs threads of its own.
    pub fn new(config: &str, host: Host) -> Talk {
        let engine = Engine::new(config, host).unwrap_or_else(|e| panic!("{config}: {e}"));
        Talk::on(&engine)
    }

    /// Starts another one on the same engine.
    pub fn on(engine: &Engine) -> Talk {
        let gate = Gate::new();
        let options = gate.options("");
        let code = GATE.to_string() + TALK;
        let run = engine.start(code, &options).expect("it starts");
        let mut script = gate.visitor();
        Talk {
            run,
            engine: engine.clone(),
            socket: script.line().into(),
            token: script.line(),
            script,
            _gate: gate,
        }
    }

    /// Evaluates an expression in the script.
    pub fn ask(&mut self, expression: &str) -> Value {
        self.script.say(expression);
        serde_json::from_str(&self.script.line()).unwrap()
    }

    /// A connection that has not said anything yet.
    pub fn stranger(&self) -> Client {
        Client::new(&self.socket)
    }

    /// A connection that has shown the token.
    pub fn client(&self) -> Client {
        let mut client = self.stranger();
        client.send(self.greeting());
        client
    }

    /// The first line, with its newline.
    pub fn greeting(&self) -> String {
        format!("{}\n", json!({ "token": self.token }))
    }

    /// Lets the script end and gives its result, which has to be a success.
    pub fn end(self) -> Ran {
        drop(self.script);
        let ran = wait(&self.run);
        ran.printed();
        ran
    }
}

/// A program that speaks the wire protocol, rightly or wrongly.
pub struct Client(BufReader<UnixStream>);

impl Client {
    fn new(socket: &Path) -> Client {
        let stream = UnixStream::connect(socket).expect("the run listens");
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        Client(BufReader::new(stream))
    }

    pub fn stream(&self) -> &UnixStream {
        self.0.get_ref()
    }

    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        let mut stream = self.0.get_ref();
        stream.write_all(bytes.as_ref()).expect("it can be sent");
    }

    /// Sends what may not be taken because the other side has had enough.
    pub fn try_send(&mut self, bytes: impl AsRef<[u8]>) {
        let _ = self.0.get_ref().write_all(bytes.as_ref());
    }

    pub fn request(&mut self, id: &str, value: &str) {
        self.send(request(id, value));
    }

    /// The next answer, as text without its newline.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).expect("an answer in time");
        assert!(line.ends_with('\n'), "the connection ended after {line:?}");
        line.pop();
        line
    }

    pub fn answer(&mut self) -> Value {
        let line = self.line();
        serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line}"))
    }

    /// Sends a line and gives its answer.
    pub fn ask(&mut self, line: impl AsRef<[u8]>) -> Value {
        self.send([line.as_ref(), b"\n"].concat());
        self.answer()
    }

    /// Proves that calls over this connection still work.
    pub fn assert_served(&mut self) {
        let answer = self.ask(r#"{"id":"check","tool":"echo","args":{"value":"served"}}"#);
        assert_eq!(answer, json!({"id": "check", "result": "served"}));
    }

    /// Waits until the other side ends the connection.
    pub fn assert_closed(mut self) {
        let mut rest = String::new();
        match self.0.read_to_string(&mut rest) {
            Ok(_) => assert_eq!(rest, ""),
            // It was closed with bytes of ours unread.
            Err(e) => assert_eq!(e.kind(), ErrorKind::ConnectionReset),
        }
    }
}

/// A configuration with the tool `echo` and room for many calls; `settings` begin with a comma.
pub fn echo_config(settings: &str) -> String {
    format!(
        r#"{{"code_execution":{{"max_tool_calls":100000,"kill_grace":1{settings}}},"tools":[{ECHO}]}}"#
    )
}

/// A line that calls `echo`; `id` and `value` are JSON.
pub fn request(id: &str, value: &str) -> String {
    format!("{{\"id\":{id},\"tool\":\"echo\",\"args\":{{\"value\":{value}}}}}\n")
}

/// Something that threads wait for and others bring about.
#[derive(Default)]
pub struct Watched<T>(Mutex<T>, Condvar);

impl<T> Watched<T> {
    pub fn new(value: T) -> Watched<T> {
        Watched(Mutex::new(value), Condvar::new())
    }

    pub fn change<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        let result = change(&mut self.0.lock().unwrap());
        self.1.notify_all();
        result
    }

    /// Waits until `reached`, and then changes it in the same breath.
    pub fn wait<R>(&self, reached: impl Fn(&T) -> bool, change: impl FnOnce(&mut T) -> R) -> R {
        let value = self.0.lock().unwrap();
        let (mut value, waited) = self
            .1
            .wait_timeout_while(value, PATIENCE, |value| !reached(value))
            .unwrap();
        assert!(!waited.timed_out(), "what was waited for did not happen");
        change(&mut value)
    }
}

const ALONE: &str = "TEST_ALONE";

/// The command that runs the ignored test `name` in a process of its own, where no other test disturbs what it
/// measures. `argument` is what [`alone`] gives it there.
pub fn alone_command(name: &str, argument: &str) -> Command {
    let program = std::env::current_exe().expect("the test program");
    let mut command = Command::new(program);
    command
        .args([
            "--exact",
            name,
            "--ignored",
            "--nocapture",
            "--test-threads=1",
        ])
        .env(ALONE, argument)
        .stdin(Stdio::null());
    command
}

/// Runs the ignored test `name` in a process of its own and wants it to pass.
pub fn run_alone(name: &str) {
    let output = alone_command(name, "").output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("1 passed"), "there is no test {name}: {said}");
}

/// For such a test: what it was given, or `None` if somebody just runs all ignored tests and it has nothing to do.
pub fn alone() -> Option<String> {
    std::env::var(ALONE).ok()
}

/// A number from a line of /proc/self/status, such as `VmHWM`, in its unit.
#[cfg(target_os = "linux")]
pub fn own_status(key: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find_map(|l| l.strip_prefix(key)?.strip_prefix(':'));
    let number = line.and_then(|l| l.split_whitespace().next());
    number.expect("the key is there").parse().unwrap()
}

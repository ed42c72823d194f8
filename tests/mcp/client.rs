//! A client that says exactly what it is told to say, and hears every line.

use super::support::{TempDir, PATIENCE};
use serde_json::{json, Value};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{channel, Receiver};

pub const NEWEST: &str = "2025-06-18";
pub const MIDDLE: &str = "2025-03-26";
pub const OLDEST: &str = "2024-11-05";

pub fn ptc_mcp(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ptc"));
    command.arg("mcp").args(args);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// A server under test.
pub struct Client {
    pub child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<Vec<u8>>,
    next_id: u64,
}

/// What a server left behind.
pub struct Ended {
    pub status: ExitStatus,
    /// What it had said and nobody had heard.
    pub rest: Vec<Value>,
    pub stderr: String,
}

impl Client {
    /// A server that nothing was said to.
    pub fn start(args: &[&str]) -> Client {
        let mut child = ptc_mcp(args).spawn().expect("the server starts");
        let stdout = child.stdout.take().expect("a pipe");
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            let mut stdout = BufReader::new(stdout);
            loop {
                let mut line = Vec::new();
                match stdout.read_until(b'\n', &mut line) {
                    Ok(1..) if sender.send(line).is_ok() => {}
                    _ => return,
                }
            }
        });
        Client {
            stdin: child.stdin.take(),
            child,
            lines,
            next_id: 100,
        }
    }

    /// A server that has agreed on `version`.
    pub fn speaking(version: &str, args: &[&str]) -> Client {
        let mut client = Client::start(args);
        let answer = client.ask("initialize", initialize(version));
        assert_eq!(answer["result"]["protocolVersion"], version, "{answer}");
        client.say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        client
    }

    pub fn say_bytes(&mut self, bytes: &[u8]) {
        let stdin = self.stdin.as_mut().expect("it is open");
        stdin.write_all(bytes).expect("the server listens");
        stdin.flush().expect("the server listens");
    }

    pub fn say_text(&mut self, line: &str) {
        self.say_bytes(format!("{line}\n").as_bytes());
    }

    pub fn say(&mut self, message: &Value) {
        self.say_text(&message.to_string());
    }

    /// Sends a request and returns its identifier.
    pub fn request(&mut self, method: &str, params: Value) -> u64 {
        self.next_id += 1;
        let id = self.next_id;
        self.say(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    /// Sends a request and returns the next message, which has to be its answer.
    pub fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params);
        let answer = self.hear();
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    /// Sends a call of the tool.
    pub fn call(&mut self, code: &str) -> u64 {
        self.request("tools/call", script(code))
    }

    /// Calls the tool and returns the result.
    pub fn run(&mut self, code: &str) -> Value {
        let answer = self.ask("tools/call", script(code));
        answer["result"].clone()
    }

    pub fn cancel(&mut self, id: u64) {
        let params = json!({"requestId": id, "reason": "not needed any more"});
        self.say(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}));
    }

    /// The server still serves, and has nothing else to say.
    pub fn assert_answers(&mut self) {
        let answer = self.ask("ping", json!({}));
        assert_eq!(answer["result"], json!({}), "{answer}");
    }

    /// The next message.
    pub fn hear(&mut self) -> Value {
        let line = self.lines.recv_timeout(PATIENCE);
        message(&line.expect("the server answers in time"))
    }

    /// The code of the error that comes next, for the request `id`.
    pub fn hear_error(&mut self, id: &Value) -> i64 {
        let answer = self.hear();
        assert_eq!(&answer["id"], id, "{answer}");
        assert!(answer["error"]["message"].is_string(), "{answer}");
        answer["error"]["code"].as_i64().expect("a code")
    }

    /// Closes the server's input and sees it end.
    pub fn end(mut self) -> Ended {
        drop(self.stdin.take());
        self.ended()
    }

    /// Sends `signal` (`-TERM`) and sees it end.
    pub fn end_by(mut self, signal: &str) -> Ended {
        send(signal, &self.child);
        self.ended()
    }

    fn ended(&mut self) -> Ended {
        let mut rest = Vec::new();
        while let Ok(line) = self.lines.recv_timeout(PATIENCE) {
            rest.push(message(&line));
        }
        let mut stderr = String::new();
        let pipe = self.child.stderr.as_mut().expect("a pipe");
        pipe.read_to_string(&mut stderr).expect("text");
        Ended {
            status: self.child.wait().expect("a child"),
            rest,
            stderr,
        }
    }
}

impl Ended {
    /// It ended as it should, and nothing was left to say.
    pub fn assert_quiet(&self) {
        self.assert_well();
        assert!(self.rest.is_empty(), "{:?}", self.rest);
    }

    /// It ended as it should.
    pub fn assert_well(&self) {
        assert!(self.status.success(), "{:?} {}", self.status, self.stderr);
        assert_eq!(self.stderr, "");
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // Of a test that has failed; else it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A line of the server's, which is one message and nothing else.
fn message(line: &[u8]) -> Value {
    let text = std::str::from_utf8(line).expect("UTF-8");
    let message: Value = serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}: {text}"));
    let one_line = text.ends_with('\n') && text.matches(['\n', '\r']).count() == 1;
    assert!(one_line, "{text:?}");
    match &message {
        Value::Array(answers) => assert!(answers.iter().all(|a| a["jsonrpc"] == "2.0"), "{text}"),
        one => assert_eq!(one["jsonrpc"], "2.0", "{text}"),
    }
    message
}

pub fn send(signal: &str, child: &Child) {
    let sent = Command::new("kill")
        .args([signal, &child.id().to_string()])
        .status();
    assert!(sent.expect("kill").success());
}

pub fn initialize(version: &str) -> Value {
    let client = json!({"name": "test", "version": "1"});
    json!({"protocolVersion": version, "capabilities": {}, "clientInfo": client})
}

/// Parameters of a call.
pub fn script(code: &str) -> Value {
    json!({"name": "execute_code", "arguments": {"code": code}})
}

/// A script that says when it runs, and whose end can be waited for: it holds a named pipe open meanwhile.
pub struct Beacon {
    dir: TempDir,
    reader: Option<BufReader<std::fs::File>>,
}

impl Beacon {
    pub fn new() -> Beacon {
        let dir = TempDir::new();
        let made = Command::new("mkfifo").arg(dir.join("pipe")).status();
        assert!(made.expect("mkfifo").success());
        Beacon { dir, reader: None }
    }

    pub fn path(&self) -> PathBuf {
        self.dir.join("pipe")
    }

    /// A script that says so when it has begun, and then does `body`.
    pub fn script(&self, body: &str) -> String {
        self.script_after("", body)
    }

    /// As [`Beacon::script`], with `before` done before it says so.
    pub fn script_after(&self, before: &str, body: &str) -> String {
        let path = self.path();
        format!(
            "import os, signal, time\npipe = open({path:?}, 'w')\n{before}\n\
             os.write(pipe.fileno(), b'begun\\n')\n{body}"
        )
    }

    /// Waits until the script has begun.
    pub fn wait_for_begin(&mut self) {
        let path = self.path();
        let opened = within_patience(move || std::fs::File::open(path).expect("a pipe"));
        self.reader = Some(BufReader::new(opened));
        self.expect("begun");
    }

    /// Waits for a line of the script's.
    pub fn expect(&mut self, expected: &str) {
        let mut reader = self.reader.take().expect("it has begun");
        let (line, reader) = within_patience(move || {
            let mut line = String::new();
            reader.read_line(&mut line).expect("a line");
            (line, reader)
        });
        assert_eq!(line.trim_end(), expected);
        self.reader = Some(reader);
    }

    /// Waits until no process has the pipe any more.
    pub fn wait_for_end(&mut self) {
        let mut reader = self.reader.take().expect("it has begun");
        within_patience(move || reader.read_to_end(&mut Vec::new()).expect("an end"));
    }
}

/// Does what may wait for something that never happens.
fn within_patience<T: Send + 'static>(wait: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, receiver) = channel();
    std::thread::spawn(move || sender.send(wait()));
    receiver.recv_timeout(PATIENCE).expect("it happens in time")
}

//! Calling the command as a user does.
#![allow(dead_code)] // Every test program takes what it needs of this.

use std::io::{BufRead, Write as _};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

pub fn ptc(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ptc"));
    command.args(args).stdin(Stdio::null());
    command
}

/// Runs `code` as standard input.
pub fn run(code: &str, args: &[&str]) -> Output {
    let mut child = start(code, args);
    drop(child.stdin.take());
    child.wait_with_output().unwrap()
}

/// As [`run`], going on while it runs.
pub fn start(code: &str, args: &[&str]) -> Child {
    let mut all = vec!["run", "-"];
    all.extend(args);
    let mut child = ptc(&all)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(code.as_bytes())
        .unwrap();
    child
}

/// Runs the command with `input` as its standard input.
pub fn fed(input: &str, args: &[&str]) -> Output {
    let mut child = ptc(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input.as_bytes()).unwrap();
    drop(stdin);
    child.wait_with_output().unwrap()
}

/// Sends `signal` (`-INT`) as a user would.
pub fn send(signal: &str, child: &Child) {
    let sent = Command::new("kill")
        .args([signal, &child.id().to_string()])
        .status();
    assert!(sent.unwrap().success());
}

pub fn expect_line(stdout: &mut impl BufRead, expected: &str) {
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    assert_eq!(line, format!("{expected}\n"));
}

/// A pipe that nobody reads.
pub fn broken_pipe() -> Stdio {
    let (reader, writer) = std::os::unix::net::UnixStream::pair().unwrap();
    drop(reader);
    std::os::fd::OwnedFd::from(writer).into()
}

pub fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

pub fn json(output: &Output) -> serde_json::Value {
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A directory for one test, gone at its end.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new() -> Folder {
        static COUNTER: AtomicU32 = AtomicU32::new(0);
        let number = COUNTER.fetch_add(1, Ordering::Relaxed);
        let path =
            std::env::temp_dir().join(format!("ptc-command-{}-{number}", std::process::id()));
        std::fs::create_dir(&path).unwrap();
        Folder(path.canonicalize().unwrap())
    }

    pub fn write(&self, name: &str, content: &str) -> String {
        let path = self.path(name);
        std::fs::write(&path, content).unwrap();
        path
    }

    pub fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

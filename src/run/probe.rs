//! Runs an interpreter probe the way scripts are run: same spawn, same environment rules, a deadline, bounded output.

use super::output::Capture;
use crate::python::{ProbeCommand, ProbeOutput};
use crate::sys::child::{Child, ExitStatus};
use crate::sys::confine::Confine;
use crate::sys::fd;
use crate::sys::leash::Leash;
use crate::sys::poll::{deadline_after, has_passed, poll, PollFd};
use crate::sys::spawn::{self, Command};
use std::ffi::{CString, OsStr};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

/// The compiled modules of an engine with many tools, in base64.
const STDOUT_BYTES: usize = 64 << 20;
const STDERR_BYTES: usize = 16 << 10;

pub(super) fn run(probe: &ProbeCommand) -> Result<ProbeOutput, String> {
    let (stdout, child_stdout) = fd::pipe().map_err(|e| e.to_string())?;
    let (stderr, child_stderr) = fd::pipe().map_err(|e| e.to_string())?;
    let leash = Leash::new().map_err(|e| e.to_string())?;
    let mut argv = vec![cstring(probe.program.as_os_str())?];
    for arg in &probe.args {
        argv.push(cstring(arg)?);
    }
    let mut envp = Vec::new();
    for (name, value) in &probe.env {
        envp.push(cstring(OsStr::from_bytes(
            &[name.as_bytes(), b"=", value.as_bytes()].concat(),
        ))?);
    }
    let child = spawn::spawn(Command {
        program: cstring(probe.program.as_os_str())?,
        argv,
        envp,
        cwd: c"/".into(),
        stdout: child_stdout,
        stderr: child_stderr,
        leash: Some(leash),
        tag: None,
        limits: Vec::new(),
        confine: Confine::none(),
        #[cfg(test)]
        fault: None,
    })
    .map_err(|e| e.message().to_string())?;
    watch(child, stdout, stderr, probe)
}

/// Reads both pipes until the probe has ended or its time is over.
fn watch(
    child: Child,
    stdout: OwnedFd,
    stderr: OwnedFd,
    probe: &ProbeCommand,
) -> Result<ProbeOutput, String> {
    let deadline = deadline_after(probe.timeout);
    let mut pipes = [
        Pipe::new(stdout, STDOUT_BYTES)?,
        Pipe::new(stderr, STDERR_BYTES)?,
    ];
    while !child.has_exited() {
        if has_passed(deadline) {
            let _ = child.kill();
            drop(child);
            return Err(format!(
                "it did not answer within {} s",
                probe.timeout.as_secs_f64()
            ));
        }
        let mut fds = [
            PollFd::readable(pipes[0].raw_fd()),
            PollFd::readable(pipes[1].raw_fd()),
            PollFd::readable(child.exit_fd()),
        ];
        poll(&mut fds, deadline).map_err(|e| e.to_string())?;
        pipes.iter_mut().for_each(Pipe::read_all);
    }
    let _ = child.kill();
    pipes.iter_mut().for_each(Pipe::read_all);
    let status = child.reap();
    let [stdout, stderr] = pipes.map(|p| p.capture.finish(None).text);
    Ok(ProbeOutput {
        stdout: stdout.into_bytes(),
        stderr: stderr.into_bytes(),
        // Where the host has taken the status away, the answer itself must do.
        success: matches!(status, ExitStatus::Exited(0) | ExitStatus::Unknown),
        description: describe(status),
    })
}

fn describe(status: ExitStatus) -> String {
    match status {
        ExitStatus::Exited(code) => format!("it ended with exit code {code}"),
        ExitStatus::Signaled(signal) => format!("it was killed by signal {signal}"),
        ExitStatus::Unknown => "its exit status is unknown".into(),
    }
}

struct Pipe {
    fd: Option<OwnedFd>,
    capture: Capture,
}

impl Pipe {
    fn new(fd: OwnedFd, limit: usize) -> Result<Self, String> {
        fd::set_nonblocking(fd.as_raw_fd()).map_err(|e| e.to_string())?;
        Ok(Pipe {
            fd: Some(fd),
            capture: Capture::new(limit),
        })
    }

    fn raw_fd(&self) -> i32 {
        self.fd.as_ref().map_or(-1, AsRawFd::as_raw_fd)
    }

    fn read_all(&mut self) {
        let mut buffer = [0; 16 * 1024];
        while let Some(fd) = &self.fd {
            match fd::read(fd.as_raw_fd(), &mut buffer) {
                Ok(n) if n > 0 => self.capture.push(&buffer[..n]),
                Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => return,
                _ => self.fd = None,
            }
        }
    }
}

fn cstring(text: &OsStr) -> Result<CString, String> {
    CString::new(text.as_bytes())
        .map_err(|_| format!("{} contains a NUL byte", text.to_string_lossy()))
}

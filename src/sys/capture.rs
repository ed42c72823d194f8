//! Short runs of a program for what it prints: same start as a script's, bounded output, a deadline.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

use super::child::{Child, ExitStatus};
use super::fd;
use super::leash::Leash;
use super::poll::{deadline_after, has_passed, poll, PollFd};
use super::spawn::{self, Command};

/// What a program printed, and how it ended.
#[derive(Debug)]
pub(crate) struct Captured {
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
    pub(crate) status: ExitStatus,
}

/// Why there is no output.
#[derive(Debug)]
pub(crate) enum Failure {
    /// It could not be started; why.
    NotStarted(String),
    /// It did not end in time and was killed.
    TooSlow,
    /// It printed more than was allowed and was killed.
    TooMuch,
}

/// Runs `program` with `args` in `/` and returns what it printed, at most `limit` bytes of each stream. What it has
/// started itself is killed when it ends; the leash ends it with the host.
pub(crate) fn capture(
    program: CString,
    args: Vec<CString>,
    envp: Vec<CString>,
    limit: usize,
    timeout: Duration,
) -> Result<Captured, Failure> {
    let refused = |e: io::Error| Failure::NotStarted(e.to_string());
    let (stdout, child_stdout) = fd::pipe().map_err(refused)?;
    let (stderr, child_stderr) = fd::pipe().map_err(refused)?;
    let mut command = Command::new(program, c"/".into(), child_stdout, child_stderr);
    command.argv.extend(args);
    command.envp = envp;
    command.leash = Some(Leash::new().map_err(refused)?);
    let streams = [
        Stream::new(stdout, limit).map_err(refused)?,
        Stream::new(stderr, limit).map_err(refused)?,
    ];
    let child = spawn::spawn(command).map_err(|e| Failure::NotStarted(e.message().to_string()))?;
    read_to_the_end(child, streams, deadline_after(timeout))
}

/// Dropping the child on the way out kills and reaps it.
fn read_to_the_end(
    child: Child,
    mut streams: [Stream; 2],
    deadline: Option<Instant>,
) -> Result<Captured, Failure> {
    while !child.has_exited() {
        if has_passed(deadline) {
            return Err(Failure::TooSlow);
        }
        let mut fds = [
            PollFd::readable(streams[0].raw_fd()),
            PollFd::readable(streams[1].raw_fd()),
            PollFd::readable(child.exit_fd()),
        ];
        poll(&mut fds, deadline).map_err(|e| Failure::NotStarted(e.to_string()))?;
        read_both(&mut streams)?;
    }
    // Its descendants must not keep writing while the rest is read. That none is left is no error.
    let _ = child.kill();
    read_both(&mut streams)?;
    let [stdout, stderr] = streams.map(|stream| stream.bytes);
    Ok(Captured {
        stdout,
        stderr,
        status: child.reap(),
    })
}

fn read_both(streams: &mut [Stream; 2]) -> Result<(), Failure> {
    streams.iter_mut().try_for_each(Stream::read)
}

struct Stream {
    /// `None` after its end: polling it on would return at once, again and again.
    fd: Option<OwnedFd>,
    bytes: Vec<u8>,
    limit: usize,
}

impl Stream {
    fn new(fd: OwnedFd, limit: usize) -> io::Result<Self> {
        fd::set_nonblocking(fd.as_raw_fd())?;
        Ok(Stream {
            fd: Some(fd),
            bytes: Vec::new(),
            limit,
        })
    }

    fn raw_fd(&self) -> i32 {
        self.fd.as_ref().map_or(-1, AsRawFd::as_raw_fd)
    }

    /// Reads what is there.
    fn read(&mut self) -> Result<(), Failure> {
        let mut buffer = [0; 16 * 1024];
        while let Some(fd) = &self.fd {
            match fd::read(fd.as_raw_fd(), &mut buffer) {
                Ok(n) if n > 0 => self.bytes.extend_from_slice(&buffer[..n]),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                _ => self.fd = None,
            }
            if self.bytes.len() > self.limit {
                return Err(Failure::TooMuch);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, limit: usize, timeout: Duration) -> Result<Captured, Failure> {
        let args = vec![c"-c".into(), CString::new(script).unwrap()];
        capture(c"/bin/sh".into(), args, Vec::new(), limit, timeout)
    }

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn both_streams_and_the_end_are_told() {
        let captured = shell("echo out; echo err >&2; exit 3", 100, MINUTE).unwrap();
        assert_eq!(captured.stdout, b"out\n");
        assert_eq!(captured.stderr, b"err\n");
        assert_eq!(captured.status, ExitStatus::Exited(3));
    }

    #[test]
    fn the_limit_is_allowed_and_one_byte_more_is_not() {
        assert_eq!(shell("printf 12345", 5, MINUTE).unwrap().stdout, b"12345");
        assert!(matches!(
            shell("printf 123456", 5, MINUTE),
            Err(Failure::TooMuch)
        ));
    }

    #[test]
    fn a_program_that_does_not_end_is_killed() {
        let slow = shell("exec sleep 1000", 5, Duration::from_millis(50));
        assert!(matches!(slow, Err(Failure::TooSlow)));
    }

    #[test]
    fn a_descendant_that_holds_the_pipes_delays_nothing() {
        let captured = shell("sleep 1000 & echo done", 100, MINUTE).unwrap();
        assert_eq!(captured.stdout, b"done\n");
    }

    #[test]
    fn a_program_that_is_missing_is_named() {
        let missing = capture(c"/no/such".into(), Vec::new(), Vec::new(), 5, MINUTE);
        assert!(matches!(missing, Err(Failure::NotStarted(why)) if why.contains("/no/such")));
    }
}

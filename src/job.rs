//! Short-lived programs of the engine's own: probes of interpreters, and the commands behind tools.
//!
//! They start as scripts do and end as scripts do: in a session of their own, bound to the host's life, their output
//! bounded in memory, and when the program itself has ended nothing that it started goes on.

use crate::capture::Capture;
use crate::sys::child::{Child, ExitStatus};
use crate::sys::confine::Confine;
use crate::sys::leash::Leash;
use crate::sys::poll::{deadline_after, has_passed, poll, PollFd};
use crate::sys::scan::{self, Tag};
use crate::sys::spawn::{self, Command, SpawnError};
use crate::sys::{fd, random};
use std::ffi::{CString, OsStr, OsString};
use std::fs::OpenOptions;
use std::io::{self, Seek as _, Write as _};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What one stream may take of a wake-up before the deadline is looked at.
const READ_BUDGET: usize = 256 * 1024;

/// How long processes that left the group may take to die.
const SWEEP_PATIENCE: Duration = Duration::from_secs(2);

/// How long the pipes are read after the end: somebody who could not be killed may hold them.
const DRAIN: Duration = Duration::from_millis(500);

/// A program to run.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) program: PathBuf,
    /// Without the program's name.
    pub(crate) args: Vec<OsString>,
    pub(crate) env: Vec<(OsString, OsString)>,
    pub(crate) cwd: PathBuf,
    /// What it reads, such as an [`unnamed_file`]; `None`: nothing.
    pub(crate) input: Option<OwnedFd>,
    /// Its standard error goes where its standard output goes, in the order in which it writes.
    pub(crate) merged: bool,
    /// How many bytes are kept of standard output and of standard error.
    pub(crate) keep: (usize, usize),
    /// Until SIGTERM; `None`: no limit.
    pub(crate) timeout: Option<Duration>,
    /// From SIGTERM to SIGKILL.
    pub(crate) grace: Duration,
    /// By which what left its group is found.
    pub(crate) tag: Option<Tag>,
    /// How far it is locked in.
    pub(crate) confine: Confine,
}

impl Job {
    /// `program` in `/`, unconfined, with no arguments, an empty environment, no input and no time limit.
    pub(crate) fn new(program: impl Into<PathBuf>) -> Job {
        Job {
            program: program.into(),
            args: Vec::new(),
            env: Vec::new(),
            cwd: "/".into(),
            input: None,
            merged: false,
            keep: (0, 0),
            timeout: None,
            grace: Duration::ZERO,
            tag: None,
            confine: Confine::none(),
        }
    }
}

/// How a job ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// By itself.
    Exited(ExitStatus),
    /// It was killed at its time limit.
    TimedOut,
    /// It was killed because its [`Stop`] was pulled.
    Stopped,
}

/// What it left behind.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) stdout: Capture,
    pub(crate) stderr: Capture,
    pub(crate) end: End,
}

/// Why a job could not be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NotStarted {
    pub(crate) message: String,
    /// The host or the system lacks something just now; nothing is wrong with the program.
    pub(crate) is_shortage: bool,
}

impl NotStarted {
    fn new(message: String, errno: Option<i32>) -> Self {
        use libc::{EAGAIN, EDQUOT, EMFILE, ENFILE, ENOMEM, ENOSPC};
        let shortages = [EMFILE, ENFILE, EAGAIN, ENOMEM, ENOSPC, EDQUOT];
        NotStarted {
            message,
            is_shortage: errno.is_some_and(|errno| shortages.contains(&errno)),
        }
    }
}

impl From<io::Error> for NotStarted {
    fn from(error: io::Error) -> Self {
        NotStarted::new(error.to_string(), error.raw_os_error())
    }
}

impl From<SpawnError> for NotStarted {
    fn from(error: SpawnError) -> Self {
        NotStarted::new(error.message().to_string(), Some(error.errno()))
    }
}

/// Ends all jobs that were given it, also those that begin later.
#[derive(Debug, Clone)]
pub(crate) struct Stop(Arc<(OwnedFd, OwnedFd)>);

impl Stop {
    pub(crate) fn new() -> io::Result<Stop> {
        Ok(Stop(Arc::new(fd::socketpair()?)))
    }

    /// Makes the other end readable for everybody, for ever.
    pub(crate) fn pull(&self) {
        // It fails only when it was pulled before.
        let _ = fd::shutdown(self.0 .0.as_raw_fd());
    }

    fn fd(&self) -> RawFd {
        self.0 .1.as_raw_fd()
    }
}

/// Who takes a program's standard output as it comes.
pub(crate) type Sink<'a> = &'a mut dyn FnMut(&[u8]);

/// Runs `job` to its end.
pub(crate) fn run(job: Job, stop: Option<&Stop>) -> Result<Finished, NotStarted> {
    run_into(job, stop, None)
}

/// As [`run`], with a sink for standard output, of which nothing is kept then.
pub(crate) fn run_into(
    job: Job,
    stop: Option<&Stop>,
    sink: Option<Sink<'_>>,
) -> Result<Finished, NotStarted> {
    let (stdout, child_stdout) = fd::pipe()?;
    let (stderr, child_stderr) = match job.merged {
        true => (None, fd::dup_high(child_stdout.as_raw_fd())?),
        false => fd::pipe().map(|(read, write)| (Some(read), write))?,
    };
    let mut command = Command::new(
        cstring(job.program.as_os_str())?,
        cstring(job.cwd.as_os_str())?,
        child_stdout,
        child_stderr,
    );
    for arg in &job.args {
        command.argv.push(cstring(arg)?);
    }
    for (name, value) in &job.env {
        let pair = [name.as_bytes(), b"=", value.as_bytes()].concat();
        command.envp.push(cstring(OsStr::from_bytes(&pair))?);
    }
    command.stdin = job.input;
    command.tag = job.tag;
    command.confine = job.confine;
    command.leash = Some(Leash::new()?);
    let streams = [
        Stream::new(Some(stdout), job.keep.0, sink)?,
        Stream::new(stderr, job.keep.1, None)?,
    ];
    let watch = Watch {
        child: spawn::spawn(command)?,
        streams,
        stop_fd: stop.map_or(-1, Stop::fd),
        grace: job.grace,
    };
    Ok(watch.finish(job.timeout.and_then(deadline_after)))
}

struct Watch<'a> {
    child: Child,
    streams: [Stream<'a>; 2],
    stop_fd: RawFd,
    grace: Duration,
}

impl Watch<'_> {
    fn finish(mut self, deadline: Option<Instant>) -> Finished {
        let cut_short = self.wait_for_end(deadline);
        // That nobody is left in the group is no error.
        let _ = self.child.kill();
        scan::sweep(&self.child.target(None), deadline_after(SWEEP_PATIENCE));
        let drained = deadline_after(DRAIN);
        while self.streams.iter().any(Stream::is_open) && !has_passed(drained) {
            self.read_when_ready([-1, -1], drained);
        }
        let status = self.child.reap();
        let [stdout, stderr] = self.streams.map(|stream| stream.capture);
        Finished {
            stdout,
            stderr,
            end: cut_short.unwrap_or(End::Exited(status)),
        }
    }

    /// Until the program has ended or was killed; why, if not by itself.
    fn wait_for_end(&mut self, deadline: Option<Instant>) -> Option<End> {
        let cut_short = loop {
            if self.child.has_exited() {
                return None;
            }
            if has_passed(deadline) {
                break End::TimedOut;
            }
            if self.read_when_ready([self.child.exit_fd(), self.stop_fd], deadline) {
                break End::Stopped;
            }
        };
        let _ = self.child.terminate();
        let kill_at = deadline_after(self.grace);
        while !self.child.has_exited() && !has_passed(kill_at) {
            self.read_when_ready([self.child.exit_fd(), -1], kill_at);
        }
        Some(cut_short)
    }

    /// Waits for anything and reads what there is; true when the stop was pulled. An exit that is known, which would
    /// end the wait at once, and a stop that no longer counts are -1. Whether it is known is for the caller to say: seen
    /// only here, the exit would be neither acted on nor waited for.
    fn read_when_ready(
        &mut self,
        [exit_fd, stop_fd]: [RawFd; 2],
        deadline: Option<Instant>,
    ) -> bool {
        let mut fds = [
            PollFd::readable(self.streams[0].raw_fd()),
            PollFd::readable(self.streams[1].raw_fd()),
            PollFd::readable(exit_fd),
            PollFd::readable(stop_fd),
        ];
        // It fails only for want of kernel memory, and then all is looked at again.
        let _ = poll(&mut fds, deadline);
        for (stream, fd) in self.streams.iter_mut().zip(&fds) {
            if fd.is_ready() {
                stream.read();
            }
        }
        fds[3].is_ready()
    }
}

struct Stream<'a> {
    /// `None` after its end: polling it on would return at once, again and again.
    fd: Option<OwnedFd>,
    capture: Capture,
    sink: Option<Sink<'a>>,
}

impl<'a> Stream<'a> {
    fn new(fd: Option<OwnedFd>, keep: usize, sink: Option<Sink<'a>>) -> io::Result<Self> {
        if let Some(fd) = &fd {
            fd::set_nonblocking(fd.as_raw_fd())?;
        }
        Ok(Stream {
            fd,
            capture: Capture::new(keep),
            sink,
        })
    }

    fn raw_fd(&self) -> RawFd {
        self.fd.as_ref().map_or(-1, AsRawFd::as_raw_fd)
    }

    fn is_open(&self) -> bool {
        self.fd.is_some()
    }

    /// Reads what is there, within bounds.
    fn read(&mut self) {
        let mut buffer = [0; 16 * 1024];
        let mut taken = 0;
        while let (Some(fd), true) = (&self.fd, taken < READ_BUDGET) {
            match fd::read(fd.as_raw_fd(), &mut buffer) {
                Ok(n) if n > 0 => {
                    match &mut self.sink {
                        Some(sink) => sink(&buffer[..n]),
                        None => self.capture.push(&buffer[..n]),
                    }
                    taken += n;
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return,
                _ => self.fd = None,
            }
        }
    }
}

/// A file in `place` with `content`, open at its beginning, that has no name any more. Unlike a pipe it needs nobody to
/// feed it.
pub(crate) fn unnamed_file(place: &Path, content: &[u8]) -> io::Result<OwnedFd> {
    let path = place.join(format!("ptc-input-{}", random::hex128()?));
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&path)?;
    std::fs::remove_file(&path)?;
    file.write_all(content)?;
    file.rewind()?;
    Ok(file.into())
}

fn cstring(text: &OsStr) -> io::Result<CString> {
    CString::new(text.as_bytes()).map_err(|_| {
        let message = format!("{} contains a NUL byte", text.to_string_lossy());
        io::Error::new(io::ErrorKind::InvalidInput, message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Job {
        let mut job = Job::new("/bin/sh");
        job.args = vec!["-c".into(), script.into()];
        job.env = vec![("PATH".into(), "/usr/bin:/bin".into())];
        job.keep = (1000, 1000);
        job
    }

    fn texts(finished: &Finished) -> (String, String) {
        let text = |capture: &Capture| capture.finish(None).text;
        (text(&finished.stdout), text(&finished.stderr))
    }

    #[test]
    fn both_streams_and_the_end_are_told() {
        let finished = run(shell("echo out; echo err >&2; exit 3"), None).unwrap();
        assert_eq!(texts(&finished), ("out\n".into(), "err\n".into()));
        assert_eq!(finished.end, End::Exited(ExitStatus::Exited(3)));
    }

    #[test]
    fn merged_streams_keep_their_order() {
        let mut job = shell("echo 1; echo 2 >&2; echo 3; echo 4 >&2");
        job.merged = true;
        let finished = run(job, None).unwrap();
        assert_eq!(texts(&finished), ("1\n2\n3\n4\n".into(), String::new()));
    }

    #[test]
    fn input_of_any_size_is_read_or_left_alone() {
        for size in [0, 1, 1 << 20] {
            let mut job = shell("wc -c");
            job.input = Some(unnamed_file(&std::env::temp_dir(), &vec![b'x'; size]).unwrap());
            let finished = run(job, None).unwrap();
            assert_eq!(texts(&finished).0.trim(), size.to_string());
            let mut job = shell("exit 0");
            job.input = Some(unnamed_file(&std::env::temp_dir(), &vec![b'x'; size]).unwrap());
            assert_eq!(
                run(job, None).unwrap().end,
                End::Exited(ExitStatus::Exited(0))
            );
        }
        assert_eq!(texts(&run(shell("cat"), None).unwrap()).0, "");
    }

    #[test]
    fn more_than_is_kept_is_read_all_the_same() {
        let finished = run(shell("yes | head -c 1000000"), None).unwrap();
        assert_eq!(finished.stdout.total(), 1_000_000);
    }

    #[test]
    fn a_sink_gets_every_byte_of_standard_output() {
        let mut total = 0;
        let mut sink = |bytes: &[u8]| total += bytes.len();
        let job = shell("yes | head -c 1000000; echo err >&2");
        let finished = run_into(job, None, Some(&mut sink)).unwrap();
        assert_eq!(texts(&finished), (String::new(), "err\n".into()));
        assert_eq!(total, 1_000_000);
    }

    #[test]
    fn a_job_ends_at_its_time_limit_and_keeps_its_output() {
        let mut job = shell("trap 'echo bye; exit' TERM; echo up; while :; do :; done");
        job.timeout = Some(Duration::from_millis(300));
        job.grace = Duration::from_secs(30);
        let finished = run(job, None).unwrap();
        assert_eq!(finished.end, End::TimedOut);
        assert_eq!(texts(&finished).0, "up\nbye\n");
        let mut job = shell("trap '' TERM; while :; do :; done");
        job.timeout = Some(Duration::from_millis(50));
        assert_eq!(run(job, None).unwrap().end, End::TimedOut);
    }

    #[test]
    fn a_stop_ends_jobs_that_run_and_jobs_to_come() {
        let stop = Stop::new().unwrap();
        let puller = stop.clone();
        let mut job = shell("echo up; exec sleep 1000");
        job.timeout = Some(Duration::from_secs(1000));
        let running = std::thread::spawn(move || run(job, Some(&puller)).unwrap().end);
        stop.pull();
        assert_eq!(running.join().unwrap(), End::Stopped);
        assert_eq!(
            run(shell("exec sleep 1000"), Some(&stop)).unwrap().end,
            End::Stopped
        );
    }

    #[test]
    fn what_it_started_ends_with_it() {
        let mut job = shell("sleep 1000 & (setsid sleep 1000 &); echo done");
        job.tag = Some(Tag::new(scan::engine_tag(), 1));
        let finished = run(job, None).unwrap();
        assert_eq!(texts(&finished).0, "done\n");
    }

    #[test]
    fn a_program_that_is_missing_is_named() {
        let missing = run(Job::new("/no/such"), None).unwrap_err();
        assert!(missing.message.contains("/no/such"), "{missing:?}");
        assert!(!missing.is_shortage);
    }
}

//! The supervisor: one thread that watches a script from its start until nothing of it is left.
//!
//! It waits in one poll for output, the leader's exit, a stop from outside and the deadline, and never for a callback.
//! The sequence of an ending (process group first, then whoever left it, then the pipes, then the reaping) is what the
//! promises rest on:
//!
//! - the leader stays unreaped until the last signal is sent, so no signal meets a recycled pid or group;
//! - bytes that were written before the end are read after the kill and before the result;
//! - the clock is read first, then the child is looked at, then limits are enforced: a script that has ended in time is
//!   never called late.

use super::launch::{Failure, Launched, Launcher};
use super::output::{Recorder, Spill};
use super::remains::{Calls, Ending, Remains, Stream as StreamText};
use super::{Inner, StopCause};
use crate::capture::Capture;
use crate::event::{Event, EventKind};
use crate::json::{self, ObjectWriter};
use crate::panic;
use crate::rpc::exchange::Exchange;
use crate::sys::child::ExitStatus;
use crate::sys::poll::{deadline_after, has_passed, poll, PollFd};
use crate::sys::{fd, random, scan};
use crate::text::{RedactingStream, Redactor};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What one stream may take of a wake-up before the deadline and the other stream get their turn.
const READ_BUDGET: usize = 256 * 1024;

/// How long pipes are read after the leader's exit: a survivor that holds them must not delay the result.
const DRAIN: Duration = Duration::from_millis(500);

/// How long a killed process may take to disappear before it is counted as a survivor.
const KILL_PATIENCE: Duration = Duration::from_secs(2);

/// How long a listener rests when descriptors have run out.
const LISTENER_REST: Duration = Duration::from_millis(50);

/// Where the ending of a run stands.
#[derive(Debug, Clone, Copy)]
enum Phase {
    Running,
    /// SIGTERM was sent; SIGKILL follows.
    Terminating {
        kill_at: Option<Instant>,
    },
    /// SIGKILL was sent.
    Killed {
        give_up_at: Option<Instant>,
    },
}

/// Launches the script and stays with it to the end.
pub(super) fn execute(run: &Arc<Inner>, launcher: &Launcher) -> Remains {
    let deadline = deadline_after(run.plan.options.timeout.duration);
    if run.stop_cause().is_some() {
        let failure = Failure {
            message: "cancelled before the script was started".into(),
            setting: launcher.setting(run),
        };
        return not_started(run, failure);
    }
    panic::rehearse("launch", &run.plan.code);
    match launcher.launch(run) {
        Ok(launched) => {
            let _closing = Closing(Arc::clone(&launched.exchange));
            Supervisor::new(run, launched, deadline).supervise()
        }
        Err(failure) => not_started(run, *failure),
    }
}

/// Ends the conversation with the script also where a panic leaves by the back door.
struct Closing(Arc<Exchange>);

impl Drop for Closing {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// What is left of a run in which [`execute`] panicked. The child, if there was one, was killed on the way out.
pub(super) fn panicked(run: &Inner, launcher: &Launcher, panic: &str) -> Remains {
    Remains {
        ending: Ending::Failed {
            error: panic::complaint(panic),
        },
        // Nobody knows how far it came, and nobody has looked for what it left.
        started: true,
        survivors: None,
        ..not_started(
            run,
            Failure {
                message: String::new(),
                setting: launcher.setting(run),
            },
        )
    }
}

fn not_started(run: &Inner, failure: Failure) -> Remains {
    let ending = match run.stop_cause() {
        Some(StopCause::Cancelled(reason)) => Ending::Cancelled { reason },
        _ => Ending::Failed {
            error: failure.message,
        },
    };
    Remains {
        ending,
        exit: None,
        started: false,
        report: None,
        raised: false,
        duration: run.began.elapsed(),
        stdout: StreamText::default(),
        stderr: StreamText::default(),
        stdout_path: None,
        survivors: Some(0),
        calls: Calls::default(),
        notes: Vec::new(),
        setting: failure.setting,
    }
}

struct Supervisor<'a> {
    run: &'a Arc<Inner>,
    launched: Launched,
    stdout: Stream,
    stderr: Stream,
    phase: Phase,
    deadline: Option<Instant>,
}

impl<'a> Supervisor<'a> {
    fn new(run: &'a Arc<Inner>, launched: Launched, deadline: Option<Instant>) -> Self {
        let config = &run.plan.config;
        let spill = config.spill_dir.as_ref().map(|dir| {
            // Without randomness the number alone must do: a file that exists is never opened.
            let name = format!(
                "ptc-stdout-{}-{:016x}.txt",
                run.id,
                random::u64().unwrap_or_default()
            );
            Spill::new(dir.clone(), name, config.max_spill_bytes)
        });
        Supervisor {
            stdout: Stream::new(EventKind::Stdout, config.max_stdout_bytes, spill),
            stderr: Stream::new(EventKind::Stderr, config.max_stderr_bytes, None),
            run,
            launched,
            phase: Phase::Running,
            deadline,
        }
        .with_pipes()
    }

    fn with_pipes(mut self) -> Self {
        self.stdout.pipe = self.launched.stdout.take();
        self.stderr.pipe = self.launched.stderr.take();
        self
    }

    fn supervise(mut self) -> Remains {
        self.announce();
        // Not before: nobody should hear of a call in a run that has not started yet.
        self.exchange().wake_listener();
        panic::rehearse("supervise", &self.run.plan.code);
        while !self.step() {}
        self.settle()
    }

    fn announce(&self) {
        let setting = &self.launched.setting;
        let mut data = ObjectWriter::default();
        data.raw("pid", self.launched.child.pid())
            .string("mode", setting.mode);
        for (key, path) in [("python", &setting.python), ("cwd", &setting.cwd)] {
            if let Some(path) = path {
                data.string(key, &path.to_string_lossy());
            }
        }
        self.run.tell(Event::new(EventKind::Started, data.finish()));
    }

    /// One turn of the loop; true when the leader is gone or given up.
    fn step(&mut self) -> bool {
        let now = Instant::now();
        if self.launched.child.has_exited() {
            return true;
        }
        if self.enforce(now) {
            return true;
        }
        self.wait();
        false
    }

    /// Moves from phase to phase when it is time; true when even the kill has not worked.
    fn enforce(&mut self, now: Instant) -> bool {
        let passed = |at: Option<Instant>| at.is_some_and(|at| now >= at);
        match self.phase {
            Phase::Running => {
                if passed(self.deadline) {
                    self.run.stop(StopCause::Timeout);
                }
                if self.run.stop_cause().is_some() {
                    // The signal first: a script whose calls break off before it would report them as errors.
                    let _ = self.launched.child.terminate();
                    self.exchange().close();
                    self.phase = Phase::Terminating {
                        kill_at: now.checked_add(self.run.plan.config.kill_grace.duration),
                    };
                }
                false
            }
            Phase::Terminating { kill_at } => {
                if passed(kill_at) {
                    let _ = self.launched.child.kill();
                    self.phase = Phase::Killed {
                        give_up_at: now.checked_add(KILL_PATIENCE),
                    };
                }
                false
            }
            Phase::Killed { give_up_at } => passed(give_up_at),
        }
    }

    fn next_deadline(&self) -> Option<Instant> {
        let at = match self.phase {
            Phase::Running => self.deadline,
            Phase::Terminating { kill_at } => kill_at,
            Phase::Killed { give_up_at } => give_up_at,
        };
        if !self.exchange().listener_rests() {
            return at;
        }
        let rest = deadline_after(LISTENER_REST);
        at.into_iter().chain(rest).min()
    }

    fn wait(&mut self) {
        let deadline = self.next_deadline();
        let output = |stream: &Stream| match self.run.pulled.is_full() {
            // The script waits; whoever makes room wakes this thread.
            true => -1,
            false => stream.raw_fd(),
        };
        let mut fds = [
            PollFd::readable(output(&self.stdout)),
            PollFd::readable(output(&self.stderr)),
            PollFd::readable(self.launched.child.exit_fd()),
            PollFd::readable(self.run.wake.fd()),
        ];
        if poll(&mut fds, deadline).is_err() {
            // Only a lack of kernel memory does this; looking at the child again is all there is to do.
            std::thread::yield_now();
        }
        self.run.wake.clear();
        if fds[0].is_ready() {
            self.stdout.read_some(self.run, &self.launched.redactor);
        }
        if fds[1].is_ready() {
            self.stderr.read_some(self.run, &self.launched.redactor);
        }
        self.exchange().wake_listener();
    }

    /// The end, in order: no calls any more, the group, the escapees, the pipes, the reaping, the directory.
    fn settle(mut self) -> Remains {
        self.exchange().close();
        let _ = self.launched.child.kill();
        let marker = self.launched.marker.as_bytes();
        let target = self.launched.child.target(Some(marker));
        let sweep = scan::sweep(&target, deadline_after(KILL_PATIENCE));
        let still_at_work = self.run.wait_for_built_ins(KILL_PATIENCE);
        self.drain();
        let Launched {
            child,
            stage,
            exchange,
            setting,
            mut notes,
            redactor,
            ..
        } = self.launched;
        let status = child.reap();
        let (stdout, stdout_path) = self.stdout.finish(self.run, &redactor, &mut notes);
        let (stderr, _) = self.stderr.finish(self.run, &redactor, &mut notes);
        let raised = stage.has_raised();
        let report = stage.report().filter(|report| says_not_started(report));
        if let Err(e) = stage.remove() {
            notes.push(format!(
                "The staging directory was not removed completely: {e}."
            ));
        }
        if still_at_work > 0 {
            notes.push(format!(
                "{still_at_work} calls of built-in tools had not let go when the run ended."
            ));
        }
        let limit = &self.run.plan.options.timeout.text;
        Remains {
            exit: Some(status),
            ending: ending(self.run.stop_cause(), status, limit),
            started: report.is_none(),
            report,
            raised,
            duration: self.run.began.elapsed(),
            stdout,
            stderr,
            stdout_path,
            survivors: sweep.survivors,
            calls: calls(&exchange),
            notes,
            setting,
        }
    }

    fn drain(&mut self) {
        let deadline = deadline_after(DRAIN);
        while self.stdout.is_open() || self.stderr.is_open() {
            let mut fds = [
                PollFd::readable(self.stdout.raw_fd()),
                PollFd::readable(self.stderr.raw_fd()),
            ];
            let ready = poll(&mut fds, deadline).unwrap_or(0);
            if ready == 0 {
                return;
            }
            self.stdout.read_some(self.run, &self.launched.redactor);
            self.stderr.read_some(self.run, &self.launched.redactor);
            if has_passed(deadline) {
                return;
            }
        }
    }

    fn exchange(&self) -> &Arc<Exchange> {
        &self.launched.exchange
    }
}

/// One of the script's output pipes with all that happens to its bytes on the way.
struct Stream {
    kind: EventKind,
    /// `None` after its end or an error: polling it on would return at once, again and again.
    pipe: Option<OwnedFd>,
    redacting: RedactingStream,
    recorder: Recorder,
    /// Bytes as the script wrote them.
    bytes: u64,
    buffer: Vec<u8>,
}

impl Stream {
    fn new(kind: EventKind, limit: usize, spill: Option<Spill>) -> Self {
        Stream {
            kind,
            pipe: None,
            redacting: RedactingStream::default(),
            recorder: Recorder {
                capture: Capture::new(limit),
                spill,
            },
            bytes: 0,
            buffer: vec![0; 64 * 1024],
        }
    }

    fn is_open(&self) -> bool {
        self.pipe.is_some()
    }

    fn raw_fd(&self) -> RawFd {
        self.pipe.as_ref().map_or(-1, AsRawFd::as_raw_fd)
    }

    /// Reads what is there, up to the budget.
    fn read_some(&mut self, run: &Inner, redactor: &Redactor) {
        let mut budget = READ_BUDGET;
        while let (Some(pipe), true) = (&self.pipe, budget > 0) {
            match fd::read(pipe.as_raw_fd(), &mut self.buffer) {
                Ok(0) => self.pipe = None,
                Ok(n) => {
                    self.bytes += n as u64;
                    budget = budget.saturating_sub(n);
                    let clean = self.redacting.push(redactor, &self.buffer[..n]);
                    record(&mut self.recorder, run, self.kind, &clean);
                    // A short read has emptied the pipe.
                    if n < self.buffer.len() {
                        return;
                    }
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return,
                Err(_) => self.pipe = None,
            }
        }
    }

    fn finish(
        mut self,
        run: &Inner,
        redactor: &Redactor,
        notes: &mut Vec<String>,
    ) -> (StreamText, Option<PathBuf>) {
        let rest = self.redacting.finish(redactor);
        if !rest.is_empty() {
            record(&mut self.recorder, run, self.kind, &rest);
        }
        let path = match self.recorder.spill.map(Spill::finish) {
            None | Some(Ok(None)) => None,
            Some(Ok(path)) => path,
            Some(Err(problem)) => {
                notes.push(format!("Note: {problem}."));
                None
            }
        };
        let captured = self.recorder.capture.finish(path.as_deref());
        let text = StreamText {
            // Removing escape sequences can bring a secret together that was written in pieces.
            text: redactor.redact(&captured.text),
            bytes: self.bytes,
            truncated: captured.truncated,
        };
        (text, path)
    }
}

fn record(recorder: &mut Recorder, run: &Inner, kind: EventKind, bytes: &[u8]) {
    recorder.push(bytes);
    if run.is_listened_to() && !bytes.is_empty() {
        run.tell(Event::new(kind, bytes));
    }
}

fn ending(cause: Option<StopCause>, status: ExitStatus, limit: &str) -> Ending {
    match cause {
        None => Ending::Exited(status),
        Some(StopCause::Timeout) => Ending::TimedOut {
            limit: limit.into(),
        },
        Some(StopCause::Cancelled(reason)) => Ending::Cancelled { reason },
        Some(StopCause::Overrun) => Ending::Overrun,
    }
}

fn calls(exchange: &Exchange) -> Calls {
    exchange.with_ledger(|ledger| Calls {
        counts: ledger.counts(),
        omitted: ledger.omitted(),
        records: ledger.records().cloned().collect(),
    })
}

fn says_not_started(report: &str) -> bool {
    json::parse(report)
        .is_ok_and(|report| report.get("started").and_then(json::Value::as_bool) == Some(false))
}

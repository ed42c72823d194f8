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
use super::remains::{Calls, Ending, Remains, Stream as StreamText};
use super::streams::Streams;
use super::{Inner, StopCause};
use crate::event::{Event, EventKind};
use crate::json::{self, ObjectWriter};
use crate::panic;
use crate::rpc::exchange::Exchange;
use crate::sys::child::ExitStatus;
use crate::sys::poll::{deadline_after, has_passed, poll, PollFd};
use crate::sys::scan;
use std::sync::Arc;
use std::time::{Duration, Instant};

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
            let _closing = Closing(Arc::clone(run), Arc::clone(&launched.exchange));
            Supervisor::new(run, launched, deadline).supervise()
        }
        Err(failure) => not_started(run, *failure),
    }
}

/// Ends the conversation with the script, and closes its pipes, also where a panic leaves by the back door.
struct Closing(Arc<Inner>, Arc<Exchange>);

impl Drop for Closing {
    fn drop(&mut self) {
        self.1.close();
        if let Some(streams) = self.0.streams.get() {
            streams.discard();
        }
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
    streams: &'a Streams,
    phase: Phase,
    deadline: Option<Instant>,
}

impl<'a> Supervisor<'a> {
    fn new(run: &'a Arc<Inner>, mut launched: Launched, deadline: Option<Instant>) -> Self {
        let pipes = (launched.stdout.take(), launched.stderr.take());
        let redactor = Arc::clone(&launched.redactor);
        Supervisor {
            run,
            launched,
            streams: run
                .streams
                .get_or_init(|| Streams::new(run, redactor, pipes.0, pipes.1)),
            phase: Phase::Running,
            deadline,
        }
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
        let [stdout, stderr] = match self.run.pulled.is_full() {
            // The script waits; whoever makes room wakes this thread.
            true => [PollFd::readable(-1); 2],
            false => self.streams.poll_fds(),
        };
        let mut fds = [
            stdout,
            stderr,
            PollFd::readable(self.launched.child.exit_fd()),
            PollFd::readable(self.run.wake.fd()),
        ];
        if poll(&mut fds, deadline).is_err() {
            // Only a lack of kernel memory does this; looking at the child again is all there is to do.
            std::thread::yield_now();
        }
        self.run.wake.clear();
        self.streams.read(self.run, &fds[..2]);
        self.exchange().wake_listener();
    }

    /// The end, in order: no calls any more, the group, the escapees, the pipes, the reaping, the directory.
    fn settle(self) -> Remains {
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
            ..
        } = self.launched;
        let status = match child.reap() {
            // The host has taken it away.
            ExitStatus::Unknown => stage.told_status().unwrap_or(ExitStatus::Unknown),
            known => known,
        };
        let written = self.streams.finish(self.run, &mut notes);
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
            stdout: written.stdout,
            stderr: written.stderr,
            stdout_path: written.stdout_path,
            survivors: sweep.survivors,
            calls: calls(&exchange),
            notes,
            setting,
        }
    }

    fn drain(&self) {
        let deadline = deadline_after(DRAIN);
        while self.streams.is_open() {
            let mut fds = self.streams.poll_fds();
            let ready = poll(&mut fds, deadline).unwrap_or(0);
            if ready == 0 {
                return;
            }
            self.streams.read(self.run, &fds);
            if has_passed(deadline) {
                return;
            }
        }
    }

    fn exchange(&self) -> &Arc<Exchange> {
        &self.launched.exchange
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

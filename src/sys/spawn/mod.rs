//! Starting a program without disturbing the process that this library lives in.
//!
//! The host may have a thousand threads, gigabytes of memory, strange signal settings and descriptors of its own. The
//! child gets none of that, and the host notices none of this: no handler runs, no lock is held, no descriptor is ever
//! inheritable, the signal mask is restored at once, and memory is not copied (clone with shared memory where there
//! is such a thing, else fork). What the child must do before it becomes the program it does in raw system calls on
//! memory prepared here; what fails there comes back as a step and an error number through a pipe that exec closes.
//!
//! The calling thread waits until the program is executed, which on a hung file system can take for ever: hold no lock.

mod command;
mod error;
mod explain;
mod launch;
mod mask;
mod region;
mod start;
#[cfg(test)]
mod tests;

#[cfg(all(target_os = "linux", not(ptc_portable)))]
#[path = "ops_linux.rs"]
mod ops;
#[cfg(not(all(target_os = "linux", not(ptc_portable))))]
#[path = "ops_posix.rs"]
mod ops;

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

pub(crate) use command::{Command, Limit};
pub(crate) use error::{SpawnError, Step};
#[cfg(test)]
pub(crate) use launch::{Fault, FaultKind};
#[cfg(all(target_os = "linux", not(ptc_portable)))]
pub(in crate::sys) use ops::check as check_raw;

use crate::sys::child::{Child, Origin};
use crate::sys::fd;
use crate::sys::poll::{poll, wait_readable, PollFd};
use command::Prepared;
use launch::Shared;
use region::Region;

/// A system error number.
pub(crate) type Errno = i32;

/// How long a forked child that has reached exec may keep its report pipe open before somebody else is taken to hold
/// it: a thread of the host that forked without exec in the same moment.
const FOREIGN_COPY: Duration = Duration::from_secs(2);

/// Starts `command`. On success the program has been executed, in its own session and group.
pub(crate) fn spawn(command: Command) -> Result<Child, SpawnError> {
    let mut command = command.with_high_descriptors()?;
    let region = Region::new().map_err(|e| SpawnError::os(Step::Memory, &e))?;
    let (report, report_write) =
        report_pipe().map_err(|e| SpawnError::os(Step::Descriptors, &e))?;

    let prepared = Prepared::new(&command, &report_write, &region)?;
    let plan = prepared.plan();
    let started = start::start(&plan, &region).map_err(|e| SpawnError::os(Step::Start, &e))?;
    let executed_by_now = plan.memory_is_shared.load(Ordering::Relaxed);
    drop(prepared);
    drop(report_write);

    let mut child =
        Child::watch(started.pid, started.pidfd).map_err(|e| SpawnError::os(Step::Watch, &e))?;
    match outcome(&report, child.exit_fd(), region.shared(), executed_by_now) {
        Outcome::Executed => {}
        Outcome::Failed {
            step,
            errno,
            detail,
        } => return Err(SpawnError::reported(&command, step, errno, detail)),
        Outcome::Killed(step) => return Err(SpawnError::killed(&command, step)),
    }
    let tagged = region.shared().tagged.load(Ordering::Relaxed);
    child.origin = Origin {
        tag: command.tag.filter(|_| tagged),
        confinement: command.confine.report(&region.shared().confine),
        _leash: command.leash.take(),
    };
    Ok(child)
}

fn report_pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (read, write) = fd::high_pipe()?;
    fd::set_nonblocking(read.as_raw_fd())?;
    Ok((read, write))
}

/// How a launch ended.
enum Outcome {
    Executed,
    Failed {
        step: Step,
        errno: Errno,
        detail: i32,
    },
    /// Without a word, at this step.
    Killed(Step),
}

/// Waits for the launch to end. With `executed_by_now` it has ended, so that not even the end of the pipe is needed.
fn outcome(report: &OwnedFd, exit: RawFd, shared: &Shared, executed_by_now: bool) -> Outcome {
    let mut patience: Option<Instant> = None;
    loop {
        if let Some(outcome) = read_report(report, shared) {
            return outcome;
        }
        let give_up = executed_by_now || patience.is_some_and(|end| Instant::now() >= end);
        if give_up || has_event(exit) {
            // The child can say nothing more; what it said before is in the pipe.
            return read_report(report, shared).unwrap_or_else(|| without_report(shared));
        }
        if patience.is_none() && reached(shared) == Step::Exec {
            patience = Some(Instant::now() + FOREIGN_COPY);
        }
        let until = patience.unwrap_or_else(|| Instant::now() + FOREIGN_COPY);
        // An error would be ENOMEM or a closed descriptor: the loop then looks at both sources without waiting.
        let mut fds = [PollFd::readable(report.as_raw_fd()), PollFd::readable(exit)];
        let _ = poll(&mut fds, Some(until));
    }
}

fn has_event(fd: RawFd) -> bool {
    wait_readable(fd, Some(Instant::now()))
}

/// What the pipe says; `None` while it says nothing.
fn read_report(report: &OwnedFd, shared: &Shared) -> Option<Outcome> {
    let mut words = [0i32; 3];
    let size = std::mem::size_of_val(&words);
    // SAFETY: `words` has room for `size` bytes, and any bytes are valid integers.
    let count = unsafe { libc::read(report.as_raw_fd(), words.as_mut_ptr().cast(), size) };
    match count {
        0 => Some(without_report(shared)),
        n if n == size as isize => {
            let [step, errno, detail] = words;
            let step = Step::from_report(step).unwrap_or(Step::Exec);
            Some(Outcome::Failed {
                step,
                errno,
                detail,
            })
        }
        _ => None,
    }
}

/// A launch that reported nothing has ended in exec if it got that far.
fn without_report(shared: &Shared) -> Outcome {
    match reached(shared) {
        Step::Exec => Outcome::Executed,
        step => Outcome::Killed(step),
    }
}

fn reached(shared: &Shared) -> Step {
    Step::from_report(shared.progress.load(Ordering::Relaxed)).unwrap_or(Step::Session)
}

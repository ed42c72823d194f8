//! A started process: when it ends, how it ended, and signals to its group.
//!
//! Two rules run through this. The process is left unreaped until the last signal has been sent, because its zombie
//! pins the numbers of process and group. And nothing here ever waits for any child but this one: the host has
//! children of its own. The host in turn may ignore SIGCHLD or reap everything it can; the end is then seen all the
//! same, and its status taken from where it still can be had, or [`ExitStatus::Unknown`].

#[cfg(all(target_os = "linux", not(ptc_portable)))]
pub(in crate::sys) mod pidfd;
#[cfg(test)]
mod tests;
mod wait;
mod waiter;

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::sys::confine::Confinement;
use crate::sys::fd::check;
use crate::sys::leash::Leash;
use crate::sys::poll::wait_readable;
use crate::sys::scan::{Tag, Target};
use waiter::Waiter;

/// How long an end that SIGKILL has made certain may take before it is taken to hang in the kernel.
const KILLED_ENDS_WITHIN: Duration = Duration::from_secs(2);

/// Children that did not end in that time. They are tried again whenever another child is started or ended, so that
/// they do not stay zombies of the host.
static UNREAPED: Mutex<Vec<Watched>> = Mutex::new(Vec::new());

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExitStatus {
    /// With this exit code.
    Exited(i32),
    /// By this signal.
    Signaled(i32),
    /// It ended, but somebody else took the status.
    Unknown,
}

/// A process in a session and group of its own, watched until it is reaped. Dropping it kills the group and reaps it.
#[derive(Debug)]
pub(crate) struct Child {
    watched: Option<Watched>,
    pub(in crate::sys) origin: Origin,
}

/// What was settled when the child was made.
#[derive(Debug, Default)]
pub(in crate::sys) struct Origin {
    pub(in crate::sys) tag: Option<Tag>,
    pub(in crate::sys) confinement: Confinement,
    /// Held for as long as the child, then closed.
    pub(in crate::sys) _leash: Option<Leash>,
}

/// A pid with the way to learn of its end.
#[derive(Debug)]
struct Watched {
    pid: libc::pid_t,
    watch: Watch,
}

#[derive(Debug)]
enum Watch {
    #[cfg(all(target_os = "linux", not(ptc_portable)))]
    Pidfd(OwnedFd),
    Waiter(Waiter),
}

/// Whether the system keeps the exit status of a child that the host, and not this crate, has reaped. Not known before the
/// first child has ended.
#[cfg(all(target_os = "linux", not(ptc_portable)))]
pub(crate) fn keeps_statuses() -> bool {
    pidfd::keeps_statuses()
}

/// Whether the system keeps the exit status of a child that the host, and not this crate, has reaped: not known to POSIX.
#[cfg(not(all(target_os = "linux", not(ptc_portable))))]
pub(crate) fn keeps_statuses() -> bool {
    false
}

impl Child {
    /// Takes charge of a process that was just made by this one. On failure it is killed and reaped.
    pub(in crate::sys) fn watch(pid: libc::pid_t, pidfd: Option<OwnedFd>) -> io::Result<Child> {
        reap_stragglers();
        let watch = new_watch(pid, pidfd).inspect_err(|_| wait::kill_and_wait(pid))?;
        Ok(Child {
            watched: Some(Watched { pid, watch }),
            origin: Origin::default(),
        })
    }

    fn watched(&self) -> &Watched {
        // `watched` is taken only by `reap` and `drop`, after which nobody has the child any more.
        self.watched.as_ref().expect("a child in use is watched")
    }

    /// Its process id, which is also the id of its group and session.
    pub(crate) fn pid(&self) -> i32 {
        self.watched().pid
    }

    /// Readable for poll(2) (`POLLIN`) once the process has ended. Belongs to this child; bytes in it mean nothing.
    pub(crate) fn exit_fd(&self) -> RawFd {
        self.watched().exit_fd()
    }

    /// Whether the process has ended. Descendants may live on.
    pub(crate) fn has_exited(&self) -> bool {
        self.watched().has_exited()
    }

    /// Whether its zombie or itself still holds the pid, so that the number cannot be another's.
    pub(crate) fn is_unreaped(&self) -> bool {
        self.watched().is_unreaped()
    }

    /// Sends `signal` to every process of the group. That none is left is no error.
    pub(crate) fn signal_group(&self, signal: i32) -> io::Result<()> {
        self.watched().signal_group(signal)
    }

    /// Asks the group to end: SIGTERM, then SIGCONT so that stopped processes get to it.
    pub(crate) fn terminate(&self) -> io::Result<()> {
        let sent = self.signal_group(libc::SIGTERM);
        self.signal_group(libc::SIGCONT).and(sent)
    }

    /// Ends the group: SIGKILL, and SIGCONT since some kernels leave stopped processes lying.
    pub(crate) fn kill(&self) -> io::Result<()> {
        let sent = self.signal_group(libc::SIGKILL);
        let _ = self.signal_group(libc::SIGCONT);
        sent
    }

    /// What confines it, as it reported before it became the program.
    pub(crate) fn confinement(&self) -> &Confinement {
        &self.origin.confinement
    }

    /// What [`crate::sys::scan::sweep`] is to look for. `marker` is a whole `NAME=value` of the child's environment.
    pub(crate) fn target<'a>(&self, marker: Option<&'a [u8]>) -> Target<'a> {
        Target {
            leader: self.pid(),
            tag: self.origin.tag,
            marker,
            leader_is_unreaped: self.is_unreaped(),
        }
    }

    /// Gives the process back to the system and tells how it ended: the last thing to do with it. One that still runs
    /// is killed with its group.
    pub(crate) fn reap(mut self) -> ExitStatus {
        self.finish()
    }

    fn finish(&mut self) -> ExitStatus {
        let Some(watched) = self.watched.take() else {
            return ExitStatus::Unknown;
        };
        if !watched.has_exited() {
            let _ = watched.signal_group(libc::SIGKILL);
            let _ = watched.signal_group(libc::SIGCONT);
            if !watched.exits_before(Instant::now() + KILLED_ENDS_WITHIN) {
                stragglers().push(watched);
                return ExitStatus::Unknown;
            }
        }
        watched.reap()
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.finish();
    }
}

fn stragglers() -> std::sync::MutexGuard<'static, Vec<Watched>> {
    UNREAPED
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}

fn reap_stragglers() {
    let mut waiting = stragglers();
    if waiting.is_empty() {
        return;
    }
    let (ended, hanging) = std::mem::take(&mut *waiting)
        .into_iter()
        .partition(Watched::has_exited);
    *waiting = hanging;
    drop(waiting);
    let ended: Vec<Watched> = ended;
    for watched in ended {
        watched.reap();
    }
}

#[cfg(all(target_os = "linux", not(ptc_portable)))]
fn new_watch(pid: libc::pid_t, pidfd: Option<OwnedFd>) -> io::Result<Watch> {
    if pidfd::usable() {
        if let Some(fd) = pidfd.or_else(|| pidfd::open(pid).ok()) {
            return Ok(Watch::Pidfd(fd));
        }
    }
    Waiter::start(pid).map(Watch::Waiter)
}

#[cfg(not(all(target_os = "linux", not(ptc_portable))))]
fn new_watch(pid: libc::pid_t, _pidfd: Option<OwnedFd>) -> io::Result<Watch> {
    Waiter::start(pid).map(Watch::Waiter)
}

impl Watched {
    fn exit_fd(&self) -> RawFd {
        match &self.watch {
            #[cfg(all(target_os = "linux", not(ptc_portable)))]
            Watch::Pidfd(fd) => fd.as_raw_fd(),
            Watch::Waiter(waiter) => waiter.event().as_raw_fd(),
        }
    }

    fn has_exited(&self) -> bool {
        self.exits_before(Instant::now())
    }

    fn exits_before(&self, deadline: Instant) -> bool {
        wait_readable(self.exit_fd(), Some(deadline))
    }

    fn is_unreaped(&self) -> bool {
        match &self.watch {
            #[cfg(all(target_os = "linux", not(ptc_portable)))]
            Watch::Pidfd(fd) => pidfd::is_unreaped(fd),
            Watch::Waiter(waiter) => waiter.is_unreaped() && wait::is_our_child(self.pid),
        }
    }

    /// The only function that signals a group. A wrong number here would hit strangers or the host itself.
    fn signal_group(&self, signal: i32) -> io::Result<()> {
        // SAFETY: no arguments.
        let own_group = unsafe { libc::getpgrp() };
        if self.pid <= 1 || self.pid == own_group {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        }
        #[cfg(all(target_os = "linux", not(ptc_portable)))]
        if let Watch::Pidfd(fd) = &self.watch {
            match pidfd::signal_group(fd, signal) {
                Err(error) if pidfd::is_unsupported(&error) => {}
                sent => return nobody_left_is_fine(sent),
            }
        }
        if !self.is_unreaped() {
            return Ok(());
        }
        // SAFETY: integers only; the unreaped leader keeps the number from being given to another group.
        let sent = check(unsafe { libc::kill(-self.pid, signal) }).map(drop);
        match sent {
            // Some systems say EPERM for a group of nothing but zombies.
            Err(error)
                if error.raw_os_error() == Some(libc::EPERM)
                    && cfg!(not(target_os = "linux"))
                    && self.has_exited() =>
            {
                Ok(())
            }
            sent => nobody_left_is_fine(sent),
        }
    }

    fn reap(self) -> ExitStatus {
        match self.watch {
            #[cfg(all(target_os = "linux", not(ptc_portable)))]
            Watch::Pidfd(fd) => {
                let status = pidfd::status(&fd).unwrap_or(ExitStatus::Unknown);
                pidfd::reap(&fd);
                status
            }
            Watch::Waiter(waiter) => waiter.finish(self.pid),
        }
    }
}

fn nobody_left_is_fine(sent: io::Result<()>) -> io::Result<()> {
    match sent {
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Ok(()),
        sent => sent,
    }
}

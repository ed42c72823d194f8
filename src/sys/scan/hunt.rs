//! Rounds of looking and killing.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

use super::procfs::{self, Process};
use super::{Sweep, Tag, Target};
use crate::sys::child::pidfd;
use crate::sys::fd::check;
use crate::sys::feature::{denied, Feature};
use crate::sys::host;
use crate::sys::poll::{has_passed, poll, PollFd};

/// Without process descriptors there is no event for the end of a stranger: so often it is looked for.
const LOOK_AGAIN: Duration = Duration::from_millis(2);

/// As many descriptors as the killed of one round may take; the others of a larger round are killed in the next.
const AT_ONCE: usize = 64;

pub(super) fn sweep(target: &Target<'_>, deadline: Option<Instant>) -> Sweep {
    if nothing_was_made_since(target) {
        return Sweep {
            killed: 0,
            survivors: Some(0),
        };
    }
    let born = match target.leader_is_unreaped {
        true => procfs::process(target.leader).map_or(0, |leader| leader.start),
        false => 0,
    };
    hunt(deadline, || members(target, born))
}

pub(super) fn sweep_orphans(deadline: Option<Instant>) -> Sweep {
    hunt(deadline, orphans)
}

/// Whether the leader is the youngest process or thread of all, so that it has no descendants.
///
/// Numbers are given out in a circle that leaves out those in use, and the leader's is in use as long as it is not
/// reaped. So the last number given out can be the leader's only if none was given out after it. Processes in
/// namespaces below ours take a number of ours as well.
fn nothing_was_made_since(target: &Target<'_>) -> bool {
    target.leader_is_unreaped && procfs::last_pid() == Some(target.leader)
}

/// Kills what `find` finds until it finds nothing.
fn hunt(deadline: Option<Instant>, find: impl Fn() -> io::Result<Vec<Process>>) -> Sweep {
    let mut sweep = Sweep {
        killed: 0,
        survivors: Some(0),
    };
    let mut clean_looks = 0;
    loop {
        let last = procfs::last_pid();
        let Ok(found) = find() else {
            return Sweep {
                survivors: None,
                ..sweep
            };
        };
        if found.is_empty() {
            clean_looks += 1;
            // A process that was made while we looked may have been missed; a second look then has to find it.
            let was_quiet = last.is_some() && last == procfs::last_pid();
            if was_quiet || clean_looks == 2 {
                return sweep;
            }
            continue;
        }
        clean_looks = 0;
        let sent = kill_all(&found, deadline);
        sweep.killed += sent;
        if sent == 0 || has_passed(deadline) {
            sweep.survivors = Some(u32::try_from(found.len()).unwrap_or(u32::MAX));
            return sweep;
        }
    }
}

/// The living processes of a run outside of its leader, which is no younger than `born`.
fn members(target: &Target<'_>, born: u64) -> io::Result<Vec<Process>> {
    let own = host::pid();
    let candidates = procfs::pids()?
        .into_iter()
        .filter(|pid| *pid > 1 && *pid != own && *pid != target.leader);
    let young = candidates
        .filter_map(procfs::process)
        .filter(|process| process.start >= born && process.is_alive());
    let (mut members, mut others): (Vec<_>, Vec<_>) =
        young.partition(|process| is_member(target, process));
    loop {
        let (children, strangers): (Vec<_>, Vec<_>) = others
            .into_iter()
            .partition(|process| members.iter().any(|member| member.pid == process.parent));
        if children.is_empty() {
            return Ok(members);
        }
        members.extend(children);
        others = strangers;
    }
}

fn is_member(target: &Target<'_>, process: &Process) -> bool {
    let tagged = |tag: Tag| procfs::rttime_limit(process.pid) == Some(tag.value());
    target.tag.is_some_and(tagged)
        || (target.leader_is_unreaped && process.session == target.leader)
        || target
            .marker
            .is_some_and(|marker| procfs::has_marker(process.pid, marker))
}

/// The living processes that carry the tag of a host that is gone.
fn orphans() -> io::Result<Vec<Process>> {
    let own = host::pid();
    let candidates = procfs::pids()?
        .into_iter()
        .filter(|pid| *pid > 1 && *pid != own);
    let tagged = candidates.filter_map(|pid| {
        let host = Tag::host_of(procfs::rttime_limit(pid)?)?;
        let process = procfs::process(pid)?;
        // A number that was given to somebody else meanwhile belongs to a process that is younger than the orphan.
        let host_lives = procfs::process(host)
            .is_some_and(|host| host.is_alive() && host.start <= process.start);
        let is_orphan = !host_lives && process.is_alive() && procfs::shares_our_pids(pid);
        is_orphan.then_some(process)
    });
    Ok(tagged.collect())
}

/// Sends SIGKILL to each and waits until they are gone; returns how many could be sent one.
fn kill_all(found: &[Process], deadline: Option<Instant>) -> u32 {
    let mut sent = 0;
    let mut dying = Vec::new();
    for process in found.iter().take(AT_ONCE) {
        let killed = match pidfd::open(process.pid) {
            Ok(fd) => kill_by_descriptor(process, fd, &mut dying),
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => true,
            Err(_) => kill_by_number(process),
        };
        sent += u32::from(killed);
    }
    if sent > 0 {
        wait_for(&dying, sent as usize, deadline);
    }
    sent
}

/// False when it is not allowed. One that is gone, or was not the one that was found, counts as done.
fn kill_by_descriptor(process: &Process, fd: OwnedFd, dying: &mut Vec<OwnedFd>) -> bool {
    // The number may have become another's before the descriptor was opened; from now on it cannot.
    if !is_still_there(process) {
        return true;
    }
    // A fork bomb is ended by its group, which a signal reaches as a whole. The group of a hit that leads one has none
    // but descendants of the run: groups do not reach over sessions, and the session is the run's or made by it.
    if process.group == process.pid && !denied(Feature::PidfdGroup) {
        let _ = pidfd::signal_group(&fd, libc::SIGKILL);
    }
    let sent = match pidfd::signal(&fd, libc::SIGKILL) {
        Ok(()) => true,
        Err(error) => error.raw_os_error() == Some(libc::ESRCH),
    };
    if sent {
        dying.push(fd);
    }
    sent
}

fn kill_by_number(process: &Process) -> bool {
    if !is_still_there(process) {
        return true;
    }
    // SAFETY: integers only. The number is above 1 and was a moment ago that of the process that was meant.
    let sent = check(unsafe { libc::kill(process.pid, libc::SIGKILL) });
    sent.is_ok() || sent.is_err_and(|e| e.raw_os_error() == Some(libc::ESRCH))
}

fn is_still_there(process: &Process) -> bool {
    procfs::process(process.pid).is_some_and(|now| now.start == process.start && now.is_alive())
}

/// Waits until all of `dying` have ended; those of `sent` that have no descriptor get a moment.
fn wait_for(dying: &[OwnedFd], sent: usize, deadline: Option<Instant>) {
    for fd in dying {
        let mut fds = [PollFd::readable(fd.as_raw_fd())];
        // An error means that the next look has to tell.
        let _ = poll(&mut fds, deadline);
    }
    if dying.len() < sent {
        let moment = Instant::now() + LOOK_AGAIN;
        let _ = poll(&mut [], Some(deadline.map_or(moment, |d| d.min(moment))));
    }
}

//! Linux's descriptors for processes.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use super::wait::{self, Found};
use super::ExitStatus;
use crate::sys::fd::check;
use crate::sys::feature::{denied, Feature};
use crate::sys::poll::{poll, wait_readable, PollFd};

/// `PIDFD_SIGNAL_PROCESS_GROUP` of `linux/pidfd.h` (6.9): the signal goes to the group, found by the process itself and
/// not by a number that may have become another's.
const PIDFD_SIGNAL_PROCESS_GROUP: libc::c_uint = 1 << 2;

/// `PIDFD_INFO_EXIT` of `linux/pidfd.h` (6.15): the status of a process that has been reaped.
const PIDFD_INFO_EXIT: u64 = 1 << 3;

/// `PIDFD_GET_INFO`: `_IOWR(0xFF, 11, struct pidfd_info)` in its first size.
const PIDFD_GET_INFO: u32 =
    (3 << 30) | ((std::mem::size_of::<Info>() as u32) << 16) | (0xFF << 8) | 11;

/// How long the status may lag behind the end of a process that reaps itself because SIGCHLD is ignored.
const STATUS_LAG: Duration = Duration::from_millis(500);

/// `struct pidfd_info` as first released.
#[repr(C)]
#[derive(Default)]
struct Info {
    mask: u64,
    cgroup: u64,
    ids: [u32; 11],
    exit_code: i32,
}

/// Opens a descriptor for `pid`. Close-on-exec by the kernel's own rule.
pub(in crate::sys) fn open(pid: libc::pid_t) -> io::Result<OwnedFd> {
    if denied(Feature::Pidfd) {
        return Err(io::Error::from_raw_os_error(libc::ENOSYS));
    }
    // SAFETY: integers only.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    let fd = check(fd as libc::c_int)?;
    // SAFETY: just made for us.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Sends `signal` to the one process behind `fd`.
pub(in crate::sys) fn signal(fd: &OwnedFd, signal: i32) -> io::Result<()> {
    send(fd.as_raw_fd(), signal, 0)
}

/// Whether the process behind `fd` has ended, all its threads included.
pub(in crate::sys) fn has_exited(fd: &OwnedFd) -> bool {
    wait_readable(fd.as_raw_fd(), Some(Instant::now()))
}

/// Whether this kernel, and whatever filters it, lets descriptors be opened, waited for and signalled.
pub(in crate::sys) fn usable() -> bool {
    static USABLE: OnceLock<bool> = OnceLock::new();
    if denied(Feature::Pidfd) {
        return false;
    }
    if let Some(known) = USABLE.get() {
        return *known;
    }
    // SAFETY: no arguments.
    let own = match open(unsafe { libc::getpid() }) {
        Ok(fd) => fd,
        // That the host has no descriptor left says nothing about the kernel.
        Err(error) if is_unsupported(&error) => return *USABLE.get_or_init(|| false),
        Err(_) => return false,
    };
    // The own process is nobody's own child: a kernel that can wait by descriptor says just that.
    let waits = matches!(look(&own), Ok(Found::NotOurs));
    *USABLE.get_or_init(|| waits && send(own.as_raw_fd(), 0, 0).is_ok())
}

/// Whether a process of the past has shown that this kernel remembers how it ended: one that lives cannot.
static REMEMBERS: OnceLock<bool> = OnceLock::new();

/// Whether this kernel is known to remember how processes have ended. Not before the first was reaped.
pub(super) fn keeps_statuses() -> bool {
    !denied(Feature::Pidfd) && !denied(Feature::PidfdInfo) && REMEMBERS.get() == Some(&true)
}

/// Whether `error` is how a kernel or a container's filter says "no such thing".
pub(super) fn is_unsupported(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::ENOSYS | libc::EINVAL | libc::EPERM | libc::EACCES)
    )
}

pub(in crate::sys) fn signal_group(fd: &OwnedFd, signal: i32) -> io::Result<()> {
    if denied(Feature::PidfdGroup) {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    send(fd.as_raw_fd(), signal, PIDFD_SIGNAL_PROCESS_GROUP)
}

fn send(fd: RawFd, signal: i32, flags: libc::c_uint) -> io::Result<()> {
    let no_info = std::ptr::null::<libc::siginfo_t>();
    // SAFETY: integers, and a NULL that means "as kill(2) would fill it".
    let sent = unsafe { libc::syscall(libc::SYS_pidfd_send_signal, fd, signal, no_info, flags) };
    check(sent as libc::c_int).map(drop)
}

/// How the process ended; `None` while it runs.
pub(super) fn status(fd: &OwnedFd) -> Option<ExitStatus> {
    match look(fd) {
        Ok(Found::Running) => None,
        Ok(Found::Ended(status)) => Some(status),
        Ok(Found::NotOurs) | Err(_) => has_exited(fd).then(|| remembered(fd)),
    }
}

pub(super) fn is_unreaped(fd: &OwnedFd) -> bool {
    matches!(look(fd), Ok(Found::Running | Found::Ended(_)))
}

/// Lets the zombie go, if it is still there.
pub(super) fn reap(fd: &OwnedFd) {
    let _ = wait::wait(libc::P_PIDFD, fd.as_raw_fd() as libc::id_t, libc::WNOHANG);
    if !denied(Feature::PidfdInfo) {
        REMEMBERS.get_or_init(|| matches!(exit_info(fd), Ok(Some(_))));
    }
}

fn look(fd: &OwnedFd) -> io::Result<Found> {
    wait::wait(
        libc::P_PIDFD,
        fd.as_raw_fd() as libc::id_t,
        libc::WNOHANG | libc::WNOWAIT,
    )
}

/// The status that the kernel keeps for as long as a descriptor of the reaped process is open.
fn remembered(fd: &OwnedFd) -> ExitStatus {
    let deadline = Instant::now() + STATUS_LAG;
    loop {
        match exit_info(fd) {
            Ok(Some(status)) => return status,
            // The end is announced a moment before the process is reaped, and the status comes with the latter,
            // which poll reports as a hang-up.
            Ok(None) if !is_hung_up(fd) && Instant::now() < deadline => {
                wait_hangup(fd, deadline);
            }
            _ => return ExitStatus::Unknown,
        }
    }
}

fn is_hung_up(fd: &OwnedFd) -> bool {
    wait_hangup(fd, Instant::now())
}

fn wait_hangup(fd: &OwnedFd, deadline: Instant) -> bool {
    let mut fds = [PollFd::new(fd.as_raw_fd(), false, false)];
    poll(&mut fds, Some(deadline)).is_ok() && fds[0].is_hangup()
}

/// The status, once it has been reaped; an error where the kernel keeps none.
pub(in crate::sys) fn exit_info(fd: &OwnedFd) -> io::Result<Option<ExitStatus>> {
    if denied(Feature::PidfdInfo) {
        return Err(io::Error::from_raw_os_error(libc::ENOTTY));
    }
    let mut info = Info {
        mask: PIDFD_INFO_EXIT,
        ..Info::default()
    };
    // SAFETY: the number carries the size of `Info`, which is all that the kernel reads and writes.
    check(unsafe { libc::ioctl(fd.as_raw_fd(), PIDFD_GET_INFO as _, &mut info) })?;
    if info.mask & PIDFD_INFO_EXIT == 0 {
        return Ok(None);
    }
    let status = info.exit_code;
    Ok(Some(if libc::WIFSIGNALED(status) {
        ExitStatus::Signaled(libc::WTERMSIG(status))
    } else {
        ExitStatus::Exited(libc::WEXITSTATUS(status))
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_request_number_is_the_one_of_the_kernel_header() {
        assert_eq!(std::mem::size_of::<Info>(), 64);
        assert_eq!(PIDFD_GET_INFO, 0xC040_FF0B);
    }
}

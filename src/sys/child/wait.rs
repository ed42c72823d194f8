//! waitid(2), for one process at a time.

use std::io;

use super::ExitStatus;
use crate::sys::fd::check;

/// What waiting found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    Running,
    Ended(ExitStatus),
    /// Not a child of ours (any more).
    NotOurs,
}

/// One call of waitid, repeated when a signal interrupts it.
pub(super) fn wait(
    kind: libc::idtype_t,
    id: libc::id_t,
    options: libc::c_int,
) -> io::Result<Found> {
    loop {
        // SAFETY: siginfo_t is plain data; all zero is how "nothing happened" is told from an answer (some systems
        // leave it untouched then). The call writes at most one siginfo_t.
        let (returned, info) = unsafe {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            (
                libc::waitid(kind, id, &mut info, options | libc::WEXITED),
                info,
            )
        };
        match check(returned) {
            Ok(_) => return Ok(found(&info)),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.raw_os_error() == Some(libc::ECHILD) => return Ok(Found::NotOurs),
            Err(error) => return Err(error),
        }
    }
}

fn found(info: &libc::siginfo_t) -> Found {
    // SAFETY: waitid fills the fields of a SIGCHLD, or leaves the zeroes.
    let (pid, status) = unsafe { (info.si_pid(), info.si_status()) };
    if pid == 0 {
        return Found::Running;
    }
    Found::Ended(match info.si_code {
        libc::CLD_EXITED => ExitStatus::Exited(status),
        libc::CLD_KILLED | libc::CLD_DUMPED => ExitStatus::Signaled(status),
        _ => ExitStatus::Unknown,
    })
}

/// Whether `pid` is a child of this process that nobody has reaped. Does not reap it.
pub(super) fn is_our_child(pid: libc::pid_t) -> bool {
    let look = libc::WNOHANG | libc::WNOWAIT;
    matches!(
        wait(libc::P_PID, pid as libc::id_t, look),
        Ok(Found::Running | Found::Ended(_))
    )
}

/// Ends a child that was just made and that nothing watches yet.
pub(super) fn kill_and_wait(pid: libc::pid_t) {
    // SAFETY: integers only; `pid` is our own unreaped child, alone in its session.
    unsafe { libc::kill(pid, libc::SIGKILL) };
    let _ = wait(libc::P_PID, pid as libc::id_t, 0);
}

//! Making the process: clone on a stack of its own where that works, else fork.

use std::ffi::c_void;
use std::io;
use std::os::fd::OwnedFd;

use super::launch::{child_main, Plan};
use super::mask::AllSignalsBlocked;
use super::region::Region;

/// A process that has begun to run [`child_main`].
pub(super) struct Started {
    pub(super) pid: libc::pid_t,
    /// Made together with the process, so that it cannot be another's.
    pub(super) pidfd: Option<OwnedFd>,
}

/// Starts the child. With signals blocked meanwhile: no handler of the host may run in it.
pub(super) fn start(plan: &Plan, region: &Region) -> io::Result<Started> {
    let _blocked = AllSignalsBlocked::new();
    #[cfg(all(target_os = "linux", not(ptc_portable)))]
    if let Some(result) = clone::start(plan, region) {
        return result;
    }
    let _ = region;
    fork(plan)
}

fn fork(plan: &Plan) -> io::Result<Started> {
    // SAFETY: the child runs nothing but `child_main`, which keeps to async-signal-safe calls on its copy of the plan.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            child_main(plan as *const Plan as *mut c_void);
            unreachable_in_child()
        }
        pid => Ok(Started { pid, pidfd: None }),
    }
}

/// `child_main` does not return; this satisfies the type without a panic path in the child.
fn unreachable_in_child() -> ! {
    // SAFETY: does not return.
    unsafe { libc::_exit(127) }
}

#[cfg(all(target_os = "linux", not(ptc_portable)))]
mod clone {
    use super::*;
    use crate::sys::feature::{denied, Feature};
    use std::os::fd::FromRawFd;

    /// `None`: this system does not let us, take another way.
    ///
    /// Memory is shared and the calling thread sleeps until exec, so the cost does not grow with the host's memory
    /// and the host pays no copy-on-write faults afterwards.
    pub(super) fn start(plan: &Plan, region: &Region) -> Option<io::Result<Started>> {
        if denied(Feature::Clone) || c_library_spoils_pid() {
            return None;
        }
        let with_pidfd = !denied(Feature::Pidfd);
        let mut flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
        if with_pidfd {
            flags |= libc::CLONE_PIDFD;
        }
        let mut pidfd: libc::c_int = -1;
        let argument = plan as *const Plan as *mut c_void;
        // SAFETY: the stack is our own and big enough; `plan` and `pidfd` outlive the child's use of them, because
        // CLONE_VFORK keeps this thread here until the child has executed or exited. `child_main` writes nothing but
        // atomics made for it.
        let pid = unsafe {
            libc::clone(
                child_main,
                region.stack_top(),
                flags,
                argument,
                &mut pidfd as *mut libc::c_int,
            )
        };
        if pid == -1 {
            let error = io::Error::last_os_error();
            return match error.raw_os_error() {
                Some(libc::EINVAL | libc::EPERM | libc::ENOSYS) => None,
                _ => Some(Err(error)),
            };
        }
        // A kernel that does not know the flag ignores it.
        // SAFETY: the kernel has made this descriptor, close-on-exec, for us.
        let pidfd = (pidfd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(pidfd) });
        Some(Ok(Started { pid, pidfd }))
    }

    /// Before 2.25, glibc's wrapper overwrote the cached pid of the thread whose memory the child shares.
    fn c_library_spoils_pid() -> bool {
        #[cfg(target_env = "gnu")]
        {
            // SAFETY: returns a static string.
            let version = unsafe { std::ffi::CStr::from_ptr(libc::gnu_get_libc_version()) };
            let mut parts = version
                .to_str()
                .unwrap_or("0")
                .split('.')
                .map(|part| part.parse().unwrap_or(0u32));
            (parts.next().unwrap_or(0), parts.next().unwrap_or(0)) < (2, 25)
        }
        #[cfg(not(target_env = "gnu"))]
        false
    }
}

//! What the child does between fork and exec, in calls that POSIX lists as async-signal-safe.
//!
//! Another thread of the host may have held the allocator's or any other lock when the process was copied, so nothing
//! here may need one. The same functions as in `ops_linux`, with the same meaning.

use std::ffi::{c_char, c_int};

use super::Errno;

fn check(returned: c_int) -> Result<(), Errno> {
    if returned == -1 {
        Err(errno())
    } else {
        Ok(())
    }
}

fn errno() -> Errno {
    // Reads the thread's own variable, without allocating.
    std::io::Error::last_os_error()
        .raw_os_error()
        .unwrap_or(libc::EIO)
}

/// Every disposition that can be reset becomes the default one.
pub(super) fn reset_dispositions() {
    #[cfg(target_os = "linux")]
    const HIGHEST_SIGNAL: c_int = 64;
    #[cfg(not(target_os = "linux"))]
    const HIGHEST_SIGNAL: c_int = 31;
    // SAFETY: zeroed, a sigaction is "default, no flags" with a mask that sigemptyset then makes empty. Signals
    // that cannot be reset are refused, which is ignored.
    unsafe {
        let mut default: libc::sigaction = std::mem::zeroed();
        default.sa_sigaction = libc::SIG_DFL;
        libc::sigemptyset(&mut default.sa_mask);
        for signal in 1..=HIGHEST_SIGNAL {
            libc::sigaction(signal, &default, std::ptr::null_mut());
        }
    }
}

pub(super) fn new_session() -> Result<(), Errno> {
    // SAFETY: no arguments.
    check(unsafe { libc::setsid() })
}

/// The plain POSIX leash needs no owner: the program inherits the descriptor and watches it.
pub(super) fn own_leash(_fd: c_int) -> Result<(), Errno> {
    Ok(())
}

pub(super) fn set_limit(resource: c_int, soft: u64, hard: u64) -> Result<(), Errno> {
    let limit = libc::rlimit {
        rlim_cur: soft as libc::rlim_t,
        rlim_max: hard as libc::rlim_t,
    };
    // SAFETY: `limit` is read only. The cast follows the C library's own type for the number.
    check(unsafe { libc::setrlimit(resource as _, &limit) })
}

/// # Safety
/// `path` is NUL-terminated.
pub(super) unsafe fn change_directory(path: *const c_char) -> Result<(), Errno> {
    // SAFETY: the caller's promise.
    check(unsafe { libc::chdir(path) })
}

/// `from` also becomes `to`, without close-on-exec. The two differ.
pub(super) fn place(from: c_int, to: c_int) -> Result<(), Errno> {
    // SAFETY: integers only.
    check(unsafe { libc::dup2(from, to) })
}

/// Sees to it that the program inherits no descriptor from `first` up to `bound`; exec does the closing.
pub(super) fn close_from(
    first: c_int,
    _report: c_int,
    bound: c_int,
    _use_close_range: bool,
) -> Result<(), Errno> {
    for fd in first..bound {
        // SAFETY: integers only; a number that is not open is refused.
        unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) };
    }
    Ok(())
}

/// Unblocks every signal for the program to come.
pub(super) fn unblock_signals() {
    // SAFETY: the set is made empty before it is read.
    unsafe {
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &none, std::ptr::null_mut());
    }
}

/// Returns only when it has failed.
///
/// # Safety
/// `program` is NUL-terminated; `argv` and `envp` are NULL-terminated arrays of such strings.
pub(super) unsafe fn execute(
    program: *const c_char,
    argv: *const *const c_char,
    envp: *const *const c_char,
) -> Errno {
    // SAFETY: the caller's promise.
    unsafe { libc::execve(program, argv, envp) };
    errno()
}

/// # Safety
/// `bytes` points to `length` readable bytes and `path` is NUL-terminated.
pub(super) unsafe fn write_file(path: *const c_char, bytes: *const u8, length: usize) {
    // SAFETY: the caller's promise; the descriptor is this function's own.
    unsafe {
        let fd = libc::open(path, libc::O_WRONLY | libc::O_CLOEXEC);
        if fd >= 0 {
            libc::write(fd, bytes.cast(), length);
            libc::close(fd);
        }
    }
}

/// Tells the parent what failed. A pipe takes a message this small whole or not at all.
pub(super) fn report(fd: c_int, words: [i32; 3]) {
    // SAFETY: `words` lives until the call returns.
    unsafe { libc::write(fd, words.as_ptr().cast(), std::mem::size_of_val(&words)) };
}

/// Ends the process without running anything of the host's.
pub(super) fn exit(code: c_int) -> ! {
    // SAFETY: does not return.
    unsafe { libc::_exit(code) }
}

/// Kills the calling process, for the tests of a child that dies half-way.
#[cfg(test)]
pub(super) fn kill_self() {
    // SAFETY: integers only.
    unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
}

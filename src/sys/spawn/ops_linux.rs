//! What the child does between clone and exec, one raw system call each.
//!
//! The child still shares the host's memory while the host's thread stands still. So nothing here allocates, locks,
//! panics, or calls a library function that keeps state: setrlimit, for one, signals every thread it knows in some C
//! libraries. The one thing that `libc::syscall` writes is the stopped thread's `errno`, which nobody reads.

use std::ffi::{c_char, c_int, c_long, c_void};

use super::Errno;

const SIGSET_BYTES: usize = 8;
const HIGHEST_SIGNAL: c_int = 64;

/// Turns the -1 of a raw call into the error number, without touching anything but `errno`.
pub(in crate::sys) fn check(returned: c_long) -> Result<(), Errno> {
    if returned == -1 {
        Err(errno())
    } else {
        Ok(())
    }
}

fn errno() -> Errno {
    // SAFETY: errno's address is valid for as long as the thread whose storage the child borrows, and that one waits.
    unsafe { *libc::__errno_location() }
}

/// Every disposition that can be reset becomes the default one.
pub(super) fn reset_dispositions() {
    // The kernel's struct differs between architectures, but all zero means "default, no flags, empty mask" in each.
    let default = [0u64; 8];
    for signal in 1..=HIGHEST_SIGNAL {
        // SAFETY: the kernel reads no more than the 64 bytes of `default`. It refuses SIGKILL and SIGSTOP: ignored.
        unsafe {
            libc::syscall(
                libc::SYS_rt_sigaction,
                signal,
                default.as_ptr(),
                std::ptr::null_mut::<c_void>(),
                SIGSET_BYTES,
            );
        }
    }
}

pub(super) fn new_session() -> Result<(), Errno> {
    // SAFETY: no arguments.
    check(unsafe { libc::syscall(libc::SYS_setsid) })
}

/// The group of the calling process becomes the one that the leash's signal goes to.
pub(super) fn own_leash(fd: c_int) -> Result<(), Errno> {
    // SAFETY: integers only.
    unsafe {
        let own_group = libc::syscall(libc::SYS_getpid);
        check(libc::syscall(
            libc::SYS_fcntl,
            fd,
            libc::F_SETOWN,
            -own_group,
        ))
    }
}

pub(super) fn set_limit(resource: c_int, soft: u64, hard: u64) -> Result<(), Errno> {
    let limit = [soft, hard];
    // SAFETY: prlimit64 reads two u64, and 0 is the calling process.
    check(unsafe {
        libc::syscall(
            libc::SYS_prlimit64,
            0,
            resource,
            limit.as_ptr(),
            std::ptr::null_mut::<c_void>(),
        )
    })
}

/// # Safety
/// `path` is NUL-terminated.
pub(super) unsafe fn change_directory(path: *const c_char) -> Result<(), Errno> {
    // SAFETY: the caller's promise.
    check(unsafe { libc::syscall(libc::SYS_chdir, path) })
}

/// `from` also becomes `to`, without close-on-exec. The two differ.
pub(super) fn place(from: c_int, to: c_int) -> Result<(), Errno> {
    // SAFETY: integers only. dup3, because some architectures have no dup2.
    check(unsafe { libc::syscall(libc::SYS_dup3, from, to, 0) })
}

/// Sees to it that the program inherits no descriptor from `first` on; `report`, which is close-on-exec, stays open.
pub(super) fn close_from(
    first: c_int,
    report: c_int,
    bound: c_int,
    use_close_range: bool,
) -> Result<(), Errno> {
    if use_close_range && close_range(first, report - 1) && close_range(report + 1, c_int::MAX) {
        return Ok(());
    }
    // Closing while the directory is read would change it; marking does not, and exec does the closing.
    if mark_listed(first).is_err() {
        for fd in first..bound {
            mark(fd);
        }
    }
    Ok(())
}

fn close_range(first: c_int, last: c_int) -> bool {
    // SAFETY: integers only; the descriptors are this process's own copies, and all that is still needed is `report`.
    first > last || unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) } == 0
}

fn mark(fd: c_int) {
    // SAFETY: integers only; a number that is not open is refused.
    unsafe { libc::syscall(libc::SYS_fcntl, fd, libc::F_SETFD, libc::FD_CLOEXEC) };
}

/// Marks what `/proc/self/fd` lists close-on-exec.
fn mark_listed(first: c_int) -> Result<(), Errno> {
    const HEADER: usize = 19;
    let mut buffer = [0u64; 512];
    let bytes = buffer.as_mut_ptr().cast::<u8>();
    let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC;
    // SAFETY: the path is NUL-terminated.
    let dir = unsafe {
        libc::syscall(
            libc::SYS_openat,
            libc::AT_FDCWD,
            c"/proc/self/fd".as_ptr(),
            flags,
            0,
        )
    };
    check(dir)?;
    loop {
        // SAFETY: `buffer` has the stated size and the alignment of the records.
        let filled = unsafe {
            libc::syscall(
                libc::SYS_getdents64,
                dir,
                bytes,
                std::mem::size_of_val(&buffer),
            )
        };
        check(filled)?;
        if filled == 0 {
            return Ok(());
        }
        let mut at = 0usize;
        while at < filled as usize {
            // SAFETY: the kernel wrote whole records into the first `filled` bytes: 8 bytes inode, 8 offset, 2 length,
            // 1 type, then a NUL-terminated name.
            unsafe {
                let record = bytes.add(at);
                let length = record.add(16).cast::<u16>().read_unaligned() as usize;
                if let Some(fd) = parse_number(record.add(HEADER)) {
                    if fd >= first {
                        mark(fd);
                    }
                }
                at = at.wrapping_add(length);
            }
        }
    }
}

/// # Safety
/// `text` is NUL-terminated.
unsafe fn parse_number(mut text: *const u8) -> Option<c_int> {
    let mut number: c_int = 0;
    // SAFETY: reads up to the NUL and no further.
    unsafe {
        while *text != 0 {
            let digit = (*text).wrapping_sub(b'0');
            if digit > 9 {
                return None;
            }
            number = number.wrapping_mul(10).wrapping_add(digit as c_int);
            text = text.add(1);
        }
    }
    Some(number)
}

/// Unblocks every signal for the program to come.
pub(super) fn unblock_signals() {
    let none = 0u64;
    // SAFETY: the kernel reads eight bytes and writes none.
    unsafe {
        libc::syscall(
            libc::SYS_rt_sigprocmask,
            libc::SIG_SETMASK,
            &none as *const u64,
            std::ptr::null_mut::<c_void>(),
            SIGSET_BYTES,
        );
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
    unsafe { libc::syscall(libc::SYS_execve, program, argv, envp) };
    errno()
}

/// # Safety
/// `bytes` points to `length` readable bytes and `path` is NUL-terminated.
pub(super) unsafe fn write_file(path: *const c_char, bytes: *const u8, length: usize) {
    let flags = libc::O_WRONLY | libc::O_CLOEXEC;
    // SAFETY: the caller's promise; the descriptor is this function's own.
    unsafe {
        let fd = libc::syscall(libc::SYS_openat, libc::AT_FDCWD, path, flags, 0);
        if fd >= 0 {
            libc::syscall(libc::SYS_write, fd, bytes, length);
            libc::syscall(libc::SYS_close, fd);
        }
    }
}

/// Tells the parent what failed. A pipe takes a message this small whole or not at all.
pub(super) fn report(fd: c_int, words: [i32; 3]) {
    // SAFETY: `words` lives until the call returns.
    unsafe {
        libc::syscall(
            libc::SYS_write,
            fd,
            words.as_ptr(),
            std::mem::size_of_val(&words),
        )
    };
}

/// Ends the process without running anything of the host's.
pub(super) fn exit(code: c_int) -> ! {
    loop {
        // SAFETY: does not return.
        unsafe { libc::syscall(libc::SYS_exit_group, code) };
    }
}

/// Kills the calling process, for the tests of a child that dies half-way.
#[cfg(test)]
pub(super) fn kill_self() {
    // SAFETY: integers only.
    unsafe {
        libc::syscall(
            libc::SYS_kill,
            libc::syscall(libc::SYS_getpid),
            libc::SIGKILL,
        )
    };
}

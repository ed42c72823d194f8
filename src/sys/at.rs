//! Calls that name a file by its directory's descriptor, so that nobody can exchange the way to it.

use std::ffi::{CStr, OsString};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;

use super::fd::{adopt, check, retry};

/// Opens a directory, and nothing that only leads to one.
pub(super) const OPEN_DIR: i32 =
    libc::O_RDONLY | libc::O_DIRECTORY | libc::O_NOFOLLOW | libc::O_CLOEXEC;
/// Opens a directory on the way to something in it, which we need not be allowed to list. Follows a link.
#[cfg(all(target_os = "linux", not(ptc_portable)))]
pub(super) const OPEN_PARENT: i32 = libc::O_PATH | libc::O_DIRECTORY | libc::O_CLOEXEC;
#[cfg(not(all(target_os = "linux", not(ptc_portable))))]
pub(super) const OPEN_PARENT: i32 = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC;

/// `mode` is that of a file which this call makes.
pub(super) fn open(
    folder: BorrowedFd<'_>,
    name: &CStr,
    flags: i32,
    mode: u32,
) -> io::Result<OwnedFd> {
    // SAFETY: `name` is NUL-terminated and outlives the call; the new descriptor is adopted at once.
    retry(|| unsafe {
        adopt(check(libc::openat(
            folder.as_raw_fd(),
            name.as_ptr(),
            flags,
            mode,
        ))?)
    })
}

pub(super) fn mkdir(folder: BorrowedFd<'_>, name: &CStr, mode: u32) -> io::Result<()> {
    // SAFETY: `name` is NUL-terminated and outlives the call.
    check(unsafe { libc::mkdirat(folder.as_raw_fd(), name.as_ptr(), mode as libc::mode_t) })
        .map(drop)
}

pub(super) fn rename(
    from_dir: BorrowedFd<'_>,
    from: &CStr,
    to_dir: BorrowedFd<'_>,
    to: &CStr,
) -> io::Result<()> {
    let (from_fd, to_fd) = (from_dir.as_raw_fd(), to_dir.as_raw_fd());
    // SAFETY: both names are NUL-terminated and outlive the call.
    check(unsafe { libc::renameat(from_fd, from.as_ptr(), to_fd, to.as_ptr()) }).map(drop)
}

/// `flags`: `AT_REMOVEDIR` for a directory, else 0.
pub(super) fn unlink(folder: BorrowedFd<'_>, name: &CStr, flags: i32) -> io::Result<()> {
    // SAFETY: `name` is NUL-terminated and outlives the call.
    check(unsafe { libc::unlinkat(folder.as_raw_fd(), name.as_ptr(), flags) }).map(drop)
}

pub(super) fn set_mode(fd: BorrowedFd<'_>, mode: u32) -> io::Result<()> {
    // SAFETY: takes integers.
    check(unsafe { libc::fchmod(fd.as_raw_fd(), mode as libc::mode_t) }).map(drop)
}

pub(super) fn set_owner(fd: BorrowedFd<'_>, user: u32, group: u32) -> io::Result<()> {
    // SAFETY: takes integers.
    check(unsafe { libc::fchown(fd.as_raw_fd(), user, group) }).map(drop)
}

/// What an open descriptor is.
pub(super) fn stat(fd: BorrowedFd<'_>) -> io::Result<libc::stat> {
    filled(|stat| {
        // SAFETY: `filled` gives room for one stat.
        unsafe { libc::fstat(fd.as_raw_fd(), stat) }
    })
}

/// What a name in a directory is; a link itself and not what it leads to.
pub(super) fn stat_link(folder: BorrowedFd<'_>, name: &CStr) -> io::Result<libc::stat> {
    filled(|stat| {
        let flags = libc::AT_SYMLINK_NOFOLLOW;
        // SAFETY: `name` is NUL-terminated and outlives the call; `filled` gives room for one stat.
        unsafe { libc::fstatat(folder.as_raw_fd(), name.as_ptr(), stat, flags) }
    })
}

fn filled(call: impl FnOnce(*mut libc::stat) -> i32) -> io::Result<libc::stat> {
    let mut stat = std::mem::MaybeUninit::uninit();
    check(call(stat.as_mut_ptr()))?;
    // SAFETY: the call succeeded, so it has filled in all of it.
    Ok(unsafe { stat.assume_init() })
}

/// Where a symbolic link leads.
pub(super) fn read_link(folder: BorrowedFd<'_>, name: &CStr) -> io::Result<OsString> {
    let mut target = vec![0; libc::PATH_MAX as usize];
    // SAFETY: `name` is NUL-terminated, `target` has room for as many bytes as are said; both outlive the call.
    let len = unsafe {
        libc::readlinkat(
            folder.as_raw_fd(),
            name.as_ptr(),
            target.as_mut_ptr().cast(),
            target.len(),
        )
    };
    let len = usize::try_from(len).map_err(|_| io::Error::last_os_error())?;
    target.truncate(len);
    Ok(OsString::from_vec(target))
}

/// Opens the root directory.
pub(super) fn root() -> io::Result<OwnedFd> {
    // SAFETY: the name is NUL-terminated; the new descriptor is adopted at once.
    retry(|| unsafe { adopt(check(libc::open(c"/".as_ptr(), OPEN_PARENT))?) })
}

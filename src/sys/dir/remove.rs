//! Removing a tree that a hostile script has made.
//!
//! The walk goes by descriptors and names of one component, so a link that was put in the place of a directory is
//! unlinked and never followed. It does not recurse: a directory that is not empty gives its subdirectories to the
//! top of the tree and is then removed, so a tree of any depth needs two descriptors and no stack. Directories that
//! the script has made unreadable are its own user's and get their mode back; mounts are left alone.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::super::entries::Entries;
use super::super::fd::check;
use super::super::poll::{deadline_after, has_passed};
use super::{open_at, rename, set_mode, stat, unlink, OPEN_DIR, SOMETHING_IS_LEFT};

/// Removes the directory `name` in `parent`, open as `dir`, with all it holds. Already gone is fine.
pub(super) fn tree(
    parent: BorrowedFd<'_>,
    name: &CStr,
    dir: BorrowedFd<'_>,
    budget: Duration,
) -> io::Result<()> {
    let removed = clear(dir, budget).and_then(|()| unlink_top(parent, name));
    if removed.is_err() {
        SOMETHING_IS_LEFT.store(true, Ordering::Relaxed);
    }
    removed
}

fn clear(dir: BorrowedFd<'_>, budget: Duration) -> io::Result<()> {
    Walk::new(dir, budget)?.clear_top()
}

fn unlink_top(parent: BorrowedFd<'_>, name: &CStr) -> io::Result<()> {
    match unlink(parent, name, libc::AT_REMOVEDIR) {
        // The script has put something else, not a directory, in the place of it.
        Err(error) if error.raw_os_error() == Some(libc::ENOTDIR) => unlink(parent, name, 0),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

/// Opens a directory, not a link to one, and gives it back the permissions of its owner if that is what it lacks.
pub(super) fn open_own_dir(folder: BorrowedFd<'_>, name: &CStr) -> io::Result<OwnedFd> {
    match open_at(folder, name, OPEN_DIR) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            permit(folder, name)?;
            open_at(folder, name, OPEN_DIR)
        }
        result => result,
    }
}

/// chmod 0700 of an entry that cannot be opened, without following it should it be a link.
fn permit(folder: BorrowedFd<'_>, name: &CStr) -> io::Result<()> {
    let (fd, path) = (folder.as_raw_fd(), name.as_ptr());
    // SAFETY: `name` is NUL-terminated and outlives the call.
    check(unsafe { libc::fchmodat(fd, path, 0o700, libc::AT_SYMLINK_NOFOLLOW) }).map(drop)
}

/// Unlinks a file, or removes an empty directory.
fn unlink_any(folder: BorrowedFd<'_>, name: &CStr) -> io::Result<()> {
    match unlink(folder, name, 0) {
        // POSIX says EPERM for a directory, Linux EISDIR.
        Err(error) if matches!(error.raw_os_error(), Some(libc::EISDIR | libc::EPERM)) => {
            match unlink(folder, name, libc::AT_REMOVEDIR) {
                // It is no directory: the first error tells why it stays.
                Err(second) if second.raw_os_error() == Some(libc::ENOTDIR) => Err(error),
                result => result,
            }
        }
        result => result,
    }
}

fn is_not_empty(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOTEMPTY | libc::EEXIST))
}

struct Walk<'a> {
    top: BorrowedFd<'a>,
    device: libc::dev_t,
    deadline: Option<Instant>,
    /// Of the names that subdirectories get at the top.
    next_name: u64,
    left: Leftovers,
}

/// What could not be removed in one pass over the top.
#[derive(Default)]
struct Leftovers {
    count: usize,
    first: Option<(CString, io::Error)>,
}

impl Leftovers {
    fn add(&mut self, name: &CStr, error: io::Error) {
        self.count += 1;
        if self.first.is_none() {
            self.first = Some((name.to_owned(), error));
        }
    }

    fn into_result(self) -> io::Result<()> {
        let Some((name, error)) = self.first else {
            return Ok(());
        };
        let name = name.to_string_lossy();
        let message = format!(
            "{} entries are left, the first {name:?}: {error}",
            self.count
        );
        Err(io::Error::new(error.kind(), message))
    }
}

impl<'a> Walk<'a> {
    fn new(top: BorrowedFd<'a>, budget: Duration) -> io::Result<Self> {
        Ok(Walk {
            top,
            device: stat(top)?.st_dev,
            deadline: deadline_after(budget),
            next_name: 0,
            left: Leftovers::default(),
        })
    }

    /// Empties the top, in as many passes as bring something about: listing a directory while it changes may miss
    /// entries, and each pass brings subdirectories up.
    fn clear_top(&mut self) -> io::Result<()> {
        // Not fatal: the mode matters only where an entry then cannot be removed, and that is told.
        let _ = set_mode(self.top, 0o700);
        loop {
            self.left = Leftovers::default();
            let is_changed = self.pass()?;
            if !is_changed {
                return std::mem::take(&mut self.left).into_result();
            }
        }
    }

    /// Tries every entry of the top once; whether anything changed.
    fn pass(&mut self) -> io::Result<bool> {
        let mut is_changed = false;
        let mut entries = Entries::open(self.top)?;
        while let Some(name) = entries.next() {
            self.check_time(name)?;
            match unlink_any(self.top, name) {
                Ok(()) => is_changed = true,
                Err(error) if is_not_empty(&error) => is_changed |= self.dissolve(name)?,
                Err(error) => self.left.add(name, error),
            }
        }
        Ok(is_changed)
    }

    /// Removes a directory at the top that is not empty, after bringing up its own subdirectories.
    fn dissolve(&mut self, name: &CStr) -> io::Result<bool> {
        let dir = match open_own_dir(self.top, name) {
            Ok(dir) => dir,
            Err(error) => {
                self.left.add(name, error);
                return Ok(false);
            }
        };
        if stat(dir.as_fd())?.st_dev != self.device {
            let error = io::Error::other("another file system is mounted on it");
            self.left.add(name, error);
            return Ok(false);
        }
        let _ = set_mode(dir.as_fd(), 0o700);
        let mut is_changed = false;
        let mut entries = Entries::open(dir.as_fd())?;
        while let Some(inner) = entries.next() {
            self.check_time(name)?;
            match self.remove_or_lift(dir.as_fd(), inner) {
                Ok(()) => is_changed = true,
                Err(error) => self.left.add(inner, error),
            }
        }
        match unlink(self.top, name, libc::AT_REMOVEDIR) {
            Ok(()) => Ok(true),
            // Another pass lists what this one missed; if there is nothing more to be done, this is the reason.
            Err(error) => {
                self.left.add(name, error);
                Ok(is_changed)
            }
        }
    }

    fn remove_or_lift(&mut self, dir: BorrowedFd<'_>, name: &CStr) -> io::Result<()> {
        match unlink_any(dir, name) {
            Err(error) if is_not_empty(&error) => {}
            result => return result,
        }
        match self.lift(dir, name) {
            // A directory that changes its parent must be writable itself, for the sake of its "..".
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                permit(dir, name)?;
                self.lift(dir, name)
            }
            result => result,
        }
    }

    /// Renames a directory to a free name at the top.
    fn lift(&mut self, dir: BorrowedFd<'_>, name: &CStr) -> io::Result<()> {
        loop {
            let lifted = CString::new(format!(".ptc-lifted-{}", self.next_name))?;
            self.next_name += 1;
            match rename(dir, name, self.top, &lifted) {
                // The script was so kind as to use that name itself.
                Err(error) if is_taken(&error) => {}
                result => return result,
            }
        }
    }

    fn check_time(&self, name: &CStr) -> io::Result<()> {
        if !has_passed(self.deadline) {
            return Ok(());
        }
        let name = name.to_string_lossy();
        Err(io::Error::new(
            io::ErrorKind::TimedOut,
            format!("no time left at {name:?}; what remains is left to the next sweep"),
        ))
    }
}

fn is_taken(error: &io::Error) -> bool {
    is_not_empty(error) || error.raw_os_error() == Some(libc::ENOTDIR)
}

#[cfg(test)]
mod tests {
    use super::super::{candidates, Dir};
    use super::*;

    #[test]
    fn a_directory_is_lifted_past_names_that_are_taken() {
        let top = Dir::create(&candidates(), "ptc-test-").unwrap();
        for name in ["a", "a/b", ".ptc-lifted-1"] {
            top.mkdir(name).unwrap();
        }
        for name in [".ptc-lifted-0", ".ptc-lifted-1/x", "a/b/x"] {
            top.write_file(name, b"", 0o600).unwrap();
        }
        let fd = open_at(top.fd.as_fd(), c".", OPEN_DIR).unwrap();
        let inner = open_at(fd.as_fd(), c"a", OPEN_DIR).unwrap();
        let mut walk = Walk::new(fd.as_fd(), Duration::MAX).unwrap();
        walk.remove_or_lift(inner.as_fd(), c"b").unwrap();
        assert!(top.path().join(".ptc-lifted-2/x").exists());
        assert!(top.path().join(".ptc-lifted-1/x").exists());
    }
}

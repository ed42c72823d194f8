//! Private directories that clean up after themselves, also when their owner is killed.
//!
//! - **Private.** Mode 0700, an unguessable name in a parent where nobody else can rename it; everything inside is
//!   reached from the directory's own descriptor, creates exclusively and follows no link.
//! - **Alive or dead.** The owner holds a `flock` on the directory's descriptor. The kernel drops it with the process,
//!   so [`sweep_stale`] of a later process knows what is left over, without trusting a pid in a name. A child between
//!   `fork` and `exec` shares the lock and loses it at `exec`; a host that forks *without* `exec` keeps its
//!   directories from being swept until that child ends, too.
//! - **No window.** A directory is made under a temporary name, locked, and only then renamed to its final one: what
//!   has a final name and no lock is dead. A temporary name is a leftover once it is older than a minute.
//! - **Removal** ([`remove`]) walks descriptors, follows no link, crosses no mount and ends in time.

mod remove;
mod sweep;
#[cfg(test)]
mod tests;

pub(crate) use sweep::{retry_removals, sweep_stale};

use std::ffi::{CStr, CString, OsStr};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::at::{self, rename, set_mode, stat, unlink, OPEN_DIR, OPEN_PARENT};
use super::fd::{adopt, check, close, retry, write_all};
use super::socket::own_uid;
use super::{host, random};

/// How long [`Dir::remove`] and dropping a [`Dir`] may take.
pub(crate) const REMOVE_BUDGET: Duration = Duration::from_secs(5);

/// What the names of all directories of this library begin with, by which the next engine knows them.
pub(crate) const PREFIX: &str = "ptc-";

/// Characters of a name after its prefix: 64 bits, 5 a character.
const RANDOM_LEN: usize = 13;
/// Digits and lower-case letters, fit for file systems that ignore case. `l`, `i`, `o`, `u` are left out to get 32.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
/// What a name ends with until its directory is locked.
const UNFINISHED: &str = ".new";
/// Room that a socket's name takes in the directory: `/s`.
const SOCKET_NAME_LEN: usize = 2;
/// A parent with less free space than this counts as full.
const MIN_FREE: u64 = 128 * 1024;

/// The places to try for a private directory, best first: `TMPDIR`, `XDG_RUNTIME_DIR`, `/tmp`, `/dev/shm`.
///
/// Reads the environment: to be called once, when the engine is made.
pub(crate) fn candidates() -> Vec<PathBuf> {
    let from_env = ["TMPDIR", "XDG_RUNTIME_DIR"].map(std::env::var_os);
    let fixed = ["/tmp", "/dev/shm"].map(|path| Some(path.into()));
    let mut places: Vec<PathBuf> = Vec::new();
    for place in from_env.into_iter().chain(fixed).flatten() {
        let place = PathBuf::from(place);
        if !place.as_os_str().is_empty() && !places.contains(&place) {
            places.push(place);
        }
    }
    places
}

/// Whether this process could not remove a directory of its own, for want of descriptors perhaps.
static SOMETHING_IS_LEFT: AtomicBool = AtomicBool::new(false);

/// A private directory of this process. Dropping it removes it, as well as [`REMOVE_BUDGET`] permits, except in a
/// forked child, where it is the parent's.
#[derive(Debug)]
pub(crate) struct Dir {
    path: PathBuf,
    name: CString,
    parent: OwnedFd,
    fd: OwnedFd,
    owner: i32,
    is_removed: bool,
}

impl Dir {
    /// Makes a directory in the first of `places` where that works: private or sticky, writable, with room, lockable,
    /// and with a path so short that a socket `s` in it can be bound. The error names every place and its fault.
    pub(crate) fn create(places: &[PathBuf], prefix: &str) -> io::Result<Dir> {
        let mut faults = Vec::new();
        for place in places {
            match Dir::create_in(place, prefix) {
                Ok(dir) => return Ok(dir),
                Err(error) => faults.push(format!("{}: {error}", place.display())),
            }
        }
        Err(io::Error::other(format!(
            "no place for a private directory; set TMPDIR to a writable directory with a short path (tried {})",
            faults.join("; ")
        )))
    }

    fn create_in(place: &Path, prefix: &str) -> io::Result<Dir> {
        check_path(place, prefix)?;
        let parent = open_parent(place)?;
        check_parent(parent.as_fd())?;
        // Another try is needed when a sweeper takes an unfinished directory for a leftover because this process was
        // stopped for a minute; more than a few are not.
        let mut last = io::Error::other("the directory vanished while it was made");
        for _ in 0..8 {
            match Dir::make(place, prefix, &parent) {
                Err(error) if is_lost(&error) => last = error,
                made => return made,
            }
        }
        Err(last)
    }

    /// Makes, locks and only then publishes.
    fn make(place: &Path, prefix: &str, parent: &OwnedFd) -> io::Result<Dir> {
        let unfinished = random_name(prefix, UNFINISHED)?;
        make_dir(parent.as_fd(), &unfinished)?;
        let made = open_private(parent.as_fd(), &unfinished).and_then(|fd| {
            lock_now(fd.as_fd()).map_err(|error| explain("cannot be locked", error))?;
            check_space(fd.as_fd())?;
            // All that can fail comes before the directory gets its name, under which only its owner removes it.
            let own_parent = super::fd::dup_high(parent.as_raw_fd())?;
            let name = random_name(prefix, "")?;
            rename(parent.as_fd(), &unfinished, parent.as_fd(), &name)?;
            Ok(Dir {
                path: place.join(OsStr::from_bytes(name.as_bytes())),
                name,
                parent: own_parent,
                fd,
                owner: host::pid(),
                is_removed: false,
            })
        });
        if made.is_err() {
            let _ = unlink(parent.as_fd(), &unfinished, libc::AT_REMOVEDIR);
        }
        made
    }

    /// The absolute path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a new file with exactly this mode, whatever the umask. `name` may lead through subdirectories made with
    /// [`Dir::mkdir`]. A file that cannot be written whole is removed again; the error names its path.
    pub(crate) fn write_file(&self, name: &str, bytes: &[u8], mode: u32) -> io::Result<()> {
        let written = self.locate(name).and_then(|(folder, leaf)| {
            let folder = folder.as_ref().unwrap_or(&self.fd).as_fd();
            let file = create_file(folder, &leaf)?;
            let written = fill_file(file, bytes, mode);
            if written.is_err() {
                let _ = unlink(folder, &leaf, 0);
            }
            written
        });
        written.map_err(|error| self.at("write", name, error))
    }

    /// The text of a small file in the directory. `None` where there is no regular file of that name, or one that is
    /// larger than `max_bytes` or not UTF-8: whoever else writes here is not trusted, and never waited for.
    pub(crate) fn read_file(&self, name: &str, max_bytes: usize) -> Option<String> {
        let flags = libc::O_RDONLY | libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_CLOEXEC;
        let (folder, leaf) = self.locate(name).ok()?;
        let file = open_at(folder.as_ref().unwrap_or(&self.fd).as_fd(), &leaf, flags).ok()?;
        if stat(file.as_fd()).ok()?.st_mode & libc::S_IFMT != libc::S_IFREG {
            return None;
        }
        let mut bytes = vec![0; max_bytes + 1];
        let mut len = 0;
        while len < bytes.len() {
            match super::fd::read(file.as_raw_fd(), &mut bytes[len..]).ok()? {
                0 => break,
                n => len += n,
            }
        }
        bytes.truncate(len);
        String::from_utf8(bytes)
            .ok()
            .filter(|text| text.len() <= max_bytes)
    }

    /// Makes a subdirectory with mode 0700.
    pub(crate) fn mkdir(&self, name: &str) -> io::Result<()> {
        let made = self.locate(name).and_then(|(folder, leaf)| {
            let folder = folder.as_ref().unwrap_or(&self.fd).as_fd();
            make_dir(folder, &leaf)?;
            open_private(folder, &leaf).map(drop)
        });
        made.map_err(|error| self.at("make directory", name, error))
    }

    /// Removes the directory and all that is in it. Nothing may write to it any more. What cannot be removed within
    /// [`REMOVE_BUDGET`] is told and left, without its lock, to the next sweep.
    pub(crate) fn remove(self) -> io::Result<()> {
        self.remove_within(REMOVE_BUDGET)
    }

    /// As [`Dir::remove`] with another budget. In a forked child it only forgets.
    pub(crate) fn remove_within(mut self, budget: Duration) -> io::Result<()> {
        if std::mem::replace(&mut self.is_removed, true) || self.owner != host::pid() {
            return Ok(());
        }
        self.clear(budget)
    }

    fn clear(&self, budget: Duration) -> io::Result<()> {
        remove::tree(self.parent.as_fd(), &self.name, self.fd.as_fd(), budget).map_err(|error| {
            let path = self.path.display();
            io::Error::new(error.kind(), format!("cannot remove {path}: {error}"))
        })
    }

    /// Opens the folder that a relative name leads to; `None` is the directory itself.
    fn locate(&self, name: &str) -> io::Result<(Option<OwnedFd>, CString)> {
        let mut parts = Vec::new();
        for part in Path::new(name).components() {
            match part {
                Component::Normal(part) => parts.push(CString::new(part.as_bytes())?),
                _ => return Err(bad_name()),
            }
        }
        let leaf = parts.pop().ok_or_else(bad_name)?;
        let mut folder: Option<OwnedFd> = None;
        for part in parts {
            let from = folder.as_ref().unwrap_or(&self.fd).as_fd();
            folder = Some(open_at(from, &part, OPEN_DIR)?);
        }
        Ok((folder, leaf))
    }

    fn at(&self, action: &str, name: &str, error: io::Error) -> io::Error {
        let path = self.path.join(name);
        io::Error::new(
            error.kind(),
            format!("cannot {action} {}: {error}", path.display()),
        )
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        if !self.is_removed && self.owner == host::pid() {
            let _ = self.clear(REMOVE_BUDGET);
        }
    }
}

fn bad_name() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidInput,
        "expected a relative name without ..",
    )
}

fn explain(what: &str, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{what}: {error}"))
}

/// The most bytes that the path of a socket may have, without its NUL.
pub(super) fn max_socket_path() -> usize {
    // SAFETY: all zero is a valid sockaddr_un.
    let address: libc::sockaddr_un = unsafe { std::mem::zeroed() };
    address.sun_path.len() - 1
}

fn check_path(place: &Path, prefix: &str) -> io::Result<()> {
    if !place.is_absolute() {
        return Err(io::Error::other("not an absolute path"));
    }
    let taken = 1 + prefix.len() + RANDOM_LEN + SOCKET_NAME_LEN;
    let room = max_socket_path().saturating_sub(taken);
    let len = place.as_os_str().len();
    if len > room {
        return Err(io::Error::other(format!(
            "path too long for a socket in it ({len} bytes, at most {room})"
        )));
    }
    Ok(())
}

fn open_parent(place: &Path) -> io::Result<OwnedFd> {
    let path = CString::new(place.as_os_str().as_bytes())?;
    // SAFETY: `path` is NUL-terminated and outlives the call; the new descriptor is adopted at once.
    retry(|| unsafe { adopt(check(libc::open(path.as_ptr(), OPEN_PARENT))?) })
}

/// Refuses a parent where somebody else could put another directory in the place of ours.
fn check_parent(parent: BorrowedFd<'_>) -> io::Result<()> {
    let stat = stat(parent)?;
    let mode = stat.st_mode;
    if mode & libc::S_ISVTX != 0 {
        return Ok(());
    }
    if mode & 0o022 != 0 {
        return Err(io::Error::other(format!(
            "others can rename what is in it (mode {:04o}, not sticky)",
            mode & 0o7777
        )));
    }
    if stat.st_uid != own_uid() && stat.st_uid != 0 {
        return Err(io::Error::other(format!(
            "belongs to another user (uid {})",
            stat.st_uid
        )));
    }
    Ok(())
}

fn check_space(dir: BorrowedFd<'_>) -> io::Result<()> {
    let mut room = std::mem::MaybeUninit::<libc::statvfs>::uninit();
    // SAFETY: there is room for one statvfs, read only after the call has filled it.
    let room = unsafe {
        check(libc::fstatvfs(dir.as_raw_fd(), room.as_mut_ptr()))?;
        room.assume_init()
    };
    // Some file systems do not say how large they are.
    if room.f_blocks == 0 {
        return Ok(());
    }
    #[allow(clippy::unnecessary_cast)] // The widths differ between systems.
    let free = (room.f_bavail as u64).saturating_mul(room.f_frsize as u64);
    if free < MIN_FREE {
        return Err(io::Error::other(format!(
            "full ({free} bytes free, {MIN_FREE} needed)"
        )));
    }
    Ok(())
}

/// Whether a directory under construction was lost to a sweeper, or its name to somebody else's.
fn is_lost(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::AlreadyExists | io::ErrorKind::WouldBlock
    )
}

fn random_name(prefix: &str, suffix: &str) -> io::Result<CString> {
    let mut bits = random::u64()?;
    let mut name = Vec::with_capacity(prefix.len() + RANDOM_LEN + suffix.len());
    name.extend_from_slice(prefix.as_bytes());
    for _ in 0..RANDOM_LEN {
        name.push(ALPHABET[(bits & 31) as usize]);
        bits >>= 5;
    }
    name.extend_from_slice(suffix.as_bytes());
    Ok(CString::new(name)?)
}

fn create_file(folder: BorrowedFd<'_>, name: &CStr) -> io::Result<OwnedFd> {
    let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL | libc::O_NOFOLLOW | libc::O_CLOEXEC;
    open_at(folder, name, flags)
}

fn fill_file(file: OwnedFd, bytes: &[u8], mode: u32) -> io::Result<()> {
    set_mode(file.as_fd(), mode)?;
    write_all(file.as_fd(), bytes)?;
    close(file)
}

/// Opens a directory of ours that has just been made, and gives it the mode that the umask may have taken.
fn open_private(folder: BorrowedFd<'_>, name: &CStr) -> io::Result<OwnedFd> {
    let fd = remove::open_own_dir(folder, name)?;
    if stat(fd.as_fd())?.st_mode & 0o7777 != 0o700 {
        set_mode(fd.as_fd(), 0o700)?;
    }
    Ok(fd)
}

fn make_dir(folder: BorrowedFd<'_>, name: &CStr) -> io::Result<()> {
    at::mkdir(folder, name, 0o700)
}

fn open_at(folder: BorrowedFd<'_>, name: &CStr, flags: i32) -> io::Result<OwnedFd> {
    at::open(folder, name, flags, 0o600)
}

/// Takes the lock that says "alive"; `WouldBlock` if somebody holds it.
fn lock_now(dir: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: takes integers.
    retry(|| check(unsafe { libc::flock(dir.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) }))
        .map(drop)
}

//! Removing what killed hosts have left.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::remove;
use super::{
    lock_now, open_parent, stat, ALPHABET, RANDOM_LEN, REMOVE_BUDGET, SOMETHING_IS_LEFT, UNFINISHED,
};
use crate::sys::entries::Entries;
use crate::sys::poll::{deadline_after, has_passed};
use crate::sys::socket::own_uid;

/// The age at which an unlocked directory with a temporary name is a leftover. Its maker needs microseconds.
const UNFINISHED_AGE: Duration = Duration::from_secs(60);

/// Removes the directories in `place` that processes of this user made with the same prefix and did not live to
/// remove, as far as `budget` goes. Never one whose owner lives, and nothing that only looks alike. Returns how many
/// it removed; what cannot be removed is no error, since it is nobody's business but the next sweep's.
pub(crate) fn sweep_stale(place: &Path, prefix: &str, budget: Duration) -> io::Result<usize> {
    let deadline = deadline_after(budget);
    let parent = open_parent(place)?;
    // Collected first: removing while listing may hide entries.
    let mut names = Vec::new();
    let mut entries = Entries::open(parent.as_fd())?;
    while let Some(name) = entries.next() {
        if kind_of(name, prefix).is_some() {
            names.push(name.to_owned());
        }
    }
    let mut removed = 0;
    for name in names {
        if has_passed(deadline) {
            break;
        }
        removed += usize::from(sweep_one(parent.as_fd(), &name, prefix, deadline).is_ok());
    }
    Ok(removed)
}

/// Removes the directories that this process could not remove when they were due, if there are any. Costs nothing when
/// there are none.
pub(crate) fn retry_removals(places: &[PathBuf], prefix: &str) {
    if SOMETHING_IS_LEFT.swap(false, Ordering::Relaxed) {
        for place in places {
            // What fails again is left to the next sweep.
            let _ = sweep_stale(place, prefix, REMOVE_BUDGET);
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Finished,
    Unfinished,
}

/// Whether a name is one that `Dir::create` gives.
fn kind_of(name: &CStr, prefix: &str) -> Option<Kind> {
    let rest = name.to_bytes().strip_prefix(prefix.as_bytes())?;
    let (random, suffix) = rest.split_at_checked(RANDOM_LEN)?;
    if !random.iter().all(|byte| ALPHABET.contains(byte)) {
        return None;
    }
    match suffix {
        b"" => Some(Kind::Finished),
        _ if suffix == UNFINISHED.as_bytes() => Some(Kind::Unfinished),
        _ => None,
    }
}

fn sweep_one(
    parent: BorrowedFd<'_>,
    name: &CStr,
    prefix: &str,
    deadline: Option<Instant>,
) -> io::Result<()> {
    // A script may have taken the permissions away; nobody but the owner (or root) can give them back.
    let dir = remove::open_own_dir(parent, name)?;
    let stat = stat(dir.as_fd())?;
    if stat.st_uid != own_uid() {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    if kind_of(name, prefix) == Some(Kind::Unfinished) && !is_old(&stat) {
        return Err(io::ErrorKind::WouldBlock.into());
    }
    lock_now(dir.as_fd())?;
    // The lock is also free when the owner has just removed the directory itself.
    remove::open_own_dir(parent, name)?;
    let left = deadline.map_or(Duration::MAX, |deadline| {
        deadline.saturating_duration_since(Instant::now())
    });
    remove::tree(parent, name, dir.as_fd(), left)
}

fn is_old(stat: &libc::stat) -> bool {
    // A time stamp can only be compared with the wall clock; one from the future is young.
    let changed = UNIX_EPOCH + Duration::from_secs(u64::try_from(stat.st_mtime).unwrap_or(0));
    SystemTime::now()
        .duration_since(changed)
        .is_ok_and(|age| age > UNFINISHED_AGE)
}

//! Landlock domains (landlock(7)): one that restricts nothing but the way to processes outside of it, and one that also
//! knows which files may be changed.
//!
//! Only what is to be restricted is handled: a domain that lets everything be read has no rules about reading, which
//! also costs nothing. Everything here is done before the child is made, but for entering, and for one rule that only
//! the child can write: its own directory in `/proc`, whose name nobody knows before.

use std::fs;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use super::files::{Access, PathRule, Sandbox};
use super::Missing;
use crate::sys::fd;
use crate::sys::feature::{denied, Feature};
use crate::sys::spawn::{check_raw, Errno};

/// `LANDLOCK_CREATE_RULESET_VERSION`
const CREATE_RULESET_VERSION: u32 = 1;
/// `LANDLOCK_RULE_PATH_BENEATH`
const RULE_PATH_BENEATH: i32 = 1;
/// `LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | LANDLOCK_SCOPE_SIGNAL`, since ABI 6.
const SCOPES: u64 = 0b11;
/// `LANDLOCK_ACCESS_NET_BIND_TCP | LANDLOCK_ACCESS_NET_CONNECT_TCP`, since ABI 4.
const TCP: u64 = 0b11;

/// The rights, `LANDLOCK_ACCESS_FS_*`.
mod right {
    pub(super) const EXECUTE: u64 = 1 << 0;
    pub(super) const WRITE_FILE: u64 = 1 << 1;
    pub(super) const READ_FILE: u64 = 1 << 2;
    pub(super) const READ_DIR: u64 = 1 << 3;
    pub(super) const REMOVE_FILE: u64 = 1 << 5;
    pub(super) const MAKE_CHAR: u64 = 1 << 6;
    pub(super) const MAKE_REG: u64 = 1 << 8;
    pub(super) const MAKE_BLOCK: u64 = 1 << 11;
    /// Renaming and linking between directories.
    pub(super) const REFER: u64 = 1 << 13;
    pub(super) const TRUNCATE: u64 = 1 << 14;
    pub(super) const IOCTL_DEV: u64 = 1 << 15;
    /// Connecting to a socket by its path.
    pub(super) const RESOLVE_UNIX: u64 = 1 << 16;

    pub(super) const READ: u64 = EXECUTE | READ_FILE | READ_DIR;
    /// Bits 1 and 4 to 12: writing, removing, and making things of all kinds.
    pub(super) const CHANGE: u64 = WRITE_FILE | 0x1ff << 4;
    /// What can be said of something that is no directory.
    pub(super) const OF_A_FILE: u64 = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV;
}

/// The versions of the interface that brought something which is used here.
mod since {
    pub(super) const REFER: i64 = 2;
    pub(super) const TRUNCATE: i64 = 3;
    pub(super) const TCP: i64 = 4;
    pub(super) const IOCTL_DEV: i64 = 5;
    pub(super) const SCOPES: i64 = 6;
    pub(super) const RESOLVE_UNIX: i64 = 9;
}

/// `struct landlock_ruleset_attr`
#[repr(C)]
struct RulesetAttr {
    handled_access_fs: u64,
    handled_access_net: u64,
    scoped: u64,
}

/// `struct landlock_path_beneath_attr`
#[repr(C, packed)]
struct PathBeneathAttr {
    allowed_access: u64,
    parent_fd: i32,
}

/// A ruleset that a child can enter; or nothing, where the kernel has nothing that would do.
#[derive(Debug, Default)]
pub(super) struct Domain {
    ruleset: Option<OwnedFd>,
    /// What entering it achieves.
    pub(super) gives: Vec<&'static str>,
    /// What the child is to be allowed in its own directory of `/proc`; 0: nothing is restricted there.
    own_proc: u64,
}

impl Domain {
    /// The best domain without file rules that this kernel offers, and what it lacks.
    pub(super) fn guard() -> (Domain, Vec<Missing>) {
        let abi = abi();
        let missing = missing_scopes(abi, abi >= since::REFER);
        if abi >= since::SCOPES {
            if let Ok(ruleset) = create(0, 0, SCOPES) {
                return (Domain::of(ruleset, vec![super::SCOPE]), missing);
            }
        }
        let ruleset = (abi >= since::REFER).then(unscoped).flatten();
        let domain = ruleset.map(|ruleset| Domain::of(ruleset, Vec::new()));
        (domain.unwrap_or_default(), missing)
    }

    /// The best domain that this kernel offers for `sandbox`, and what it lacks.
    ///
    /// # Errors
    /// With the words for the host, where a path of the configuration cannot be opened.
    pub(super) fn sandbox(sandbox: &Sandbox) -> Result<(Domain, Vec<Missing>), String> {
        let abi = abi();
        let mut missing = missing_scopes(abi, true);
        missing.extend(missing_file_rules(abi, sandbox));
        if abi < 1 {
            // The paths are looked at all the same: a wrong one is an error on every kernel.
            for rule in &sandbox.paths {
                rule.open()?;
            }
            return Ok((Domain::default(), missing));
        }
        let handled = handled(abi, sandbox);
        let scoped = if abi >= since::SCOPES { SCOPES } else { 0 };
        let no_tcp = abi >= since::TCP && !sandbox.network;
        let ruleset = create(handled, if no_tcp { TCP } else { 0 }, scoped)
            .map_err(|e| format!("cannot make a Landlock ruleset: {e}"))?;
        for rule in &sandbox.paths {
            if let Some(path) = rule.open()? {
                allow(&ruleset, rule, &path, handled)?;
            }
        }
        let mut domain = Domain::of(ruleset, vec![super::FILES]);
        if scoped != 0 {
            domain.gives.insert(0, super::SCOPE);
        }
        if handled & right::RESOLVE_UNIX != 0 {
            domain.gives.push(super::UNIX_SOCKETS);
        }
        domain.own_proc = right::READ & handled;
        Ok((domain, missing))
    }

    fn of(ruleset: OwnedFd, gives: Vec<&'static str>) -> Domain {
        Domain {
            ruleset: Some(ruleset),
            gives,
            own_proc: 0,
        }
    }

    /// One that cannot be entered.
    #[cfg(test)]
    pub(super) fn broken() -> Domain {
        Domain::of(fd::dev_null().expect("a device"), vec![super::SCOPE])
    }

    pub(super) fn plan(&self) -> Entrance {
        Entrance {
            ruleset: self.ruleset.as_ref().map_or(-1, AsRawFd::as_raw_fd),
            own_proc: self.own_proc,
        }
    }
}

/// `is_used`: whether there is a domain for this ABI at all.
fn missing_scopes(abi: i64, is_used: bool) -> Vec<Missing> {
    let unguarded = "the script can signal the host's process";
    let readable = "and, as the same user, read its environment";
    let why = match abi {
        since::SCOPES.. => return Vec::new(),
        1.. if is_used => format!(
            "this kernel has Landlock ABI {abi}, and scopes came with 6: {unguarded}"
        ),
        1.. => format!(
            "this kernel's Landlock (ABI {abi}) would forbid to rename files between directories: {unguarded} {readable}"
        ),
        _ => format!("this kernel has no Landlock, or it is switched off: {unguarded} {readable}"),
    };
    vec![Missing::new(super::SCOPE, why)]
}

fn missing_file_rules(abi: i64, sandbox: &Sandbox) -> Vec<Missing> {
    let mut missing = Vec::new();
    let mut lacks = |name, since, what: &str| {
        let why = match abi {
            1.. => {
                format!("this kernel has Landlock ABI {abi}, and this came with {since}: {what}")
            }
            _ => format!("this kernel has no Landlock, or it is switched off: {what}"),
        };
        if abi < since {
            missing.push(Missing::new(name, why));
        }
    };
    lacks(
        super::FILES,
        1,
        "the script can read and write whatever its user can",
    );
    if abi >= 1 {
        lacks(
            "landlock_truncate",
            since::TRUNCATE,
            "the script can empty files that it cannot write",
        );
        lacks(
            "landlock_ioctl",
            since::IOCTL_DEV,
            "the script can control devices that it can open for reading",
        );
    }
    if sandbox.restrict_unix_sockets {
        lacks(
            super::UNIX_SOCKETS,
            since::RESOLVE_UNIX,
            "the script can connect to any socket in the file system that its user may connect to, as those of Docker \
             or D-Bus",
        );
    }
    missing
}

/// The version of the kernel's Landlock; 0 or less where there is none.
fn abi() -> i64 {
    if denied(Feature::Landlock) {
        return 0;
    }
    let no_attr = std::ptr::null::<RulesetAttr>();
    // SAFETY: with this flag the kernel reads no memory and answers with a number.
    let abi = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            no_attr,
            0,
            CREATE_RULESET_VERSION,
        )
    };
    let came_with = [
        (Feature::LandlockRefer, since::REFER),
        (Feature::LandlockTruncate, since::TRUNCATE),
        (Feature::LandlockScope, since::SCOPES),
    ];
    let lacking = came_with.iter().filter(|(feature, _)| denied(*feature));
    lacking.map(|(_, since)| since - 1).fold(abi, i64::min)
}

/// The rights that `sandbox` has to handle, as far as ABI `abi` knows them.
fn handled(abi: i64, sandbox: &Sandbox) -> u64 {
    let mut handled = right::CHANGE;
    for (came_with, right) in [
        (since::REFER, right::REFER),
        (since::TRUNCATE, right::TRUNCATE),
        (since::IOCTL_DEV, right::IOCTL_DEV),
    ] {
        if abi >= came_with {
            handled |= right;
        }
    }
    if sandbox.restrict_unix_sockets && abi >= since::RESOLVE_UNIX {
        handled |= right::RESOLVE_UNIX;
    }
    if sandbox.restrict_reading {
        handled |= right::READ;
    }
    handled
}

fn rights(access: Access) -> u64 {
    let devices = right::MAKE_CHAR | right::MAKE_BLOCK;
    let write =
        right::READ | right::CHANGE & !devices | right::REFER | right::TRUNCATE | right::IOCTL_DEV;
    match access {
        Access::Read => right::READ,
        Access::Write => write,
        Access::Stage => write | right::RESOLVE_UNIX,
        Access::Device => right::READ_FILE | right::WRITE_FILE | right::TRUNCATE | right::IOCTL_DEV,
        Access::SharedMemory => {
            let make = right::MAKE_REG | right::WRITE_FILE | right::TRUNCATE | right::REMOVE_FILE;
            right::READ_FILE | right::READ_DIR | make
        }
    }
}

fn allow(ruleset: &OwnedFd, rule: &PathRule, path: &fs::File, handled: u64) -> Result<(), String> {
    let refused = |error: io::Error| {
        let path = rule.path.display();
        format!("cannot make a Landlock rule for {path}: {error}")
    };
    let is_dir = path.metadata().map_err(refused)?.is_dir();
    let mut allowed = rights(rule.access) & handled;
    if !is_dir {
        allowed &= right::OF_A_FILE;
    }
    // A rule that allows nothing is refused.
    if allowed == 0 {
        return Ok(());
    }
    add_rule(ruleset.as_raw_fd(), path.as_raw_fd(), allowed)
        .map_err(|errno| refused(io::Error::from_raw_os_error(errno)))
}

/// Also for the child.
fn add_rule(ruleset: RawFd, path: RawFd, allowed_access: u64) -> Result<(), Errno> {
    let rule = PathBeneathAttr {
        allowed_access,
        parent_fd: path,
    };
    let flags = 0;
    // SAFETY: the kernel reads the structure, which lives until the call returns, and the rest are numbers.
    check_raw(unsafe {
        libc::syscall(
            libc::SYS_landlock_add_rule,
            ruleset,
            RULE_PATH_BENEATH,
            &rule,
            flags,
        )
    })
}

/// One rule that allows what every ruleset forbids unasked.
fn unscoped() -> Option<OwnedFd> {
    let ruleset = create(right::REFER, 0, 0).ok()?;
    let root: OwnedFd = fs::File::open("/").ok()?.into();
    add_rule(ruleset.as_raw_fd(), root.as_raw_fd(), right::REFER).ok()?;
    Some(ruleset)
}

fn create(files: u64, net: u64, scoped: u64) -> io::Result<OwnedFd> {
    let attr = RulesetAttr {
        handled_access_fs: files,
        handled_access_net: net,
        scoped,
    };
    // Older kernels take the structure as long as the members that they do not know are zero.
    let size = std::mem::size_of::<RulesetAttr>();
    // SAFETY: the kernel reads `size` bytes of `attr`.
    let made = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, &attr, size, 0) };
    if made < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just made this descriptor, close-on-exec, for us.
    let ruleset = unsafe { OwnedFd::from_raw_fd(made as RawFd) };
    fd::moved_high(ruleset)
}

/// What the child needs in order to enter.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entrance {
    ruleset: RawFd,
    own_proc: u64,
}

impl Entrance {
    pub(super) fn exists(self) -> bool {
        self.ruleset >= 0
    }

    /// Enters the domain, in the child. Needs no_new_privs.
    pub(super) fn enter(self) -> Result<(), Errno> {
        if self.own_proc != 0 {
            self.allow_own_proc()?;
        }
        // SAFETY: integers only.
        check_raw(unsafe { libc::syscall(libc::SYS_landlock_restrict_self, self.ruleset, 0) })
    }

    fn allow_own_proc(self) -> Result<(), Errno> {
        let flags = libc::O_PATH | libc::O_DIRECTORY | libc::O_CLOEXEC;
        let path = c"/proc/self".as_ptr();
        // SAFETY: the path is NUL-terminated, and the rest are numbers.
        let dir = unsafe { libc::syscall(libc::SYS_openat, libc::AT_FDCWD, path, flags, 0) };
        if dir < 0 {
            // Without /proc there is nothing to allow.
            return Ok(());
        }
        let added = add_rule(self.ruleset, dir as RawFd, self.own_proc);
        // SAFETY: the descriptor is this function's own.
        unsafe { libc::syscall(libc::SYS_close, dir) };
        added
    }
}

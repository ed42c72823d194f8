//! A Landlock domain (landlock(7)) that restricts nothing but the way to processes outside of it.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use crate::sys::fd;
use crate::sys::feature::{denied, Feature};
use crate::sys::spawn::{check_raw, Errno};

/// `LANDLOCK_CREATE_RULESET_VERSION`
const CREATE_RULESET_VERSION: u32 = 1;
/// `LANDLOCK_RULE_PATH_BENEATH`
const RULE_PATH_BENEATH: i32 = 1;
/// `LANDLOCK_ACCESS_FS_REFER`, since ABI 2: renaming and linking between directories.
const ACCESS_FS_REFER: u64 = 1 << 13;
/// `LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | LANDLOCK_SCOPE_SIGNAL`, since ABI 6.
const SCOPES: u64 = 0b11;
const ABI_WITH_REFER: i64 = 2;
const ABI_WITH_SCOPES: i64 = 6;

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
pub(super) struct Domain(Option<OwnedFd>);

impl Domain {
    /// The best domain that this kernel offers, and what it lacks.
    pub(super) fn prepare() -> (Domain, Option<String>) {
        let abi = abi();
        if abi >= ABI_WITH_SCOPES {
            if let Some(ruleset) = scoped() {
                return (Domain(Some(ruleset)), None);
            }
        }
        let unguarded = "the script can signal the host's process";
        if abi >= ABI_WITH_REFER {
            let reason = format!("landlock_scope: this kernel has Landlock ABI {abi}, and scopes came with 6: {unguarded}");
            return (Domain(unscoped()), Some(reason));
        }
        let reason = match abi {
            1 => "this kernel's Landlock (ABI 1) would forbid to rename files between directories"
                .to_string(),
            _ => "this kernel has no Landlock, or it is switched off".to_string(),
        };
        let reason = format!(
            "landlock_scope: {reason}: {unguarded} and, as the same user, read its environment"
        );
        (Domain::default(), Some(reason))
    }

    /// -1 where there is none.
    pub(super) fn fd(&self) -> RawFd {
        self.0.as_ref().map_or(-1, AsRawFd::as_raw_fd)
    }
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
    match denied(Feature::LandlockScope) {
        true => abi.min(ABI_WITH_SCOPES - 1),
        false => abi,
    }
}

/// No rule about files at all.
fn scoped() -> Option<OwnedFd> {
    create(&RulesetAttr {
        handled_access_fs: 0,
        handled_access_net: 0,
        scoped: SCOPES,
    })
}

/// One rule that allows what every ruleset forbids unasked.
fn unscoped() -> Option<OwnedFd> {
    let ruleset = create(&RulesetAttr {
        handled_access_fs: ACCESS_FS_REFER,
        handled_access_net: 0,
        scoped: 0,
    })?;
    let root: OwnedFd = std::fs::File::open("/").ok()?.into();
    let everywhere = PathBeneathAttr {
        allowed_access: ACCESS_FS_REFER,
        parent_fd: root.as_raw_fd(),
    };
    let flags = 0;
    // SAFETY: the kernel reads the structure, which lives until the call returns, and the two descriptors are open.
    let added = unsafe {
        libc::syscall(
            libc::SYS_landlock_add_rule,
            ruleset.as_raw_fd(),
            RULE_PATH_BENEATH,
            &everywhere,
            flags,
        )
    };
    (added == 0).then_some(ruleset)
}

fn create(attr: &RulesetAttr) -> Option<OwnedFd> {
    // Older kernels take the structure as long as the members that they do not know are zero.
    let size = std::mem::size_of::<RulesetAttr>();
    // SAFETY: the kernel reads `size` bytes of `attr`.
    let made = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, attr, size, 0) };
    let raw = RawFd::try_from(made).ok().filter(|fd| *fd >= 0)?;
    // SAFETY: the kernel has just made this descriptor, close-on-exec, for us.
    let ruleset = unsafe { OwnedFd::from_raw_fd(raw) };
    fd::moved_high(ruleset).ok()
}

/// Enters the domain, in the child. Needs no_new_privs.
pub(super) fn enter(ruleset: RawFd) -> Result<(), Errno> {
    // SAFETY: integers only.
    check_raw(unsafe { libc::syscall(libc::SYS_landlock_restrict_self, ruleset, 0) })
}

//! What this kernel, and whatever filters it, does for the engine: each thing found out by using it once. For
//! `ptc doctor`, in a process of its own; an engine asks for each thing where it needs it.

use std::mem::{offset_of, size_of};

/// Something that not every kernel has.
#[derive(Debug)]
pub(crate) struct Ability {
    pub(crate) name: &'static str,
    /// Why it cannot be had; `None`: it can.
    pub(crate) missing: Option<String>,
    /// A number that says more: the version of an interface.
    pub(crate) level: Option<i64>,
}

/// The most bytes that the path of a socket may have.
pub(crate) fn socket_room() -> usize {
    size_of::<libc::sockaddr_un>() - offset_of!(libc::sockaddr_un, sun_path) - 1
}

/// The system, its release and its machine.
pub(crate) fn system() -> String {
    let mut names = std::mem::MaybeUninit::<libc::utsname>::zeroed();
    // SAFETY: the call fills `names`, for which all zero is a valid value as well.
    let names = unsafe {
        libc::uname(names.as_mut_ptr());
        names.assume_init()
    };
    let text = |name: &[libc::c_char]| {
        let name = name.iter().take_while(|c| **c != 0).map(|c| *c as u8);
        String::from_utf8_lossy(&name.collect::<Vec<u8>>()).into_owned()
    };
    let parts = [&names.sysname[..], &names.release[..], &names.machine[..]];
    parts.map(text).join(" ")
}

/// What is used where it is there. Nothing, in a build that keeps to POSIX.
#[cfg(not(all(target_os = "linux", not(ptc_portable))))]
pub(crate) fn abilities() -> Vec<Ability> {
    Vec::new()
}

#[cfg(all(target_os = "linux", not(ptc_portable)))]
pub(crate) use linux::abilities;

#[cfg(all(target_os = "linux", not(ptc_portable)))]
mod linux {
    use super::Ability;
    use crate::sys::child::pidfd;
    use crate::sys::fd::check;
    use crate::sys::feature::{denied, Feature};
    use crate::sys::leash::Leash;
    use crate::sys::scan;
    use std::ffi::{c_int, c_void};
    use std::io;
    use std::os::fd::OwnedFd;

    /// `LANDLOCK_CREATE_RULESET_VERSION`
    const LANDLOCK_VERSION: u32 = 1;
    /// `SECCOMP_GET_ACTION_AVAIL`
    const SECCOMP_IS_AVAILABLE: u32 = 2;
    /// `SECCOMP_RET_ERRNO`
    const SECCOMP_ERRNO: u32 = 0x0005_0000;
    /// A page or two are enough for a child that only exits.
    const STACK: usize = 64 * 1024;

    /// All of them, in the order in which a run meets them.
    pub(crate) fn abilities() -> Vec<Ability> {
        let landlock = landlock();
        vec![
            ability("clone", unless(Feature::Clone, clone)),
            ability("close_range", unless(Feature::CloseRange, close_range)),
            ability("pidfd", unless(Feature::Pidfd, pidfd_usable)),
            ability("pidfd_group", unless(Feature::PidfdGroup, pidfd_group)),
            ability("pidfd_info", unless(Feature::PidfdInfo, pidfd_info)),
            ability("leash_signal", unless(Feature::LeashSignal, leash)),
            ability("tag", unless(Feature::Tag, tag)),
            ability("proc", unless(Feature::Proc, proc_shows_others)),
            ability("no_new_privs", no_new_privs()),
            Ability {
                level: landlock.as_ref().ok().copied(),
                ..ability("landlock", landlock.map(drop))
            },
            ability("seccomp", seccomp()),
        ]
    }

    fn ability(name: &'static str, tried: io::Result<()>) -> Ability {
        let missing = tried.err().map(|e| e.to_string());
        Ability {
            name,
            missing,
            level: None,
        }
    }

    fn unless(feature: Feature, attempt: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        match denied(feature) {
            true => Err(io::Error::other("taken away by PTC_TEST_DENY")),
            false => attempt(),
        }
    }

    /// A child that shares this process's memory until it executes, here: until it exits.
    fn clone() -> io::Result<()> {
        extern "C" fn exit_at_once(_: *mut c_void) -> c_int {
            // SAFETY: ends the child without touching what it shares.
            unsafe { libc::_exit(0) }
        }
        let mut stack = vec![0u128; STACK / size_of::<u128>()];
        let top = stack.as_mut_ptr_range().end;
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
        let mut status = 0;
        // SAFETY: the stack is aligned, and outlives the child, since CLONE_VFORK keeps this thread here until its end;
        // the child does nothing but exit. The pid is that of our own child, which nobody else waits for.
        unsafe {
            let pid = check(libc::clone(
                exit_at_once,
                top.cast(),
                flags,
                std::ptr::null_mut(),
            ))?;
            check(libc::waitpid(pid, &mut status, 0)).map(drop)
        }
    }

    fn close_range() -> io::Result<()> {
        // SAFETY: integers only, and the range ends where no descriptor can be.
        check(unsafe { libc::syscall(libc::SYS_close_range, u32::MAX, u32::MAX, 0) } as c_int)
            .map(drop)
    }

    fn own_pidfd() -> io::Result<OwnedFd> {
        pidfd::open(std::process::id() as libc::pid_t)
    }

    fn pidfd_usable() -> io::Result<()> {
        own_pidfd()?;
        match pidfd::usable() {
            true => Ok(()),
            false => Err(io::Error::other(
                "descriptors of processes cannot be waited for",
            )),
        }
    }

    fn pidfd_group() -> io::Result<()> {
        match pidfd::signal_group(&own_pidfd()?, 0) {
            // It was looked for: this process need not lead a group.
            Err(e) if e.raw_os_error() == Some(libc::ESRCH) => Ok(()),
            sent => sent,
        }
    }

    /// The status of a process that somebody else has reaped.
    fn pidfd_info() -> io::Result<()> {
        let mut child = std::process::Command::new("/bin/sh")
            .args(["-c", ":"])
            .spawn()?;
        let descriptor = pidfd::open(child.id() as libc::pid_t);
        child.wait()?;
        match pidfd::exit_info(&descriptor?)? {
            Some(_) => Ok(()),
            None => Err(io::Error::other(
                "this kernel tells of living processes only",
            )),
        }
    }

    fn leash() -> io::Result<()> {
        match Leash::new()?.descriptor_in_child() {
            None => Ok(()),
            Some(_) => Err(io::Error::other("sockets send no signal of one's choice")),
        }
    }

    /// The limit that carries the tag can be lowered to any tag.
    fn tag() -> io::Result<()> {
        let mut limit = libc::rlimit {
            rlim_cur: 0,
            rlim_max: 0,
        };
        // SAFETY: the call fills `limit`.
        check(unsafe { libc::getrlimit(libc::RLIMIT_RTTIME, &mut limit) })?;
        match limit.rlim_max > scan::highest_tag() {
            true => Ok(()),
            false => Err(io::Error::other("RLIMIT_RTTIME is bounded already")),
        }
    }

    fn proc_shows_others() -> io::Result<()> {
        std::fs::read_to_string("/proc/self/stat")?;
        // With `hidepid` others are not there at all.
        std::fs::metadata("/proc/1/stat").map(drop)
    }

    fn no_new_privs() -> io::Result<()> {
        // SAFETY: integers only.
        check(unsafe { libc::prctl(libc::PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) }).map(drop)
    }

    fn landlock() -> io::Result<i64> {
        if denied(Feature::Landlock) {
            return Err(io::Error::other("taken away by PTC_TEST_DENY"));
        }
        // SAFETY: with this flag the kernel reads no memory and answers with a number.
        let abi = unsafe {
            libc::syscall(
                libc::SYS_landlock_create_ruleset,
                std::ptr::null::<c_void>(),
                0,
                LANDLOCK_VERSION,
            )
        };
        check(abi as c_int)?;
        Ok(abi)
    }

    fn seccomp() -> io::Result<()> {
        // SAFETY: the kernel reads the one number behind the pointer.
        let available =
            unsafe { libc::syscall(libc::SYS_seccomp, SECCOMP_IS_AVAILABLE, 0, &SECCOMP_ERRNO) };
        check(available as c_int).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_and_the_room_of_a_socket_are_known() {
        assert_eq!(system().split(' ').count(), 3);
        assert!((90..=107).contains(&socket_room()));
    }

    #[cfg(all(target_os = "linux", not(ptc_portable)))]
    #[test]
    fn every_ability_is_there_or_has_a_reason() {
        for ability in abilities() {
            assert!(!ability.name.is_empty());
            assert!(ability.missing.is_none_or(|reason| !reason.is_empty()));
        }
        let _without = crate::sys::feature::testing::deny(&crate::sys::feature::Feature::ALL);
        let missing: Vec<&str> = abilities()
            .iter()
            .filter(|a| a.missing.is_some())
            .map(|a| a.name)
            .collect();
        assert!(missing.starts_with(&["clone", "close_range", "pidfd"]));
        assert!(missing.contains(&"landlock"));
    }
}

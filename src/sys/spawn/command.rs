//! What to run, and its translation into memory that a child can use without allocating.

use std::ffi::{c_char, c_int, CString};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::ptr;
use std::sync::atomic::AtomicBool;

use super::error::{SpawnError, Step};
use super::launch::Plan;
use super::region::Region;
use crate::sys::confine::Confine;
use crate::sys::fd;
use crate::sys::feature::{denied, Feature};
use crate::sys::leash::Leash;
use crate::sys::scan::Tag;

/// The soft limit on descriptors that programs expect: above it `select` breaks and old ones close a million of them.
const ORDINARY_OPEN_FILES: u64 = 1024;

/// How much likelier than its host the child is to be chosen when memory runs out.
#[cfg(target_os = "linux")]
const OOM_SCORE_ABOVE_HOST: i32 = 500;

/// A program to start in a session of its own, with nothing of the host's but what is named here.
///
/// The child gets default signal dispositions, an empty mask, no descriptor but its three streams, no
/// core dumps, and at most 1024 open files unless `limits` say otherwise. The umask is the host's.
pub(crate) struct Command {
    /// Absolute path of the program.
    pub(crate) program: CString,
    /// Arguments, the program's name first.
    pub(crate) argv: Vec<CString>,
    /// The whole environment, `NAME=value` each.
    pub(crate) envp: Vec<CString>,
    /// Working directory, absolute.
    pub(crate) cwd: CString,
    /// Becomes the child's standard input; `None`: `/dev/null`.
    pub(crate) stdin: Option<OwnedFd>,
    /// Becomes the child's standard output; closed in the host.
    pub(crate) stdout: OwnedFd,
    /// Becomes the child's standard error; closed in the host.
    pub(crate) stderr: OwnedFd,
    /// Ends the child's group when the host dies. Ask it for [`Leash::descriptor_in_child`] while making `envp`.
    pub(crate) leash: Option<Leash>,
    /// Marks every process of the run for [`crate::sys::scan`].
    pub(crate) tag: Option<Tag>,
    /// Resource limits, set in this order after the built-in ones; one that is refused fails the start.
    pub(crate) limits: Vec<Limit>,
    /// How far the child is locked in.
    pub(crate) confine: Confine,
    /// What a test makes go wrong.
    #[cfg(test)]
    pub(crate) fault: Option<super::launch::Fault>,
}

/// One resource limit. Values of `u64::MAX` mean "no limit".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limit {
    pub(super) resource: c_int,
    pub(super) soft: u64,
    pub(super) hard: u64,
    pub(super) required: bool,
    pub(super) is_tag: bool,
}

impl Limit {
    /// `resource` is one of `libc::RLIMIT_*`, cast to `c_int` (its C type differs between systems).
    pub(crate) fn new(resource: c_int, soft: u64, hard: u64) -> Limit {
        Limit {
            resource,
            soft,
            hard,
            required: true,
            is_tag: false,
        }
    }

    /// As strict as the calling process's own limit, where that is the stricter one: nobody may go beyond it.
    pub(crate) fn at_most(resource: c_int, soft: u64, hard: u64) -> Limit {
        let (_, most) = current_limit(resource).unwrap_or((u64::MAX, u64::MAX));
        Limit::new(resource, soft.min(most), hard.min(most))
    }

    /// A limit without which the program is started all the same.
    fn wanted(resource: c_int, soft: u64, hard: u64) -> Limit {
        Limit {
            required: false,
            ..Limit::new(resource, soft, hard)
        }
    }
}

impl Command {
    /// A command with no arguments but its name, an empty environment and nothing optional.
    pub(crate) fn new(program: CString, cwd: CString, stdout: OwnedFd, stderr: OwnedFd) -> Command {
        Command {
            argv: vec![program.clone()],
            program,
            envp: Vec::new(),
            cwd,
            stdin: None,
            stdout,
            stderr,
            leash: None,
            tag: None,
            limits: Vec::new(),
            confine: Confine::none(),
            #[cfg(test)]
            fault: None,
        }
    }

    /// Moves the descriptors out of the way of the child's own 0, 1, 2 and 3.
    pub(super) fn with_high_descriptors(mut self) -> Result<Command, SpawnError> {
        let high = |fd| fd::moved_high(fd).map_err(|e| SpawnError::os(Step::Descriptors, &e));
        self.stdin = match self.stdin {
            Some(fd) => Some(high(fd)?),
            None => Some(fd::dev_null().map_err(|e| SpawnError::os(Step::DevNull, &e))?),
        };
        self.stdout = high(self.stdout)?;
        self.stderr = high(self.stderr)?;
        Ok(self)
    }
}

/// A command in the form that the child works on. Owns or borrows everything that the plan points to.
pub(super) struct Prepared<'a> {
    command: &'a Command,
    argv: Vec<*const c_char>,
    envp: Vec<*const c_char>,
    streams: Vec<(c_int, c_int)>,
    limits: Vec<Limit>,
    oom_score: String,
    close_bound: c_int,
    report: &'a OwnedFd,
    region: &'a Region,
}

impl<'a> Prepared<'a> {
    pub(super) fn new(
        command: &'a Command,
        report: &'a OwnedFd,
        region: &'a Region,
    ) -> Result<Self, SpawnError> {
        let standard = [
            command.stdin.as_ref(),
            Some(&command.stdout),
            Some(&command.stderr),
        ];
        let fds = standard.into_iter().flatten().map(AsRawFd::as_raw_fd);
        let mut streams: Vec<(RawFd, RawFd)> = fds.zip(0..).collect();
        let inherited = command.leash.as_ref().and_then(|leash| leash.inherited());
        streams.extend(inherited.map(|fd| (fd, 3)));
        Ok(Prepared {
            command,
            argv: pointers(&command.argv),
            envp: pointers(&command.envp),
            streams,
            limits: limits(command),
            oom_score: oom_score(),
            close_bound: close_bound(),
            report,
            region,
        })
    }

    pub(super) fn plan(&self) -> Plan {
        Plan {
            program: self.command.program.as_ptr(),
            argv: self.argv.as_ptr(),
            envp: self.envp.as_ptr(),
            directory: self.command.cwd.as_ptr(),
            streams: self.streams.as_ptr(),
            stream_count: self.streams.len(),
            limits: self.limits.as_ptr(),
            limit_count: self.limits.len(),
            leash: self
                .command
                .leash
                .as_ref()
                .map_or([-1; 2], |leash| leash.to_own()),
            oom_score: self.oom_score.as_ptr(),
            oom_score_length: self.oom_score.len(),
            confine: self.command.confine.plan(),
            report: self.report.as_raw_fd(),
            close_bound: self.close_bound,
            use_close_range: !denied(Feature::CloseRange),
            shared: self.region.shared(),
            memory_is_shared: AtomicBool::new(false),
            #[cfg(test)]
            fault: self.command.fault,
        }
    }
}

fn pointers(strings: &[CString]) -> Vec<*const c_char> {
    let ends_with_null = std::iter::once(ptr::null());
    strings
        .iter()
        .map(|s| s.as_ptr())
        .chain(ends_with_null)
        .collect()
}

fn limits(command: &Command) -> Vec<Limit> {
    let mut limits = Vec::with_capacity(command.limits.len() + 3);
    limits.extend(command.tag.and_then(tag_limit));
    limits.push(Limit::wanted(libc::RLIMIT_CORE as c_int, 0, 0));
    if let Ok((_, hard)) = current_limit(libc::RLIMIT_NOFILE as c_int) {
        let soft = hard.min(ORDINARY_OPEN_FILES);
        limits.push(Limit::wanted(libc::RLIMIT_NOFILE as c_int, soft, hard));
    }
    limits.extend_from_slice(&command.limits);
    limits
}

#[cfg(all(target_os = "linux", not(ptc_portable)))]
fn tag_limit(tag: Tag) -> Option<Limit> {
    if denied(Feature::Tag) {
        return None;
    }
    let marking = Limit::wanted(libc::RLIMIT_RTTIME as c_int, tag.value(), tag.value());
    Some(Limit {
        is_tag: true,
        ..marking
    })
}

/// No other system shows the limits of a foreign process.
#[cfg(not(all(target_os = "linux", not(ptc_portable))))]
fn tag_limit(_tag: Tag) -> Option<Limit> {
    None
}

/// The calling process's own limit as (soft, hard).
fn current_limit(resource: c_int) -> io::Result<(u64, u64)> {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: `limit` has room for the answer.
    fd::check(unsafe { libc::getrlimit(resource as _, &mut limit) })?;
    // The type is narrower on some 32-bit systems.
    #[allow(clippy::unnecessary_cast)]
    Ok((limit.rlim_cur as u64, limit.rlim_max as u64))
}

/// The text for `/proc/self/oom_score_adj`: the host's own value and a good piece more, which needs no privilege.
#[cfg(target_os = "linux")]
fn oom_score() -> String {
    let own = std::fs::read_to_string("/proc/self/oom_score_adj").unwrap_or_default();
    let own: i32 = own.trim().parse().unwrap_or(0);
    (own + OOM_SCORE_ABOVE_HOST).min(1000).to_string()
}

#[cfg(not(target_os = "linux"))]
fn oom_score() -> String {
    String::new()
}

/// A number above every descriptor that the child can inherit, for systems where it must try them one by one.
#[cfg(all(target_os = "linux", not(ptc_portable)))]
fn close_bound() -> c_int {
    // Needed only where neither close_range nor /proc exists.
    let (soft, _) = current_limit(libc::RLIMIT_NOFILE as c_int).unwrap_or((ORDINARY_OPEN_FILES, 0));
    c_int::try_from(soft.min(MOST_DESCRIPTORS)).unwrap_or(c_int::MAX)
}

#[cfg(not(all(target_os = "linux", not(ptc_portable))))]
fn close_bound() -> c_int {
    // Descriptors are given out lowest first, so what other threads open from now on lies below the highest one or
    // just above it.
    const OPENED_MEANWHILE: u64 = 4096;
    let (soft, _) = current_limit(libc::RLIMIT_NOFILE as c_int).unwrap_or((MOST_DESCRIPTORS, 0));
    let highest = std::fs::read_dir("/dev/fd").ok().and_then(|entries| {
        let numbers =
            entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u64>().ok());
        numbers.max()
    });
    let bound = match highest {
        Some(highest) => highest + OPENED_MEANWHILE,
        None => soft.min(MOST_DESCRIPTORS),
    };
    c_int::try_from(bound).unwrap_or(c_int::MAX)
}

/// Where trying one by one must end when the limit itself has no end.
const MOST_DESCRIPTORS: u64 = 1 << 20;

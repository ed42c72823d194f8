//! Locking the child in, so that scrubbing its environment means something.
//!
//! The level `guard` keeps a script away from the process of its host: from `/proc/<host>/environ` and memory, from
//! ptrace, from signals. It is made of three measures, none of which takes anything from an ordinary script. The level
//! `sandbox` adds rules about files, the network and the system itself:
//!
//! | name | since | what for |
//! |---|---|---|
//! | `no_new_privs` | Linux 3.5 | setuid programs give nothing, and root's capabilities do not come back at exec |
//! | `capabilities` | always | CAP_SYS_PTRACE, CAP_PERFMON, CAP_SYS_ADMIN, CAP_SYS_RAWIO and CAP_SYS_MODULE go, by which root reads what it likes; in a sandbox all but those about files |
//! | `landlock_scope` | Linux 6.12 (ABI 6) | a domain of its own: no access to processes outside it, no signals to them, no abstract sockets of theirs |
//! | `landlock_files` | Linux 5.13 (ABI 1) | sandbox: writing, and where that is wanted reading, only where it is allowed |
//! | `unix_sockets` | Linux 7.1 (ABI 9) | sandbox: no socket in the file system but the engine's and the script's own |
//! | `seccomp` | Linux 3.17 | sandbox: no namespaces, mounts, keyrings, debugging, kernel modules, clocks, see [`filter`] |
//! | `no_network` | Linux 3.17 | sandbox: no sockets but local ones |
//!
//! From ABI 2 to 5 there is a domain without the scopes: the host's memory and environment are safe, signals reach it.
//! Limits on resources are not here but among the [limits](super::spawn::Limit) of the command.
//!
//! What is prepared here in the parent is applied by the child between clone and exec, and what the child did not
//! manage is told: [`Confinement`] lists facts, not intentions. None of it is a defence against a bug in the kernel.

#[cfg(all(target_os = "linux", not(ptc_portable)))]
mod capabilities;
mod files;
#[cfg(all(target_os = "linux", not(ptc_portable)))]
mod filter;
#[cfg(all(target_os = "linux", not(ptc_portable)))]
mod landlock;
#[cfg(all(target_os = "linux", not(ptc_portable)))]
mod seccomp;
#[cfg(all(test, target_os = "linux", not(ptc_portable)))]
mod tests;
#[cfg(all(test, target_os = "linux", not(ptc_portable)))]
mod tests_sandbox;

use std::fmt;
use std::io;
use std::sync::atomic::{AtomicI32, Ordering};

pub(crate) use files::{Access, PathRule, Sandbox};

use super::spawn::Errno;

/// The names under which results tell what was done; what a single call achieves may have several.
const NO_NEW_PRIVS: &str = "no_new_privs";
const CAPABILITIES: &str = "capabilities";
const SCOPE: &str = "landlock_scope";
const FILES: &str = "landlock_files";
const UNIX_SOCKETS: &str = "unix_sockets";
const SECCOMP: &str = "seccomp";
const NO_NETWORK: &str = "no_network";

/// One thing that the child does to itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
enum Measure {
    NoNewPrivs,
    Capabilities,
    Landlock,
    Seccomp,
}

impl Measure {
    /// In the order in which the child takes them; the filter last, since it might refuse the others.
    const ALL: [Measure; 4] = [
        Measure::NoNewPrivs,
        Measure::Capabilities,
        Measure::Landlock,
        Measure::Seccomp,
    ];

    fn name(self) -> &'static str {
        match self {
            Measure::NoNewPrivs => NO_NEW_PRIVS,
            Measure::Capabilities => CAPABILITIES,
            Measure::Landlock => "landlock",
            Measure::Seccomp => SECCOMP,
        }
    }
}

/// The name of the measure that a failed [`apply`] has told.
pub(in crate::sys) fn measure_name(number: i32) -> &'static str {
    let found = Measure::ALL.into_iter().find(|m| *m as i32 == number);
    found.map_or("unknown", Measure::name)
}

/// Something that was asked for and cannot be had, with what that means.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Missing {
    name: &'static str,
    why: String,
}

impl Missing {
    fn new(name: &'static str, why: impl Into<String>) -> Missing {
        let why = why.into();
        Missing { name, why }
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.why)
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Level {
    #[default]
    None,
    #[cfg_attr(any(not(target_os = "linux"), ptc_portable), allow(dead_code))]
    Guard,
    #[cfg_attr(any(not(target_os = "linux"), ptc_portable), allow(dead_code))]
    Sandbox,
}

/// What is to be done to a child. Holds descriptors that the child uses; make one for each.
#[derive(Debug, Default)]
pub(crate) struct Confine {
    level: Level,
    require: bool,
    #[cfg(all(target_os = "linux", not(ptc_portable)))]
    domain: landlock::Domain,
    #[cfg(all(target_os = "linux", not(ptc_portable)))]
    filter: seccomp::Filter,
    /// What this kernel is known to lack.
    missing: Vec<Missing>,
}

impl Confine {
    /// Nothing.
    pub(crate) fn none() -> Self {
        Confine::default()
    }

    /// What is known to be missing before anything is started, each with what that means.
    pub(crate) fn known_missing(&self) -> Vec<String> {
        self.missing.iter().map(Missing::to_string).collect()
    }

    /// What came of it, from what the child has noted.
    pub(in crate::sys) fn report(&self, outcome: &Outcome) -> Confinement {
        let mut report = Confinement {
            applied: Vec::new(),
            missing: self.known_missing(),
        };
        for measure in Measure::ALL {
            let names = self.achieved_by(measure).iter();
            match outcome.of(measure) {
                Outcome::NOT_TRIED => {}
                0 => report.applied.extend(names.map(|name| name.to_string())),
                errno => {
                    let error = io::Error::from_raw_os_error(errno);
                    let failed = names.map(|name| format!("{name}: {error}"));
                    report.missing.extend(failed);
                }
            }
        }
        report
    }
}

#[cfg(all(target_os = "linux", not(ptc_portable)))]
impl Confine {
    /// The host's process is out of reach. With `require` a measure that fails in the child fails the start.
    pub(crate) fn guard(require: bool) -> Self {
        let (domain, missing) = landlock::Domain::guard();
        Confine {
            level: Level::Guard,
            require,
            domain,
            missing,
            ..Confine::default()
        }
    }

    /// Besides, files, network and system are bounded as `sandbox` says.
    ///
    /// # Errors
    /// With the words for the host: a path that the configuration names cannot be opened.
    pub(crate) fn sandbox(sandbox: &Sandbox, require: bool) -> Result<Self, String> {
        let (domain, mut missing) = landlock::Domain::sandbox(sandbox)?;
        let (filter, no_filter) = seccomp::Filter::prepare(sandbox.network);
        missing.extend(no_filter);
        Ok(Confine {
            level: Level::Sandbox,
            require,
            domain,
            filter,
            missing,
        })
    }

    pub(in crate::sys) fn plan(&self) -> Plan {
        Plan {
            level: self.level,
            require: self.require,
            entrance: self.domain.plan(),
            filter: self.filter.plan(),
        }
    }

    fn achieved_by(&self, measure: Measure) -> &[&'static str] {
        match measure {
            Measure::NoNewPrivs => &[NO_NEW_PRIVS],
            Measure::Capabilities => &[CAPABILITIES],
            Measure::Landlock => &self.domain.gives,
            Measure::Seccomp => &self.filter.gives,
        }
    }
}

/// Elsewhere there is nothing to be had.
#[cfg(not(all(target_os = "linux", not(ptc_portable))))]
impl Confine {
    /// The host's process is out of reach.
    pub(crate) fn guard(require: bool) -> Self {
        Confine::lacking(&[NO_NEW_PRIVS, CAPABILITIES, SCOPE], require)
    }

    /// Besides, files, network and system are bounded as `sandbox` says.
    ///
    /// # Errors
    /// With the words for the host: a path that the configuration names cannot be opened.
    pub(crate) fn sandbox(sandbox: &Sandbox, require: bool) -> Result<Self, String> {
        for rule in &sandbox.paths {
            rule.open()?;
        }
        let mut names = vec![NO_NEW_PRIVS, CAPABILITIES, SCOPE, FILES, SECCOMP];
        if !sandbox.network {
            names.push(NO_NETWORK);
        }
        if sandbox.restrict_unix_sockets {
            names.push(UNIX_SOCKETS);
        }
        Ok(Confine::lacking(&names, require))
    }

    fn lacking(names: &[&'static str], require: bool) -> Self {
        let missing = |name: &&'static str| Missing::new(name, "only Linux has it");
        Confine {
            require,
            missing: names.iter().map(missing).collect(),
            ..Confine::default()
        }
    }

    pub(in crate::sys) fn plan(&self) -> Plan {
        Plan {
            level: self.level,
            require: self.require,
        }
    }

    fn achieved_by(&self, measure: Measure) -> &[&'static str] {
        let _ = measure;
        &[]
    }
}

/// What confines a child.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Confinement {
    /// The measures that the child has taken.
    pub(crate) applied: Vec<String>,
    /// What was asked for and not done, with the reason.
    pub(crate) missing: Vec<String>,
}

/// What the child works on. Points into a [`Confine`].
#[derive(Clone, Copy)]
pub(in crate::sys) struct Plan {
    level: Level,
    require: bool,
    #[cfg(all(target_os = "linux", not(ptc_portable)))]
    entrance: landlock::Entrance,
    #[cfg(all(target_os = "linux", not(ptc_portable)))]
    filter: seccomp::Program,
}

/// What the child has done, on a page that the parent sees as well.
#[repr(C)]
pub(in crate::sys) struct Outcome([AtomicI32; Measure::ALL.len()]);

impl Outcome {
    const NOT_TRIED: i32 = -1;

    pub(in crate::sys) fn new() -> Self {
        Outcome(Measure::ALL.map(|_| AtomicI32::new(Outcome::NOT_TRIED)))
    }

    /// 0: done; else an error number, or [`Outcome::NOT_TRIED`].
    fn of(&self, measure: Measure) -> i32 {
        self.0[measure as usize].load(Ordering::Relaxed)
    }
}

/// Takes the measures of `plan`, in the child, by system calls only. On failure the measure's number and why.
pub(in crate::sys) fn apply(plan: &Plan, outcome: &Outcome) -> Result<(), (i32, Errno)> {
    if plan.level == Level::None {
        return Ok(());
    }
    for (measure, note) in Measure::ALL.into_iter().zip(&outcome.0) {
        let taken = match take(measure, plan) {
            Some(taken) => taken,
            None => continue,
        };
        note.store(taken.err().unwrap_or(0), Ordering::Relaxed);
        if let (Err(errno), true) = (taken, plan.require) {
            return Err((measure as i32, errno));
        }
    }
    Ok(())
}

/// `None` where there is nothing to do.
#[cfg(all(target_os = "linux", not(ptc_portable)))]
fn take(measure: Measure, plan: &Plan) -> Option<Result<(), Errno>> {
    let dropped = match plan.level {
        Level::None => 0,
        Level::Guard => capabilities::DANGEROUS,
        Level::Sandbox => !capabilities::OF_A_SANDBOX,
    };
    match measure {
        Measure::NoNewPrivs => Some(capabilities::no_new_privs()),
        Measure::Capabilities => Some(capabilities::drop_all_of(dropped)),
        Measure::Landlock => plan.entrance.exists().then(|| plan.entrance.enter()),
        Measure::Seccomp => plan.filter.exists().then(|| plan.filter.install()),
    }
}

#[cfg(not(all(target_os = "linux", not(ptc_portable))))]
fn take(_measure: Measure, _plan: &Plan) -> Option<Result<(), Errno>> {
    None
}

//! Locking the child in, so that scrubbing its environment means something.
//!
//! The level `guard` keeps a script away from the process of its host: from `/proc/<host>/environ` and memory, from
//! ptrace, from signals. It is made of three measures, none of which takes anything from an ordinary script:
//!
//! | measure | since | what for |
//! |---|---|---|
//! | `no_new_privs` | Linux 3.5 | setuid programs give nothing, and root's capabilities do not come back at exec |
//! | `capabilities` | always | CAP_SYS_PTRACE, CAP_PERFMON and CAP_SYS_ADMIN go, by which root reads what it likes |
//! | `landlock_scope` | Linux 6.12 (ABI 6) | a domain of its own: no access to processes outside it, no signals to them, no abstract sockets of theirs |
//!
//! From ABI 2 to 5 there is a domain without the scopes: the host's memory and environment are safe, signals reach it.
//!
//! What is prepared here in the parent is applied by the child between clone and exec, and what the child did not
//! manage is told: [`Confinement`] lists facts, not intentions. None of this bounds files, the network or resources, and
//! none of it is a defence against a bug in the kernel.

#[cfg(all(target_os = "linux", not(ptc_portable)))]
mod capabilities;
#[cfg(all(target_os = "linux", not(ptc_portable)))]
mod landlock;
#[cfg(all(test, target_os = "linux", not(ptc_portable)))]
mod tests;

use std::io;
use std::sync::atomic::{AtomicI32, Ordering};

use super::spawn::Errno;

/// One thing that the child does to itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
enum Measure {
    NoNewPrivs,
    Capabilities,
    Landlock,
}

impl Measure {
    /// In the order in which the child takes them.
    const ALL: [Measure; 3] = [
        Measure::NoNewPrivs,
        Measure::Capabilities,
        Measure::Landlock,
    ];

    fn name(self) -> &'static str {
        match self {
            Measure::NoNewPrivs => "no_new_privs",
            Measure::Capabilities => "capabilities",
            Measure::Landlock => "landlock_scope",
        }
    }
}

/// The name of the measure that a failed [`apply`] has told.
pub(in crate::sys) fn measure_name(number: i32) -> &'static str {
    let found = Measure::ALL.into_iter().find(|m| *m as i32 == number);
    found.map_or("unknown", Measure::name)
}

/// What is to be done to a child. Holds descriptors that the child uses; make one for each.
#[derive(Debug, Default)]
pub(crate) struct Confine {
    guard: bool,
    require: bool,
    #[cfg(all(target_os = "linux", not(ptc_portable)))]
    domain: landlock::Domain,
    /// What this kernel is known to lack, with what that means.
    missing: Vec<String>,
}

impl Confine {
    /// Nothing.
    pub(crate) fn none() -> Self {
        Confine::default()
    }

    /// The host's process is out of reach. With `require` a measure that fails in the child fails the start.
    #[cfg(all(target_os = "linux", not(ptc_portable)))]
    pub(crate) fn guard(require: bool) -> Self {
        let (domain, missing) = landlock::Domain::prepare();
        Confine {
            guard: true,
            require,
            domain,
            missing: missing.into_iter().collect(),
        }
    }

    /// Elsewhere there is nothing to be had.
    #[cfg(not(all(target_os = "linux", not(ptc_portable))))]
    pub(crate) fn guard(require: bool) -> Self {
        let missing = |m: Measure| format!("{}: only Linux has it", m.name());
        Confine {
            guard: false,
            require,
            missing: Measure::ALL.map(missing).to_vec(),
        }
    }

    /// What is known to be missing before anything is started.
    pub(crate) fn known_missing(&self) -> &[String] {
        &self.missing
    }

    pub(in crate::sys) fn plan(&self) -> Plan {
        Plan {
            guard: self.guard,
            require: self.require,
            #[cfg(all(target_os = "linux", not(ptc_portable)))]
            ruleset: self.domain.fd(),
        }
    }

    /// What came of it, from what the child has noted.
    pub(in crate::sys) fn report(&self, outcome: &Outcome) -> Confinement {
        let mut report = Confinement {
            missing: self.missing.clone(),
            ..Confinement::default()
        };
        for measure in Measure::ALL {
            match outcome.of(measure) {
                Outcome::NOT_TRIED => {}
                // The domain without its scopes is listed as missing already.
                0 if measure == Measure::Landlock && !self.missing.is_empty() => {}
                0 => report.applied.push(measure.name().to_string()),
                errno => {
                    let error = io::Error::from_raw_os_error(errno);
                    report.missing.push(format!("{}: {error}", measure.name()));
                }
            }
        }
        report
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

/// What the child works on.
#[derive(Clone, Copy)]
pub(in crate::sys) struct Plan {
    guard: bool,
    require: bool,
    #[cfg(all(target_os = "linux", not(ptc_portable)))]
    ruleset: std::os::fd::RawFd,
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
    if !plan.guard {
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
    match measure {
        Measure::NoNewPrivs => Some(capabilities::no_new_privs()),
        Measure::Capabilities => Some(capabilities::drop_dangerous()),
        Measure::Landlock => (plan.ruleset >= 0).then(|| landlock::enter(plan.ruleset)),
    }
}

#[cfg(not(all(target_os = "linux", not(ptc_portable))))]
fn take(_measure: Measure, _plan: &Plan) -> Option<Result<(), Errno>> {
    None
}

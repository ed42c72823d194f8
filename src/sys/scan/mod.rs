//! Finding and killing what has left the process group of a run.
//!
//! A signal to the group reaches nearly everything. This is for the rest: daemons that forked twice, took a session of
//! their own, closed everything and cleaned their environment. Four nets are cast over every process that is younger
//! than the script's leader:
//!
//! | net | finds | is escaped by |
//! |---|---|---|
//! | the tag, a value of `RLIMIT_RTTIME` that is inherited by fork and exec | everything | lowering one's own limit, which nothing does by chance |
//! | the session of the leader | what changed its group | setsid |
//! | the environment marker | what kept its environment | exec with another one; another user |
//! | the parents | children of what was found | a second fork |
//!
//! A hit is killed through a process descriptor, after a second look at whom it means, so that a recycled number hurts
//! nobody. Then everything is looked at again, until nothing is found or the time is over.
//!
//! The price: nothing but one small read when no process was made since the leader, else some 10 µs for each process
//! of the machine. What none of this finds is started by others on the script's behalf (`at`, `systemd-run`, a container
//! runtime, a terminal server that was running before): those are no descendants at all.
//!
//! Only Linux shows foreign processes in this way. Elsewhere nobody looks, and the result says so.

#[cfg(all(target_os = "linux", not(ptc_portable)))]
mod hunt;
#[cfg(all(target_os = "linux", not(ptc_portable)))]
mod procfs;
#[cfg(all(test, target_os = "linux", not(ptc_portable)))]
mod tests;

use std::time::Instant;

use super::{host, random};

/// Marks every process of a run: a resource limit that no program has a use for.
///
/// `RLIMIT_RTTIME` bounds the CPU time that a real-time thread takes without a pause, in microseconds. The values used
/// here lie above 70,000 years, so that the limit itself never does anything: bit 61 says that it is a tag, 39 bits are
/// the engine's (22 for the pid of its process, 17 random), 22 the run's. That a pid is in it lets the next engine
/// find the processes of hosts that are no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tag(u64);

const MAGIC: u64 = 1 << 61;
const PID_BITS: u32 = 22;
const SALT_BITS: u32 = 17;
const RUN_BITS: u32 = 22;

const fn low(bits: u32) -> u64 {
    (1 << bits) - 1
}

impl Tag {
    /// The tag of run number `run` (its low 22 bits) of the engine `engine`, see [`engine_tag`].
    pub(crate) fn new(engine: u64, run: u64) -> Tag {
        Tag(MAGIC | engine << RUN_BITS | run & low(RUN_BITS))
    }

    /// The limit, soft and hard.
    #[cfg_attr(any(not(target_os = "linux"), ptc_portable), allow(dead_code))]
    pub(crate) fn value(self) -> u64 {
        self.0
    }

    /// The pid of the process that gave the tag out; `None` if `value` is no tag.
    #[cfg_attr(any(not(target_os = "linux"), ptc_portable), allow(dead_code))]
    fn host_of(value: u64) -> Option<i32> {
        let is_tag = value >> (PID_BITS + SALT_BITS + RUN_BITS) == 1;
        let pid = value >> (SALT_BITS + RUN_BITS) & low(PID_BITS);
        is_tag.then_some(pid as i32).filter(|pid| *pid > 1)
    }
}

/// Above every tag there can be.
#[cfg(all(target_os = "linux", not(ptc_portable)))]
pub(in crate::sys) const fn highest_tag() -> u64 {
    MAGIC << 1
}

/// The engine's part of its tags.
pub(crate) fn engine_tag() -> u64 {
    let pid = host::pid() as u64 & low(PID_BITS);
    // It only tells engines of the same pid in different containers apart; without randomness nothing else is lost.
    let salt = random::u64().unwrap_or_default() & low(SALT_BITS);
    pid << SALT_BITS | salt
}

/// What to look for.
#[derive(Debug)]
#[cfg_attr(any(not(target_os = "linux"), ptc_portable), allow(dead_code))]
pub(crate) struct Target<'a> {
    /// The leader's pid, which is also its session's. It must not have been reaped: its zombie keeps the numbers from
    /// being another's.
    pub(crate) leader: i32,
    /// False where the host has reaped it: then its numbers mean nothing any more.
    pub(crate) leader_is_unreaped: bool,
    pub(crate) tag: Option<Tag>,
    /// A whole `NAME=value` of the environment.
    pub(crate) marker: Option<&'a [u8]>,
}

/// What came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sweep {
    /// Processes that a signal was sent to.
    pub(crate) killed: u32,
    /// Processes that are still there; `None` where nobody can look.
    pub(crate) survivors: Option<u32>,
}

impl Sweep {
    /// What is found where nobody can look.
    const BLIND: Sweep = Sweep {
        killed: 0,
        survivors: None,
    };
}

/// Kills what has left the group of a run whose group was killed already. Takes at most until `deadline` (`None`: no
/// limit), and no longer than a look around when there is nobody.
#[cfg(all(target_os = "linux", not(ptc_portable)))]
pub(crate) fn sweep(target: &Target<'_>, deadline: Option<Instant>) -> Sweep {
    use super::feature::{denied, Feature};
    if denied(Feature::Proc) {
        return Sweep::BLIND;
    }
    hunt::sweep(target, deadline)
}

#[cfg(not(all(target_os = "linux", not(ptc_portable))))]
pub(crate) fn sweep(_target: &Target<'_>, _deadline: Option<Instant>) -> Sweep {
    Sweep::BLIND
}

/// Kills the processes of runs whose hosts are no more: what had left its group when the host died, which is all that
/// the leash does not reach.
#[cfg(all(target_os = "linux", not(ptc_portable)))]
pub(crate) fn sweep_orphans(deadline: Option<Instant>) -> Sweep {
    use super::feature::{denied, Feature};
    if denied(Feature::Proc) || denied(Feature::Tag) {
        return Sweep::BLIND;
    }
    hunt::sweep_orphans(deadline)
}

#[cfg(not(all(target_os = "linux", not(ptc_portable))))]
pub(crate) fn sweep_orphans(_deadline: Option<Instant>) -> Sweep {
    Sweep::BLIND
}

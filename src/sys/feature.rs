//! The optional powers of the kernel, and the switch that pretends that one is missing.
//!
//! Every mechanism of this crate that not every kernel has asks [`denied`] before it tries. That lets the whole ladder
//! of fallbacks be tested on a kernel that has everything: `PTC_TEST_DENY=pidfd,close_range` in the host's environment,
//! read once per process, takes features away from everybody; tests inside this crate deny them for one thread.
//! Nothing is ever granted by it, so it is no door: a host whose environment is hostile is lost anyway.

use std::sync::OnceLock;

/// The environment variable with the features to do without, separated by commas.
pub(crate) const DENY_VARIABLE: &str = "PTC_TEST_DENY";

/// One thing that a kernel may lack or a container may refuse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Feature {
    /// `clone` with shared memory; else `fork`.
    Clone,
    /// A descriptor for a process; else a waiting thread.
    Pidfd,
    /// `PIDFD_GET_INFO` with the exit status (Linux 6.15).
    PidfdInfo,
    /// Signals to a process group by pidfd (Linux 6.9).
    PidfdGroup,
    /// `close_range` (Linux 5.9).
    CloseRange,
    /// Any Landlock at all.
    Landlock,
    /// Landlock's renaming between directories (ABI 2).
    LandlockRefer,
    /// Landlock's truncation (ABI 3).
    LandlockTruncate,
    /// Landlock's scoped signals and abstract sockets (ABI 6).
    LandlockScope,
    /// Filters for system calls.
    Seccomp,
    /// SIGKILL to a group when a pipe closes; else the child watches the pipe itself.
    LeashSignal,
    /// The resource limit that marks the processes of a run.
    Tag,
    /// A usable `/proc`.
    Proc,
}

impl Feature {
    /// Every feature, in the order in which `doctor` lists them.
    pub(crate) const ALL: [Feature; 13] = [
        Feature::Clone,
        Feature::Pidfd,
        Feature::PidfdInfo,
        Feature::PidfdGroup,
        Feature::CloseRange,
        Feature::Landlock,
        Feature::LandlockRefer,
        Feature::LandlockTruncate,
        Feature::LandlockScope,
        Feature::Seccomp,
        Feature::LeashSignal,
        Feature::Tag,
        Feature::Proc,
    ];

    /// The name that [`DENY_VARIABLE`] uses.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Feature::Clone => "clone",
            Feature::Pidfd => "pidfd",
            Feature::PidfdInfo => "pidfd_info",
            Feature::PidfdGroup => "pidfd_group",
            Feature::CloseRange => "close_range",
            Feature::Landlock => "landlock",
            Feature::LandlockRefer => "landlock_refer",
            Feature::LandlockTruncate => "landlock_truncate",
            Feature::LandlockScope => "landlock_scope",
            Feature::Seccomp => "seccomp",
            Feature::LeashSignal => "leash_signal",
            Feature::Tag => "tag",
            Feature::Proc => "proc",
        }
    }

    fn bit(self) -> u32 {
        1 << self as u32
    }
}

/// Whether to do as if the kernel had no `feature`.
pub(crate) fn denied(feature: Feature) -> bool {
    static FROM_ENVIRONMENT: OnceLock<u32> = OnceLock::new();
    let everywhere = *FROM_ENVIRONMENT.get_or_init(|| {
        let names = std::env::var(DENY_VARIABLE).unwrap_or_default();
        parse(&names)
    });
    (everywhere | here()) & feature.bit() != 0
}

fn parse(names: &str) -> u32 {
    names
        .split(',')
        .filter_map(|name| Feature::ALL.iter().find(|f| f.name() == name.trim()))
        .fold(0, |bits, feature| bits | feature.bit())
}

#[cfg(not(test))]
fn here() -> u32 {
    0
}

#[cfg(test)]
fn here() -> u32 {
    testing::DENIED_HERE.with(|bits| bits.get())
}

/// Denials for the thread of one test, so that tests can run side by side.
#[cfg(test)]
pub(crate) mod testing {
    use super::Feature;
    use std::cell::Cell;

    thread_local! {
        pub(super) static DENIED_HERE: Cell<u32> = const { Cell::new(0) };
    }

    /// Ends the denial when it is dropped.
    pub(crate) struct Denial(u32);

    /// Takes `features` away from the calling thread.
    pub(crate) fn deny(features: &[Feature]) -> Denial {
        DENIED_HERE.with(|bits| {
            let before = bits.get();
            bits.set(features.iter().fold(before, |bits, f| bits | f.bit()));
            Denial(before)
        })
    }

    impl Drop for Denial {
        fn drop(&mut self) {
            DENIED_HERE.with(|bits| bits.set(self.0));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_takes_away_what_it_names_and_nothing_else() {
        let bits = parse("pidfd, close_range,nonsense");
        let named: Vec<_> = Feature::ALL
            .iter()
            .filter(|f| bits & f.bit() != 0)
            .map(|f| f.name())
            .collect();
        assert_eq!(named, ["pidfd", "close_range"]);
        assert_eq!(parse(""), 0);
    }

    #[test]
    fn a_denial_ends_with_its_guard_and_stays_in_its_thread() {
        let denial = testing::deny(&[Feature::Landlock]);
        assert!(denied(Feature::Landlock));
        assert!(std::thread::spawn(|| !denied(Feature::Landlock))
            .join()
            .unwrap());
        drop(denial);
        assert!(!denied(Feature::Landlock));
    }
}

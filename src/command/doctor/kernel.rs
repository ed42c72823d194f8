//! The kernel's abilities. None of them is needed: what each one is for, and what stands in for it, is said.

use super::{Report, State};
use crate::sys::survey::{self, Ability};

const SECTION: &str = "kernel";

/// What an ability is good for, what happens without, and what would bring it.
struct Meaning {
    name: &'static str,
    there: &'static str,
    instead: &'static str,
    advice: &'static str,
}

const MEANINGS: [Meaning; 11] = [
    Meaning {
        name: "clone",
        there: "scripts start at the same speed whatever memory the host has",
        instead: "scripts start by fork, which costs more the more memory the host has",
        advice: "let the container's seccomp profile allow clone with CLONE_VM and CLONE_VFORK",
    },
    Meaning {
        name: "close_range",
        there: "no descriptor of the host reaches a script, at once",
        instead: "descriptors are closed one by one before a script starts",
        advice: "Linux 5.9 has it; a container's seccomp profile may forbid it",
    },
    Meaning {
        name: "pidfd",
        there: "scripts are watched and signalled by descriptor, never by a number that may be another's",
        instead: "a thread waits for each script",
        advice: "Linux 5.4 has it; a container's seccomp profile may forbid pidfd_open or waitid",
    },
    Meaning {
        name: "pidfd_group",
        there: "whole process groups are signalled by descriptor",
        instead: "groups are signalled by number, while their leader keeps the number from being reused",
        advice: "Linux 6.9 has it; nothing needs to be done",
    },
    Meaning {
        name: "pidfd_info",
        there: "the exit status is known even if the host reaps every child",
        instead: "in a host that reaps every child, or ignores SIGCHLD, the exit status is unknown",
        advice: "Linux 6.15 has it; other hosts need not care",
    },
    Meaning {
        name: "leash_signal",
        there: "the kernel kills a script when its host dies",
        instead: "a thread in the script's interpreter watches for the host's death",
        advice: "a sandbox around this process refuses F_SETSIG; run a real Linux kernel",
    },
    Meaning {
        name: "tag",
        there: "processes that leave a script's group and session are found",
        instead: "processes that leave group and session and clean their environment are not found",
        advice: "do not bound RLIMIT_RTTIME (`ulimit -R`) for this process",
    },
    Meaning {
        name: "proc",
        there: "what a script leaves behind can be looked for",
        instead: "nobody can look for processes that left the group: `survivors` is null",
        advice: "mount /proc without hidepid",
    },
    Meaning {
        name: "no_new_privs",
        there: "setuid programs give a script nothing",
        instead: "isolation is incomplete",
        advice: "Linux 3.5 has it",
    },
    Meaning {
        name: "landlock",
        there: "scripts are kept from the host's process, and files can be ruled",
        instead: "a script can signal the host and, as the same user, read its environment",
        advice: "Linux 5.13 has it, 6.12 all of it; the boot option lsm= must list landlock, a seccomp profile must let it pass",
    },
    Meaning {
        name: "seccomp",
        there: "system calls can be filtered",
        instead: "a sandbox cannot shut off the network",
        advice: "the kernel needs CONFIG_SECCOMP_FILTER",
    },
];

/// Since then signals and abstract sockets are bounded as well.
const LANDLOCK_WITH_SCOPES: i64 = 6;

pub(super) fn examine(report: &mut Report) {
    report.add(SECTION, "system", State::Ok, survey::system());
    let abilities = survey::abilities();
    if abilities.is_empty() {
        let text = "plain POSIX means only: this build, or this system, has nothing else to offer";
        let finding = report.add(SECTION, "abilities", State::Warn, text);
        finding.advise(
            "on Linux, build without --cfg ptc_portable; elsewhere nothing needs to be done",
        );
    }
    for ability in &abilities {
        if let Some(meaning) = MEANINGS.iter().find(|m| m.name == ability.name) {
            tell(report, ability, meaning);
        }
    }
}

fn tell(report: &mut Report, ability: &Ability, meaning: &Meaning) {
    if let Some(reason) = &ability.missing {
        let text = format!("{reason}: {}", meaning.instead);
        let finding = report.add(SECTION, ability.name, State::Warn, text);
        finding.advise(meaning.advice).value(false);
        return;
    }
    let Some(abi) = ability.level else {
        let finding = report.add(SECTION, ability.name, State::Ok, meaning.there);
        finding.value(true);
        return;
    };
    if abi >= LANDLOCK_WITH_SCOPES {
        let text = format!("ABI {abi}: {}", meaning.there);
        report
            .add(SECTION, ability.name, State::Ok, text)
            .value(abi);
    } else {
        let text = format!("ABI {abi}, and {LANDLOCK_WITH_SCOPES} is needed to keep a script from signalling the host");
        let finding = report.add(SECTION, ability.name, State::Warn, text);
        finding.advise(meaning.advice).value(abi);
    }
}

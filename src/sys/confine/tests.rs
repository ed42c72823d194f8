//! From inside a confined child. What the kernel lacks is said and not tested.

use super::*;
use crate::sys::fd;
use crate::sys::feature::testing::deny;
use crate::sys::feature::Feature;
use crate::sys::spawn::{spawn, Command};
use std::ffi::CString;
use std::fs::File;
use std::io::Read as _;

/// What a shell prints under `confine`, and what confined it.
pub(super) fn inside(confine: Confine, script: &str) -> (String, Confinement) {
    let (read, write) = fd::pipe().unwrap();
    let stderr = fd::dup_high(std::os::fd::AsRawFd::as_raw_fd(&write)).unwrap();
    let mut command = Command::new(c"/bin/sh".into(), c"/tmp".into(), write, stderr);
    command.argv.push(c"-c".into());
    command.argv.push(CString::new(script).unwrap());
    command.envp = vec![c"PATH=/usr/bin:/bin".into()];
    command.confine = confine;
    let child = spawn(command).unwrap();
    let confinement = child.confinement().clone();
    let mut text = String::new();
    File::from(read).read_to_string(&mut text).unwrap();
    child.reap();
    (text.trim_end().to_string(), confinement)
}

/// A shell command that says whether `attempt` worked.
pub(super) fn verdict(attempt: &str) -> String {
    format!("if {attempt} >/dev/null 2>&1; then echo works; else echo denied; fi")
}

fn has_scopes() -> bool {
    let has = Confine::guard(false).known_missing().is_empty();
    if !has {
        eprintln!("skipped: {:?}", Confine::guard(false).known_missing());
    }
    has
}

#[test]
fn guard_tells_what_it_did() {
    let (_, confinement) = inside(Confine::guard(false), "true");
    assert!(confinement
        .applied
        .starts_with(&["no_new_privs".into(), "capabilities".into()]));
    if has_scopes() {
        assert_eq!(confinement.applied.len(), 3);
        assert_eq!(confinement.missing, Vec::<String>::new());
    }
    let (_, confinement) = inside(Confine::none(), "true");
    assert_eq!(confinement, Confinement::default());
}

#[test]
fn privileges_are_gone_and_stay_so_over_exec() {
    let script = "exec grep -E '^(NoNewPrivs|CapPrm|CapEff)' /proc/self/status";
    let (status, _) = inside(Confine::guard(false), script);
    let value = |name: &str| {
        status
            .lines()
            .find_map(|l| l.strip_prefix(name)?.split('\t').nth(1))
    };
    assert_eq!(value("NoNewPrivs:"), Some("1"));
    for set in ["CapPrm:", "CapEff:"] {
        let bits = u64::from_str_radix(value(set).unwrap(), 16).unwrap();
        // CAP_SYS_MODULE, SYS_RAWIO, SYS_PTRACE, SYS_ADMIN, PERFMON.
        for capability in [16, 17, 19, 21, 38] {
            assert_eq!(bits >> capability & 1, 0, "{capability}: {status}");
        }
    }
}

#[test]
fn the_host_is_out_of_reach_and_without_guard_it_is_not() {
    let host = std::process::id();
    for file in ["environ", "maps", "mem"] {
        let attempt = verdict(&format!("head -c 1 /proc/{host}/{file}"));
        if file != "mem" {
            assert_eq!(inside(Confine::none(), &attempt).0, "works", "{file}");
        }
        let (found, confinement) = inside(Confine::guard(false), &attempt);
        // Root reads on where there is no domain, but not without the capabilities.
        assert_eq!(found, "denied", "{file}: {confinement:?}");
    }
    if has_scopes() {
        let signal = verdict(&format!("kill -0 {host}"));
        assert_eq!(inside(Confine::none(), &signal).0, "works");
        assert_eq!(inside(Confine::guard(false), &signal).0, "denied");
    }
}

#[test]
fn its_own_processes_and_files_are_a_scripts_own_business() {
    let script = "sleep 1000 & kill -0 $! && kill $! && \
        d=$(mktemp -d) && mkdir $d/a $d/b && echo x > $d/a/f && mv $d/a/f $d/b/ && cat $d/b/f && rm -r $d && \
        head -c 0 /proc/$$/environ && echo fine";
    for features in [&[][..], &[Feature::LandlockScope], &[Feature::Landlock]] {
        let _without = deny(features);
        let (found, _) = inside(Confine::guard(false), script);
        assert_eq!(found, "x\nfine", "without {features:?}");
    }
}

#[test]
fn what_the_kernel_lacks_is_missing_and_the_rest_is_done() {
    for (features, reason) in [
        (&[Feature::LandlockScope], "scopes came with 6"),
        (&[Feature::Landlock], "no Landlock"),
    ] {
        let _without = deny(features);
        let confine = Confine::guard(false);
        assert!(confine.known_missing()[0].contains(reason));
        let (found, confinement) = inside(
            confine,
            &verdict(&format!("cat /proc/{}/environ", std::process::id())),
        );
        assert_eq!(confinement.applied, ["no_new_privs", "capabilities"]);
        assert!(confinement.missing[0].starts_with("landlock_scope: "));
        // SAFETY: no arguments.
        let is_root = unsafe { libc::geteuid() } == 0;
        if is_root || *features == [Feature::LandlockScope] {
            assert_eq!(found, "denied");
        }
    }
}

//! From inside a sandboxed child, on this kernel and on poorer ones. What this kernel lacks itself is said and not tested.

use super::tests::{inside, verdict};
use super::*;
use crate::sys::feature::testing::deny;
use crate::sys::feature::Feature;
use std::fs;
use std::path::{Path, PathBuf};

/// A directory with `open/`, which the sandbox may write, and `shut/`, with a file in each.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("ptc-confine-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        for dir in ["open/deep", "shut"] {
            fs::create_dir_all(path.join(dir)).unwrap();
            fs::write(path.join(dir).join("file"), "text").unwrap();
        }
        Folder(path)
    }

    fn sandbox(&self) -> Sandbox {
        Sandbox {
            paths: vec![
                PathRule::new(self.0.join("open"), Access::Write),
                PathRule::new("/dev/null", Access::Device),
            ],
            restrict_unix_sockets: true,
            ..Sandbox::default()
        }
    }

    /// What becomes of a shell's `attempt` here, in the sandbox.
    fn attempt(&self, sandbox: &Sandbox, attempt: &str) -> String {
        let confine = Confine::sandbox(sandbox, false).unwrap();
        inside(confine, &self.script(attempt)).0
    }

    fn without_a_sandbox(&self, attempt: &str) -> String {
        inside(Confine::none(), &self.script(attempt)).0
    }

    fn script(&self, attempt: &str) -> String {
        format!(
            "cd {}; {}",
            self.0.display(),
            verdict(&format!("{{ {attempt}; }}"))
        )
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn report(sandbox: &Sandbox) -> Confinement {
    inside(Confine::sandbox(sandbox, false).unwrap(), "true").1
}

fn names(list: &[String]) -> Vec<&str> {
    list.iter()
        .map(|entry| entry.split(':').next().unwrap())
        .collect()
}

/// Whether this kernel does `name` in a sandbox.
fn has(name: &str) -> bool {
    let missing = report(&Sandbox::default()).missing;
    let lack = missing.iter().find(|m| m.starts_with(name));
    if let Some(lack) = lack {
        println!("skipped: {lack}");
    }
    lack.is_none()
}

#[test]
fn only_what_is_allowed_is_written() {
    if !has(FILES) {
        return;
    }
    let folder = Folder::new("write");
    for attempt in [
        "echo x > open/new",
        "echo x >> open/deep/file",
        "mkdir open/dir && rmdir open/dir",
        "mv open/deep/file open/moved && mv open/moved open/deep/file",
        "ln -s ../shut/file open/link && cat open/link",
        "mkfifo open/fifo && rm open/fifo",
        "cat shut/file",
    ] {
        assert_eq!(
            folder.attempt(&folder.sandbox(), attempt),
            "works",
            "{attempt}"
        );
    }
    for attempt in [
        "echo x > shut/new",
        "echo x >> shut/file",
        "true > shut/file",
        "echo x > open/../shut/file",
        "ln -sf ../shut/file open/link && echo x > open/link",
        "mkdir shut/dir",
        "mv open/deep/file shut/moved",
        "mv shut/file open/moved",
        "ln shut/file open/linked && echo x > open/linked",
        "rm shut/file",
    ] {
        assert_eq!(
            folder.attempt(&folder.sandbox(), attempt),
            "denied",
            "{attempt}"
        );
    }
    assert_eq!(fs::read(folder.0.join("shut/file")).unwrap(), b"text");
    for attempt in ["echo x > shut/new", "echo x >> shut/file", "rm shut/file"] {
        assert_eq!(folder.without_a_sandbox(attempt), "works", "{attempt}");
    }
}

#[test]
fn reading_can_be_restricted_and_a_process_still_sees_itself() {
    if !has(FILES) {
        return;
    }
    let folder = Folder::new("read");
    let mut sandbox = folder.sandbox();
    sandbox.restrict_reading = true;
    for place in ["/bin", "/lib", "/lib64", "/usr", "/etc/ld.so.cache"] {
        sandbox.paths.push(PathRule::new(place, Access::Read));
    }
    let attempt = |attempt| folder.attempt(&sandbox, attempt);
    assert_eq!(attempt("cat open/deep/file"), "works");
    assert_eq!(attempt("cat shut/file"), "denied");
    assert_eq!(attempt("ls shut"), "denied");
    assert_eq!(attempt("true < /proc/self/status"), "works");
    assert_eq!(attempt("true < /proc/$PPID/status"), "denied");
    assert_eq!(
        folder.without_a_sandbox("true < /proc/$PPID/status"),
        "works"
    );
}

#[test]
fn a_path_that_the_configuration_names_has_to_be_there() {
    let nowhere = Path::new("/no/such/directory");
    let mut sandbox = Sandbox::default();
    sandbox.paths.push(PathRule::new(nowhere, Access::Write));
    for features in [&[][..], &[Feature::Landlock]] {
        let _without = deny(features);
        assert!(Confine::sandbox(&sandbox, false).is_ok());
    }
    sandbox.paths[0].key = Some("isolation.write");
    for features in [&[][..], &[Feature::Landlock]] {
        let _without = deny(features);
        let error = Confine::sandbox(&sandbox, false).unwrap_err();
        assert!(
            error.starts_with("isolation.write: cannot open /no/such/directory: "),
            "{error}"
        );
    }
}

#[test]
fn a_root_keeps_what_is_about_files_and_nothing_else() {
    let script = "exec grep -E '^Cap(Prm|Eff|Bnd|Inh)' /proc/self/status";
    let confine = Confine::sandbox(&Sandbox::default(), false).unwrap();
    let (status, _) = inside(confine, script);
    for line in status.lines() {
        let (set, bits) = line.split_once(":\t").unwrap();
        let bits = u64::from_str_radix(bits, 16).unwrap();
        // Whoever has no privileges cannot lower the bound, and gets none of it.
        // SAFETY: no arguments.
        if set != "CapBnd" || unsafe { libc::geteuid() } == 0 {
            assert_eq!(bits & !capabilities::OF_A_SANDBOX, 0, "{status}");
        }
    }
}

#[test]
fn the_report_follows_the_kernel() {
    // What each poverty takes, on a kernel that has the rest.
    let cases: [(&[Feature], &[&str]); 6] = [
        (&[], &[]),
        (&[Feature::LandlockScope], &[SCOPE]),
        (
            &[Feature::LandlockTruncate],
            &[SCOPE, "landlock_truncate", "landlock_ioctl"],
        ),
        (
            &[Feature::LandlockRefer],
            &[SCOPE, "landlock_truncate", "landlock_ioctl"],
        ),
        (&[Feature::Landlock], &[SCOPE, FILES]),
        (&[Feature::Seccomp], &[SECCOMP, NO_NETWORK]),
    ];
    let own = report(&Sandbox::default());
    if !own.missing.is_empty() {
        println!("skipped: {:?}", own.missing);
        return;
    }
    assert_eq!(
        own.applied,
        [
            NO_NEW_PRIVS,
            CAPABILITIES,
            SCOPE,
            FILES,
            SECCOMP,
            NO_NETWORK
        ]
    );
    for (features, lost) in cases {
        let _without = deny(features);
        let found = report(&Sandbox::default());
        assert_eq!(names(&found.missing), lost, "without {features:?}");
        let kept = own
            .applied
            .iter()
            .filter(|name| !lost.contains(&name.as_str()));
        assert_eq!(found.applied, kept.cloned().collect::<Vec<_>>());
    }
}

#[test]
fn the_report_follows_what_is_asked() {
    let open = Sandbox {
        network: true,
        ..Sandbox::default()
    };
    let asked = Sandbox {
        restrict_unix_sockets: true,
        ..Sandbox::default()
    };
    assert!(!report(&open).applied.contains(&NO_NETWORK.to_string()));
    let (found, unasked) = (report(&asked), report(&Sandbox::default()));
    let told = |list: &[String]| names(list).contains(&UNIX_SOCKETS);
    assert!(told(&found.applied) != told(&found.missing));
    assert!(!told(&unasked.applied) && !told(&unasked.missing));
}

#[test]
fn older_kernels_do_what_they_can() {
    if !has(FILES) {
        return;
    }
    let folder = Folder::new("old");
    for features in [
        Feature::LandlockScope,
        Feature::LandlockTruncate,
        Feature::LandlockRefer,
        Feature::Seccomp,
    ] {
        let _without = deny(&[features]);
        let attempt = |attempt| folder.attempt(&folder.sandbox(), attempt);
        assert_eq!(attempt("echo x > shut/new"), "denied", "{features:?}");
        assert_eq!(attempt("rm shut/file"), "denied", "{features:?}");
        assert_eq!(attempt("echo x > open/new"), "works", "{features:?}");
        // Before ABI 2 nothing is renamed between directories.
        let renamed = attempt("mv -T open/deep/file open/moved && cp open/moved open/deep/file");
        assert_eq!(renamed, "works", "{features:?}");
    }
    let _without = deny(&[Feature::Landlock]);
    let attempt = folder.attempt(&folder.sandbox(), "echo x > shut/new");
    assert_eq!(attempt, "works");
}

#[test]
fn what_is_required_and_fails_in_the_child_fails_the_start() {
    let mut confine = Confine::sandbox(&Sandbox::default(), true).unwrap();
    confine.filter = seccomp::Filter::default();
    if !confine.missing.is_empty() {
        println!("skipped: {:?}", confine.missing);
        return;
    }
    confine.domain = landlock::Domain::broken();
    let (read, write) = crate::sys::fd::pipe().unwrap();
    let stderr = crate::sys::fd::dup_high(std::os::fd::AsRawFd::as_raw_fd(&read)).unwrap();
    let mut command =
        crate::sys::spawn::Command::new(c"/bin/true".into(), c"/".into(), write, stderr);
    command.confine = confine;
    let error = crate::sys::spawn::spawn(command).unwrap_err();
    assert_eq!(error.step(), crate::sys::spawn::Step::Confine);
    assert!(error.message().contains("(landlock)"), "{error}");
}

//! Starting programs: what the child gets, what it does not get, and what is told when it cannot start.

use super::*;
use crate::sys::child::ExitStatus;
use crate::sys::fd;
use crate::sys::feature::testing::deny;
use crate::sys::feature::Feature;
use std::ffi::CString;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// The ways to make a process and to keep descriptors from it; the first is the best that there is.
const LADDERS: [&[Feature]; 4] = [
    &[],
    &[Feature::Clone],
    &[Feature::CloseRange],
    &[Feature::Clone, Feature::Pidfd, Feature::CloseRange],
];

fn cstring(text: impl AsRef<Path>) -> CString {
    use std::os::unix::ffi::OsStrExt as _;
    CString::new(text.as_ref().as_os_str().as_bytes()).unwrap()
}

/// A command with the read end of its output.
fn command(program: &str, args: &[&str]) -> (Command, OwnedFd) {
    let (read, write) = fd::pipe().unwrap();
    let stderr = fd::dup_high(write.as_raw_fd()).unwrap();
    let mut command = Command::new(cstring(program), c"/".into(), write, stderr);
    command.argv.extend(args.iter().map(cstring));
    (command, read)
}

fn shell(script: &str) -> (Command, OwnedFd) {
    command("/bin/sh", &["-c", script])
}

/// What a child prints until it ends.
fn output(command: Command, read: OwnedFd) -> (String, ExitStatus) {
    let child = spawn(command).unwrap();
    let mut text = String::new();
    std::io::Read::read_to_string(&mut fs::File::from(read), &mut text).unwrap();
    assert!(wait_readable(child.exit_fd(), None));
    (text, child.reap())
}

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("ptc-spawn-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).unwrap();
        Folder(path)
    }

    fn file(&self, name: &str, content: &[u8], mode: u32) -> String {
        let path = self.0.join(name);
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path.to_str().unwrap().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_program_gets_its_arguments_environment_and_directory_and_nothing_to_read() {
    for features in LADDERS {
        let _without = deny(features);
        let script = r#"echo "$0 $1 $A"; env | grep -v -e ^PWD= -e ^_= -e ^SHLVL= -e ^OLDPWD=; pwd; cat; exit 7"#;
        let (mut command, read) = command("/bin/sh", &["-c", script, "zero", "one"]);
        command.envp = vec![c"A=1".into(), c"PATH=/usr/bin:/bin".into()];
        command.cwd = c"/usr".into();
        let (text, status) = output(command, read);
        assert_eq!(text, "zero one 1\nA=1\nPATH=/usr/bin:/bin\n/usr\n");
        assert_eq!(status, ExitStatus::Exited(7));
    }
}

#[test]
fn a_child_has_a_session_and_a_group_of_its_own() {
    let (command, read) = shell("read -r line < /proc/self/stat; echo \"$line\"; echo $$");
    let child = spawn(command).unwrap();
    let pid = child.pid();
    let mut text = String::new();
    std::io::Read::read_to_string(&mut fs::File::from(read), &mut text).unwrap();
    // SAFETY: integers only; the child is not reaped yet.
    unsafe {
        assert_eq!(libc::getpgid(pid), pid);
        assert_eq!(libc::getsid(pid), pid);
    }
    assert!(text.ends_with(&format!("\n{pid}\n")), "{text}");
    child.reap();
}

#[test]
#[cfg(target_os = "linux")]
fn no_descriptor_of_the_host_is_inherited() {
    // Leaky ones, as hosts have them: without close-on-exec, low and high.
    let leaks: Vec<OwnedFd> = (0..20)
        .map(|at| {
            let (read, _write) = fd::pipe().unwrap();
            // SAFETY: integers only; the copy is owned at once.
            unsafe {
                let copy = libc::fcntl(read.as_raw_fd(), libc::F_DUPFD, 100 + at * 7);
                std::os::fd::FromRawFd::from_raw_fd(copy)
            }
        })
        .collect();
    for features in LADDERS {
        let _without = deny(features);
        let (command, read) = command("/bin/ls", &["/proc/self/fd"]);
        let (text, _) = output(command, read);
        // The fourth is the directory that ls reads.
        assert_eq!(text, "0\n1\n2\n3\n", "without {features:?}");
    }
    drop(leaks);
}

#[test]
#[cfg(target_os = "linux")]
fn signals_are_at_their_defaults_and_the_hosts_mask_stays_as_it_was() {
    // SAFETY: a signal set is plain data; the mask is put back by the thread's end. SIGURG is ignored by default, so
    // nobody misses it while the whole test process ignores it.
    let before = unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigaddset(&mut set, libc::SIGTERM);
        libc::sigaddset(&mut set, libc::SIGCHLD);
        libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut());
        libc::signal(libc::SIGURG, libc::SIG_IGN);
        mask()
    };
    for features in LADDERS {
        let _without = deny(features);
        let (command, read) = command("/bin/grep", &["^Sig[BI]", "/proc/self/status"]);
        let (text, _) = output(command, read);
        // The C library keeps 32 and 33 for itself and lets nobody set them.
        let of_programs = |mask: &str| u64::from_str_radix(mask, 16).unwrap() & !(0b11 << 31);
        let masks: Vec<u64> = text
            .lines()
            .map(|line| of_programs(line.split('\t').nth(1).unwrap()))
            .collect();
        assert_eq!(masks, [0, 0], "{text}");
        assert_eq!(mask(), before);
    }
}

#[cfg(target_os = "linux")]
fn mask() -> Vec<i32> {
    // SAFETY: with no new mask the call only writes the present one, which sigismember then reads.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::pthread_sigmask(libc::SIG_BLOCK, std::ptr::null(), &mut set);
        (1..32)
            .filter(|s| libc::sigismember(&set, *s) == 1)
            .collect()
    }
}

#[test]
fn limits_are_set_and_one_that_is_refused_is_named() {
    let nofile = libc::RLIMIT_NOFILE as i32;
    let (mut ordinary, read) = shell("ulimit -Sn; ulimit -c");
    ordinary.limits = vec![Limit::new(nofile, 77, 77)];
    assert_eq!(output(ordinary, read).0, "77\n0\n");
    let (mut refused, _read) = shell("echo never");
    refused.limits = vec![Limit::new(nofile, 78, 77)];
    let error = spawn(refused).unwrap_err();
    assert_eq!(error.step(), Step::Limits);
    assert!(
        error.message().contains("RLIMIT_NOFILE to 78 (hard 77)"),
        "{error}"
    );
}

#[test]
fn a_program_may_open_as_many_files_as_programs_expect() {
    let (command, read) = shell("ulimit -Sn");
    let soft: u64 = output(command, read).0.trim().parse().unwrap();
    assert!(soft <= 1024, "{soft}");
}

#[test]
#[cfg(target_os = "linux")]
fn a_child_is_likelier_to_be_chosen_when_memory_runs_out() {
    let score = |text: &str| text.trim().parse::<i32>().unwrap();
    let own = score(&fs::read_to_string("/proc/self/oom_score_adj").unwrap());
    let (command, read) = shell("cat /proc/self/oom_score_adj");
    assert_eq!(score(&output(command, read).0), (own + 500).min(1000));
}

#[test]
fn a_step_that_fails_is_named_and_leaves_no_process() {
    let steps = [
        Step::Session,
        Step::Leash,
        Step::Limits,
        Step::Directory,
        Step::Streams,
        Step::Confine,
        Step::Close,
        Step::Exec,
    ];
    for features in LADDERS {
        let _without = deny(features);
        for step in steps {
            let (mut command, read) = shell("echo never");
            command.fault = Some(Fault {
                step,
                what: FaultKind::Errno(libc::EIO),
            });
            let error = spawn(command).unwrap_err();
            assert_eq!(
                (error.step(), error.errno()),
                (step, libc::EIO),
                "{features:?}"
            );
            assert_nobody_holds(read);
        }
    }
}

#[test]
fn a_child_that_dies_on_the_way_is_an_error_that_names_the_step() {
    for features in LADDERS {
        let _without = deny(features);
        // Dying at exec itself cannot be told from a program that dies at once.
        for step in [Step::Session, Step::Directory, Step::Close] {
            let (mut command, read) = shell("echo never");
            command.fault = Some(Fault {
                step,
                what: FaultKind::Killed,
            });
            let error = spawn(command).unwrap_err();
            assert_eq!((error.step(), error.errno()), (step, 0), "{features:?}");
            assert!(error.message().contains("was killed before"), "{error}");
            assert_nobody_holds(read);
        }
    }
}

/// The end of file comes when the last process that had the pipe is gone.
fn assert_nobody_holds(read: OwnedFd) {
    let mut text = String::new();
    std::io::Read::read_to_string(&mut fs::File::from(read), &mut text).unwrap();
    assert_eq!(text, "");
}

#[test]
fn the_reason_why_a_program_cannot_be_executed_is_found_out() {
    let folder = Folder::new("exec");
    let link = folder.0.join("link");
    std::os::unix::fs::symlink("/no/target", &link).unwrap();
    let cases = [
        ("/no/such/program".to_string(), "there is no such file"),
        (link.to_str().unwrap().to_string(), "a link to /no/target"),
        (folder.0.to_str().unwrap().to_string(), "it is a directory"),
        (folder.file("plain", b"#!/bin/sh\n", 0o644), "chmod +x"),
        (folder.file("empty", b"", 0o755), "the file is empty"),
        (folder.file("text", b"hello\n", 0o755), "begins with #!"),
        (
            folder.file("lost", b"#!/no/interp -x\n", 0o755),
            "/no/interp",
        ),
        (folder.file("dos", b"#!/bin/sh\r\n", 0o755), "/bin/sh\r"),
    ];
    for (program, expected) in cases {
        let (command, _read) = command(&program, &[]);
        let error = spawn(command).unwrap_err();
        assert_eq!(error.step(), Step::Exec, "{error}");
        assert!(error.message().contains(expected), "{error}");
    }
}

#[test]
fn an_environment_that_is_too_big_names_the_variable_and_not_its_value() {
    let (mut command, _read) = shell("echo never");
    let value = "secret".repeat(40_000);
    command.envp = vec![CString::new(format!("HUGE={value}")).unwrap()];
    let error = spawn(command).unwrap_err();
    assert!(
        error.message().contains("variable HUGE takes 240005 bytes"),
        "{error}"
    );
    assert!(!error.message().contains("secret"));
}

#[test]
fn a_directory_that_cannot_be_entered_is_named() {
    let (mut command, _read) = shell("echo never");
    command.cwd = c"/no/such/directory".into();
    let error = spawn(command).unwrap_err();
    assert_eq!(error.step(), Step::Directory);
    assert!(error.message().contains("/no/such/directory"), "{error}");
}

#[test]
fn many_threads_start_children_at_once_and_each_gets_its_own() {
    std::thread::scope(|scope| {
        for thread in 0..8 {
            scope.spawn(move || {
                for round in 0..10 {
                    let (command, read) = shell(&format!("echo {thread} {round}"));
                    assert_eq!(output(command, read).0, format!("{thread} {round}\n"));
                }
            });
        }
    });
}

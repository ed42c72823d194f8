//! The C ABI, from C: `tests/c/*.c` is compiled against `include/ptc.h` and the shared library, and run theme by theme.
//!
//! To run one test by hand: `target/debug/deps/ptc-c-harness THEME TEST`.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

const SOURCES: [&str; 10] = [
    "harness.c",
    "support.c",
    "arguments.c",
    "calls.c",
    "events.c",
    "runs.c",
    "engines.c",
    "manners.c",
    "forked.c",
    "panics.c",
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Where cargo puts the libraries that it builds for the tests: next to this program.
fn libraries() -> PathBuf {
    let program = std::env::current_exe().expect("a test program has a path");
    program.parent().expect("it is in a folder").to_path_buf()
}

fn shared_library() -> PathBuf {
    libraries().join(if cfg!(target_os = "macos") {
        "libptc.dylib"
    } else {
        "libptc.so"
    })
}

/// The compiler `variable` names, or `default`, with the flags that all our C has to pass.
fn compiler(variable: &str, default: &str) -> Command {
    let mut command = Command::new(std::env::var(variable).unwrap_or_else(|_| default.into()));
    command
        .args(["-Wall", "-Wextra", "-Werror", "-pedantic"])
        .arg("-I")
        .arg(root().join("include"));
    command
}

fn succeed(command: &mut Command) -> Output {
    let output = command
        .output()
        .unwrap_or_else(|e| panic!("{command:?}: {e}"));
    assert!(
        output.status.success(),
        "{command:?}: {}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

/// Compiles the harness against what `link` adds.
fn compile(name: &str, link: impl FnOnce(&mut Command)) -> PathBuf {
    let program = libraries().join(name);
    let sources = SOURCES.map(|source| root().join("tests/c").join(source));
    let mut command = compiler("CC", "cc");
    command
        .args(["-std=c99", "-g", "-pthread"])
        .args(cfg!(ptc_portable).then_some("-DPTC_PORTABLE"))
        .arg("-o")
        .arg(&program)
        .args(sources);
    link(&mut command);
    succeed(&mut command);
    program
}

/// The harness, linked with the shared library that was built for these tests.
fn harness() -> &'static Path {
    static HARNESS: OnceLock<PathBuf> = OnceLock::new();
    HARNESS.get_or_init(|| {
        compile("ptc-c-harness", |command| {
            let mut rpath = std::ffi::OsString::from("-Wl,-rpath,");
            rpath.push(libraries());
            command.arg(shared_library()).arg(rpath);
        })
    })
}

/// The harness, linked with the static library and what the Rust runtime in it needs of the system.
#[test]
#[cfg(target_os = "linux")]
fn the_static_library_serves_as_well() {
    let program = compile("ptc-c-harness-static", |command| {
        command.arg(libraries().join("libptc.a")).args([
            "-lgcc_s",
            "-lutil",
            "-lrt",
            "-lpthread",
            "-lm",
            "-ldl",
            "-lc",
        ]);
    });
    run(&program, "calls");
}

/// Runs the tests of a theme.
fn run(program: &Path, theme: &str) {
    check(Command::new(program).arg(theme));
}

/// A library inside somebody else's process has no business on its stderr.
fn check(command: &mut Command) {
    // Cargo's own search path, which tests inherit, may lead to an older library.
    command.env_remove("LD_LIBRARY_PATH");
    let output = command.output().unwrap();
    let report = String::from_utf8_lossy(&output.stdout);
    println!("{report}");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.is_empty(), "the library wrote to stderr: {errors}");
    assert!(output.status.success(), "{}\n{report}", output.status);
}

#[test]
fn arguments() {
    run(harness(), "arguments");
}

#[test]
fn calls() {
    run(harness(), "calls");
}

#[test]
fn events() {
    run(harness(), "events");
}

#[test]
fn runs() {
    run(harness(), "runs");
}

#[test]
fn engines() {
    run(harness(), "engines");
}

#[test]
fn a_good_guest() {
    run(harness(), "manners");
}

/// Kernels before 6.15 do not remember how a process ended that the host has reaped, those before 5.3 have no descriptors
/// for processes.
#[test]
fn hosts_that_take_exit_statuses_away_on_older_kernels() {
    let hosts = [
        "a_host_that_ignores_sigchld",
        "a_host_that_wants_no_zombies",
        "a_host_that_reaps_every_child",
        "a_host_that_reaps_in_its_handler",
    ];
    for lacking in ["pidfd_info", "pidfd"] {
        for host in hosts {
            let mut command = Command::new(harness());
            check(
                command
                    .args(["manners", host])
                    .env("PTC_TEST_DENY", lacking),
            );
        }
    }
}

#[test]
fn a_forked_host() {
    run(harness(), "fork");
}

/// Only a debug build can be made to panic.
#[test]
#[cfg(debug_assertions)]
fn panics() {
    run(harness(), "panic");
}

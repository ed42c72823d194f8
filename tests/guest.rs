//! The engine in difficult hosts: each test is a scenario of `tests/c/guest.c`, in a process of its own.
#![cfg(target_os = "linux")]

#[path = "support/cc.rs"]
mod cc;

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

fn program() -> &'static PathBuf {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| cc::compile("guest", "tests/c/guest.c"))
}

fn survives(scenario: &str) {
    let temp = std::env::temp_dir().join(format!("guest-{scenario}-{}", std::process::id()));
    std::fs::create_dir(&temp).unwrap();
    let mut command = Command::new(program());
    cc::find_library(&mut command);
    let output = command.arg(scenario).arg(&temp).output();
    let _ = std::fs::remove_dir_all(&temp);
    let output = output.unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned()
        + &String::from_utf8_lossy(&output.stdout);
    if said.starts_with("skipped: ") {
        return println!("{said}");
    }
    // Whatever happens, the library itself never prints.
    assert!(
        output.status.success() && said.is_empty(),
        "{:?}: {said}",
        output.status
    );
}

macro_rules! scenarios {
    ($($name:ident)*) => {$(
        #[test]
        fn $name() {
            survives(stringify!($name));
        }
    )*};
}

scenarios! {
    plain
    sigchld_ignored
    sigchld_no_zombies
    reaper
    own_children
    sigpipe_default
    signals_blocked
    signal_storm
    leaky_descriptors
    descriptors_exhausted
    deleted_cwd
    long_tmpdir
    missing_tmpdir
    read_only_tmpdir
    full_tmpdir
    strange_umask
    closed_streams
    forked_host
    sixty_four_threads
    thousand_engines
}

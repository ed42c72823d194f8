//! Compiles C test programs against the shared library that `cargo test` has built.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Compiles `source`, a path from the root of the repository or an absolute one, to a program called `name`, and returns
/// its path; see [`find_library`].
pub fn compile(name: &str, source: impl AsRef<Path>) -> PathBuf {
    let library = library_folder();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = library.join(format!("c-{name}"));
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".into());
    let output = Command::new(&compiler)
        .args([
            "-std=c99",
            "-D_GNU_SOURCE",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-g",
            "-pthread",
            "-o",
        ])
        .arg(&program)
        .arg(root.join(source))
        .args(cfg!(ptc_portable).then_some("-DPTC_PORTABLE"))
        .arg(format!("-I{}", root.join("include").display()))
        .arg(format!("-L{}", library.display()))
        .arg("-lptc")
        .arg(format!("-Wl,-rpath,{}", library.display()))
        .output()
        .unwrap_or_else(|e| panic!("the C compiler {compiler} cannot be run: {e}"));
    let messages = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name}: {messages}");
    program
}

/// Makes a compiled program load the library of this test build. Cargo's own search path, which tests inherit, may lead to
/// an older one.
pub fn find_library(program: &mut Command) {
    program.env_remove("LD_LIBRARY_PATH");
}

/// Where cargo puts the libraries of a test build: beside the test programs themselves.
fn library_folder() -> PathBuf {
    let this = std::env::current_exe().unwrap();
    this.parent().unwrap().to_path_buf()
}

//! The header, the sources and the library say the same, and the header compiles wherever it may be included.
//!
//! That the header is word for word what the sources generate is checked with the feature `header` on (`.ci/run`); these
//! tests are cheap and always on.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Functions with the names of their parameters.
type Functions = BTreeMap<String, Vec<String>>;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn header() -> String {
    fs::read_to_string(root().join("include/ptc.h")).unwrap()
}

/// The text of every file in `folder` with that ending.
fn files(folder: &str, ending: &str) -> String {
    let mut paths: Vec<PathBuf> = fs::read_dir(root().join(folder))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == ending))
        .collect();
    paths.sort();
    assert!(!paths.is_empty(), "{folder} has no .{ending} file");
    paths
        .iter()
        .map(|path| fs::read_to_string(path).unwrap())
        .collect()
}

/// C without its comments.
fn without_comments(text: &str) -> String {
    let mut rest = text;
    let mut code = String::new();
    while let Some(at) = rest.find("/*") {
        code.push_str(&rest[..at]);
        let end = rest[at..]
            .find("*/")
            .expect("a comment that begins has an end");
        rest = &rest[at + end + 2..];
    }
    code + rest
}

/// The parameters between `(` and `)`, the last word of each.
fn c_parameters(list: &str) -> Vec<String> {
    let names = list.split(',').map(|parameter| {
        let name = parameter
            .rsplit(|c: char| !c.is_alphanumeric() && c != '_')
            .next();
        name.unwrap_or_default().to_string()
    });
    names.filter(|name| name != "void").collect()
}

fn header_functions() -> Functions {
    let code = without_comments(&header());
    let declarations = code.split(';').filter_map(|declaration| {
        let declaration = declaration.trim().trim_end_matches(')');
        let (head, list) = declaration.split_once('(')?;
        let name = head.rsplit([' ', '*', '\n']).next()?;
        // Types of callbacks have a parenthesis before their name.
        (name.starts_with("ptc_") && !head.contains("typedef"))
            .then(|| (name.to_string(), c_parameters(list)))
    });
    declarations.collect()
}

fn source_functions() -> Functions {
    let source = files("src/ffi", "rs");
    let mut functions = Functions::new();
    for part in source.split("#[no_mangle]").skip(1) {
        let signature = part.split(" fn ").nth(1).expect("a function follows");
        let (name, rest) = signature.split_once('(').unwrap();
        let list = rest.split_once(')').unwrap().0;
        let parameters = list.split(',').filter_map(|p| Some(p.split_once(':')?.0));
        let parameters = parameters.map(|p| p.trim().to_string()).collect();
        functions.insert(name.to_string(), parameters);
    }
    functions
}

#[test]
fn the_header_declares_the_functions_of_the_sources() {
    let declared = header_functions();
    assert!(declared.len() > 30, "{declared:?}");
    assert_eq!(declared, source_functions());
}

#[test]
fn every_function_is_used_by_the_tests_in_c() {
    let tests = files("tests/c", "c");
    for name in header_functions().keys() {
        assert!(
            tests.contains(&format!("{name}(")),
            "no test in tests/c calls {name}"
        );
    }
}

#[test]
fn every_function_says_what_holds_for_it() {
    let header = header();
    for name in header_functions().keys() {
        let declaration = header
            .find(&format!(" {name}("))
            .or(header.find(&format!("*{name}(")))
            .unwrap();
        let before = &header[..declaration];
        let comment = &before[before.rfind("/**").unwrap()..];
        let (comment, result) = comment.split_once("*/").unwrap();
        assert!(comment.contains("Threads: "), "{name}: {comment}");
        let can_fail = result.contains("struct ptc_error") && name != "ptc_error_free";
        assert_eq!(can_fail, comment.contains("Errors: "), "{name}: {comment}");
        // Rust's heading for what a reader of C finds under "Requires".
        assert!(!comment.contains("# Safety"), "{name}: {comment}");
    }
}

#[test]
#[cfg(unix)]
fn the_library_exports_the_functions_of_the_header_and_nothing_else() {
    let program = std::env::current_exe().unwrap();
    let folder = program.parent().unwrap();
    let (library, flags) = if cfg!(target_os = "macos") {
        ("libptc.dylib", ["-g", "-U"])
    } else {
        ("libptc.so", ["-D", "--defined-only"])
    };
    let output = succeed(Command::new("nm").args(flags).arg(folder.join(library)));
    let listed = String::from_utf8(output.stdout).unwrap();
    let mut exported: Vec<&str> = listed
        .lines()
        .filter_map(|line| line.split_whitespace().last())
        .map(|name| {
            if cfg!(target_os = "macos") {
                &name[1..]
            } else {
                name
            }
        })
        .collect();
    exported.sort_unstable();
    assert_eq!(exported, header_functions().keys().collect::<Vec<_>>());
}

fn succeed(command: &mut Command) -> Output {
    let output = command
        .output()
        .unwrap_or_else(|e| panic!("{command:?}: {e}"));
    assert!(
        output.status.success(),
        "{command:?}: {}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

/// A program of one file that includes the header twice and before everything else, and uses its names.
const INCLUDING: &str = r#"
#include "ptc.h"
#include "ptc.h"

static void dispatch(void *user_data, const ptc_call *call) { (void)user_data; (void)call; }

int main(void)
{
    struct ptc_host host = { sizeof(ptc_host), 0, dispatch, 0, 0, 0 };
    enum ptc_status status = PTC_STATUS_SUCCESS;
    enum ptc_code code = PTC_CODE_INVALID_ARGUMENT;
    enum ptc_event_kind kind = PTC_EVENT_STARTED;
    struct ptc_engine *engine = 0;
    ptc_engine *same = engine;
    return host.threads + (int)status + (int)code - (int)kind + (same != 0) + (int)PTC_ABI_VERSION - 1;
}
"#;

fn compiles(variable: &str, default: &str, language: &str, standards: &[&str]) {
    let folder = std::env::temp_dir().join(format!("ptc-header-{default}-{}", std::process::id()));
    fs::create_dir(&folder).unwrap();
    let source = folder.join("including.c");
    fs::write(&source, INCLUDING).unwrap();
    let results = standards.iter().map(|standard| {
        let compiler = std::env::var(variable).unwrap_or_else(|_| default.into());
        let mut command = Command::new(compiler);
        command
            .args(["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Werror"])
            .args(["-fsyntax-only", "-x", language])
            .arg(format!("-std={standard}"))
            .arg("-I")
            .arg(root().join("include"))
            .arg(&source);
        (standard, command.output())
    });
    let results: Vec<_> = results.collect();
    fs::remove_dir_all(&folder).unwrap();
    for (standard, result) in results {
        let output = result.unwrap_or_else(|e| panic!("{default} cannot be run: {e}"));
        let messages = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{standard}: {messages}");
    }
}

#[test]
fn the_header_is_c() {
    compiles("CC", "cc", "c", &["c99", "c11", "c17"]);
}

#[test]
fn the_header_is_cpp() {
    compiles("CXX", "c++", "c++", &["c++11", "c++17", "c++20"]);
}

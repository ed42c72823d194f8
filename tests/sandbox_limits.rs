//! The limits of a sandbox: what reaches one gets an error that says so, and the host gets nothing of it.

mod support;

use serde_json::{json, Value};
use support::*;

fn limited(limits: Value) -> String {
    let mut isolation = json!({"level": "sandbox"});
    let limits = limits.as_object().expect("members").clone();
    isolation.as_object_mut().unwrap().extend(limits);
    json!({"code_execution": {"isolation": isolation}}).to_string()
}

fn run_limited(limits: Value, code: &str) -> Ran {
    let dir = TempDir::new();
    let options = json!({ "cwd": dir.str() }).to_string();
    run(&limited(limits), &options, code)
}

/// Whether the sandbox of this system does `measure`.
fn has(limits: Value, measure: &str) -> bool {
    let ran = run_limited(limits, "pass");
    let applied = ran.json["isolation"]["applied"].as_array().unwrap().iter();
    let found = applied
        .clone()
        .any(|a| a.as_str().unwrap().starts_with(measure));
    if !found {
        println!("skipped: no {measure} here: {}", ran.json["isolation"]);
    }
    found
}

#[test]
fn a_script_that_wants_too_much_memory_gets_a_memory_error() {
    let limits = json!({"memory_mb": 128});
    if !has(limits.clone(), "memory_mb") {
        return;
    }
    let enough = run_limited(limits.clone(), "print(len(bytearray(32 << 20)))");
    assert_eq!(enough.printed(), "33554432\n");
    let ran = run_limited(limits.clone(), "x = bytearray(256 << 20)");
    assert_eq!((ran.status(), ran.error()), ("error", "MemoryError"));
    assert!(
        ran.hint().contains("isolation.memory_mb is 128"),
        "{}",
        ran.hint()
    );
    let caught = "try: x = [0] * (1 << 28)\nexcept MemoryError: print('caught')";
    assert_eq!(run_limited(limits, caught).printed(), "caught\n");
}

#[test]
fn native_code_that_runs_out_of_memory_is_explained() {
    let limits = json!({"memory_mb": 128});
    if !has(limits.clone(), "memory_mb") {
        return;
    }
    let code = "import ctypes\n\
                malloc = ctypes.CDLL(None).malloc\n\
                malloc.restype = ctypes.c_void_p\n\
                ctypes.memset(malloc(ctypes.c_size_t(1 << 30)), 1, 1 << 30)\n";
    let ran = run_limited(limits, code);
    assert_eq!(ran.json["signal"], 11);
    let expected =
        "SIGSEGV (signal 11): perhaps out of memory (code_execution.isolation.memory_mb is 128)";
    assert!(ran.error().contains(expected), "{}", ran.error());
}

#[test]
fn threads_work_with_little_memory() {
    if !has(json!({"memory_mb": 256}), "memory_mb") {
        return;
    }
    let code = "import threading\n\
                gate = threading.Barrier(9)\n\
                threads = [threading.Thread(target=gate.wait) for _ in range(8)]\n\
                for thread in threads: thread.start()\n\
                gate.wait()\nprint('met')\n";
    assert_eq!(
        run_limited(json!({"memory_mb": 256}), code).printed(),
        "met\n"
    );
    let many = "import threading\nstop = threading.Event()\n\
                for _ in range(1000): threading.Thread(target=stop.wait, daemon=True).start()\n";
    let ran = run_limited(json!({"memory_mb": 256}), many);
    // Where stacks are small they all fit.
    if ran.status() == "error" {
        assert!(ran.hint().contains("size of its stack"), "{}", ran.hint());
    }
}

#[test]
fn a_script_that_computes_too_long_is_ended_and_told_so() {
    let limits = json!({"cpu_seconds": 1});
    let ran = run_limited(limits.clone(), "print('A', flush=True)\nwhile True: pass");
    assert_eq!(
        (ran.status(), &ran.json["signal"]),
        ("error", &json!(libc::SIGXCPU))
    );
    assert!(ran.output().starts_with("A\n"));
    let expected = "it has used up its CPU time (code_execution.isolation.cpu_seconds is 1)";
    assert!(ran.error().contains(expected), "{}", ran.error());
    let stubborn = "import signal\nsignal.signal(signal.SIGXCPU, signal.SIG_IGN)\nwhile True: pass";
    let ran = run_limited(limits, stubborn);
    assert_eq!(ran.json["signal"], libc::SIGKILL);
    assert!(
        ran.error().contains("perhaps out of CPU time"),
        "{}",
        ran.error()
    );
    ran.assert_nothing_survived();
}

#[test]
fn files_grow_to_their_limit_and_output_does_not_count() {
    let limits = json!({"file_mb": 1});
    let ran = run_limited(limits.clone(), "print('x' * (2 << 20))");
    assert_eq!(ran.status(), "success");
    assert_eq!(ran.json["stdout_bytes"], (2 << 20) + 1);
    let ran = run_limited(limits.clone(), "open('big', 'wb').write(bytes(2 << 20))");
    assert!(ran.error().contains("File too large"), "{}", ran.error());
    assert!(
        ran.hint().contains("isolation.file_mb is 1"),
        "{}",
        ran.hint()
    );
    let code = "import signal\nsignal.signal(signal.SIGXFSZ, signal.SIG_DFL)\nopen('big', 'wb').write(bytes(2 << 20))";
    let ran = run_limited(limits, code);
    assert_eq!(ran.json["signal"], libc::SIGXFSZ);
    assert!(
        ran.error().contains("isolation.file_mb is 1"),
        "{}",
        ran.error()
    );
}

#[test]
fn open_files_are_counted() {
    let limits = json!({"open_files": 32});
    let ran = run_limited(
        limits.clone(),
        "files = [open('/dev/null') for _ in range(100)]",
    );
    assert!(
        ran.error().contains("Too many open files"),
        "{}",
        ran.error()
    );
    assert!(
        ran.hint().contains("isolation.open_files is 32"),
        "{}",
        ran.hint()
    );
    let code = "import resource\nprint(resource.getrlimit(resource.RLIMIT_NOFILE))";
    assert_eq!(run_limited(limits, code).printed(), "(32, 32)\n");
    // More than the host may have is not to be had, and no reason to fail.
    let ran = run_limited(json!({"open_files": 1 << 20}), "print(1)");
    assert_eq!(ran.printed(), "1\n");
}

#[test]
fn processes_are_counted_or_it_is_said_that_they_are_not() {
    let code =
        "import os, resource\nprint(os.geteuid(), resource.getrlimit(resource.RLIMIT_NPROC)[0])";
    let ran = run_limited(json!({"processes": 100_000}), code);
    let printed: Vec<i64> = ran
        .printed()
        .split_whitespace()
        .map(|number| number.parse().unwrap())
        .collect();
    assert!((1..=100_000).contains(&printed[1]));
    let told = ran.json["isolation"].to_string();
    let expected = match printed[0] {
        0 => "processes: the system spares root of this limit",
        _ => "processes: approximate",
    };
    assert!(told.contains(expected), "{told}");
}

#[test]
fn limits_cannot_be_lifted_and_there_are_no_core_dumps() {
    let code = "import os, resource\n\
                print(resource.getrlimit(resource.RLIMIT_CORE))\n\
                for name in ['RLIMIT_DATA', 'RLIMIT_CPU', 'RLIMIT_FSIZE', 'RLIMIT_NOFILE', 'RLIMIT_CORE']:\n    \
                limit = getattr(resource, name)\n    \
                soft, hard = resource.getrlimit(limit)\n    \
                try: resource.setrlimit(limit, (hard + 1, hard + 1))\n    \
                except (ValueError, PermissionError): print(name)\n";
    let limits = json!({"memory_mb": 256, "cpu_seconds": 60, "file_mb": 1, "open_files": 64});
    let ran = run_limited(limits, code);
    // Only Linux lets root give its privileges away.
    if cfg!(all(target_os = "linux", not(ptc_portable))) {
        let expected =
            "(0, 0)\nRLIMIT_DATA\nRLIMIT_CPU\nRLIMIT_FSIZE\nRLIMIT_NOFILE\nRLIMIT_CORE\n";
        assert_eq!(ran.printed(), expected);
    }
}

#[test]
fn without_limits_there_are_none() {
    let code = "import resource\n\
                print([resource.getrlimit(l) for l in (resource.RLIMIT_DATA, resource.RLIMIT_CPU, resource.RLIMIT_FSIZE)])\n";
    let none = run(r#"{"code_execution": {"isolation": "none"}}"#, "", code);
    assert_eq!(run_limited(json!({}), code).printed(), none.printed());
}

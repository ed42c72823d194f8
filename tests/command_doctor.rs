//! `ptc doctor`: every finding with what to do about it, on machines that lack one thing or another.

#[path = "support/cli.rs"]
mod cli;

use cli::{json, ptc, text, Folder};
use serde_json::Value;
use std::process::Command;

/// What is found with these arguments and variables.
fn examined(args: &[&str], environment: &[(&str, &str)]) -> Value {
    let output = ptc(&[&["doctor", "--json"], args].concat())
        .env_remove("VIRTUAL_ENV")
        .env_remove("CONDA_PREFIX")
        .envs(environment.iter().copied())
        .output()
        .unwrap();
    assert_eq!(text(&output.stderr), "");
    let report = json(&output);
    let status = if report["works"] == true { 0 } else { 1 };
    assert_eq!(output.status.code(), Some(status), "{report}");
    for finding in report["findings"].as_array().unwrap() {
        for key in ["section", "name", "state", "text"] {
            assert!(!finding[key].as_str().unwrap().is_empty(), "{finding}");
        }
        match finding["state"].as_str().unwrap() {
            "ok" => {}
            "warn" | "problem" => assert!(finding["advice"].is_string(), "{finding}"),
            other => panic!("{other}"),
        }
    }
    report
}

fn findings<'a>(report: &'a Value, name: &str) -> Vec<&'a Value> {
    let findings = report["findings"].as_array().unwrap();
    findings.iter().filter(|f| f["name"] == name).collect()
}

/// The one finding of this name.
fn finding<'a>(report: &'a Value, name: &str) -> &'a Value {
    let found = findings(report, name);
    assert_eq!(found.len(), 1, "{name}: {report:#}");
    found[0]
}

fn real_python() -> String {
    let code = "import os, sys; print(os.path.realpath(sys.executable))";
    let output = Command::new("python3").args(["-c", code]).output().unwrap();
    text(&output.stdout).trim().to_string()
}

#[test]
fn a_machine_that_runs_scripts_is_described() {
    let report = examined(&[], &[]);
    assert_eq!(report["works"], true);
    for mode in ["project", "strict"] {
        let python = finding(&report, mode);
        assert_eq!(
            (&python["section"], &python["state"]),
            (&"python".into(), &"ok".into())
        );
        assert_eq!(python["value"]["origin"], "PATH");
        assert!(python["value"]["executable"]
            .as_str()
            .unwrap()
            .starts_with('/'));
    }
    for times in ["bare start", "run"] {
        assert!(finding(&report, times)["value"].as_f64().unwrap() > 0.0);
    }
    let none = finding(&report, "none");
    assert_eq!(
        (&none["state"], &none["value"]["missing"]),
        (&"ok".into(), &Value::Array(vec![]))
    );
    finding(&report, "guard (set)");
    finding(&report, "sandbox");
    let place = finding(&report, "TMPDIR")["value"].as_u64().unwrap();
    assert!(place <= 107);
    finding(&report, "ripgrep");
    finding(&report, "system");
}

#[test]
fn the_same_is_told_to_people() {
    let output = ptc(&["doctor"]).output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(text(&output.stderr), "");
    let told = text(&output.stdout);
    for section in ["kernel", "python", "isolation", "place"] {
        assert!(
            told.contains(&format!("\n{section}\n")) || told.starts_with(section),
            "{told}"
        );
    }
    let last = told.lines().last().unwrap();
    assert!(
        last.starts_with("scripts can run here: 0 problems, "),
        "{told}"
    );
    assert!(!told.contains('\x1b'));
}

#[test]
fn without_an_interpreter_scripts_cannot_run() {
    let report = examined(&["--python", "/no/such/python"], &[]);
    assert_eq!(report["works"], false);
    for mode in ["project", "strict"] {
        assert_eq!(finding(&report, mode)["state"], "problem");
    }
    let passed_over = findings(&report, "passed over");
    assert!(passed_over[0]["text"]
        .as_str()
        .unwrap()
        .contains("/no/such/python"));
    let output = ptc(&["doctor", "--python", "/no/such/python"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stdout).contains("scripts cannot run here"));
}

#[test]
fn an_active_environment_is_taken_or_not_with_the_reason() {
    let folder = Folder::new();
    let home = folder.0.to_str().unwrap();
    let report = examined(&[], &[("VIRTUAL_ENV", home)]);
    assert_eq!(finding(&report, "VIRTUAL_ENV")["state"], "warn");
    assert_eq!(finding(&report, "project")["value"]["origin"], "PATH");

    std::fs::create_dir(folder.path("bin")).unwrap();
    std::os::unix::fs::symlink("/bin/false", folder.path("bin/python")).unwrap();
    let report = examined(&[], &[("VIRTUAL_ENV", home)]);
    let [passed_over] = findings(&report, "passed over")[..] else {
        panic!("{report:#}");
    };
    assert!(passed_over["text"]
        .as_str()
        .unwrap()
        .contains("VIRTUAL_ENV"));
    assert_eq!(finding(&report, "project")["value"]["origin"], "PATH");

    std::fs::remove_file(folder.path("bin/python")).unwrap();
    std::os::unix::fs::symlink(real_python(), folder.path("bin/python")).unwrap();
    let report = examined(&[], &[("VIRTUAL_ENV", home)]);
    let project = finding(&report, "project");
    assert_eq!(project["value"]["origin"], "VIRTUAL_ENV");
    assert_eq!(project["value"]["requested"], folder.path("bin/python"));
    assert_eq!(finding(&report, "strict")["value"]["origin"], "PATH");
}

#[test]
fn what_is_missing_around_the_process_is_a_warning() {
    let folder = Folder::new();
    let missing = folder.path("missing");
    let python = real_python();
    let environment = [("TMPDIR", missing.as_str()), ("PATH", "/no/such")];
    let report = examined(&["--python", &python], &environment);
    assert_eq!(report["works"], true);
    let [passed_over, taken] = findings(&report, "TMPDIR")[..] else {
        panic!("{report:#}");
    };
    assert!(passed_over["text"].as_str().unwrap().contains(&missing));
    assert_eq!(
        (&passed_over["state"], &taken["state"]),
        (&"warn".into(), &"ok".into())
    );
    let ripgrep = finding(&report, "ripgrep");
    assert_eq!(
        (&ripgrep["state"], &ripgrep["value"]),
        (&"warn".into(), &false.into())
    );
}

#[cfg(all(target_os = "linux", not(ptc_portable)))]
#[test]
fn what_the_kernel_lacks_is_a_warning_with_what_stands_in_for_it() {
    let report = examined(&[], &[("PTC_TEST_DENY", "clone,pidfd,landlock,proc")]);
    assert_eq!(report["works"], true);
    for name in ["clone", "pidfd", "landlock", "proc"] {
        assert_eq!(finding(&report, name)["state"], "warn", "{name}");
    }
    let guard = finding(&report, "guard (set)");
    assert_eq!(guard["state"], "warn");
    assert!(guard["text"].as_str().unwrap().contains("landlock"));
}

#[test]
fn bad_usage_is_explained() {
    let folder = Folder::new();
    let wrong = folder.write("wrong.json", r#"{"code_execution": {"timeout": "5m"}}"#);
    for (args, expected) in [
        (&["script.py"][..], "options only"),
        (&["--config", &wrong], "code_execution.timeout"),
        (&["--jsn"], "did you mean \"--json\"?"),
    ] {
        let output = ptc(&[&["doctor"], args].concat()).output().unwrap();
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {message}");
        assert!(message.contains(expected), "{args:?}: {message}");
        assert_eq!(text(&output.stdout), "");
    }
}

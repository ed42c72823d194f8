//! Finding and probing interpreters.

use super::interpreter::Found;
use super::*;
use crate::error::Code;
use std::os::unix::fs::PermissionsExt as _;

fn env(pairs: &[(&str, &Path)]) -> Environ {
    Environ::from_pairs(pairs.iter().map(|(n, v)| (n.into(), v.as_os_str().into())))
}

fn program(folder: &Folder, name: &str, text: &str) -> PathBuf {
    let path = folder.write(name, text);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

/// A program that is `python`, and notes each of its starts in `<itself>.starts`.
fn wrapper(folder: &Folder, name: &str, python: &Interpreter) -> PathBuf {
    let real = python.executable.display();
    program(
        folder,
        name,
        &format!("#!/bin/sh\necho start >> \"$0.starts\"\nexec '{real}' \"$@\"\n"),
    )
}

fn starts(wrapper: &Path) -> usize {
    fs::read_to_string(format!("{}.starts", wrapper.display()))
        .map_or(0, |text| text.lines().count())
}

#[test]
fn every_installed_interpreter_is_accepted_or_refused_for_its_age() {
    for path in installed() {
        let search =
            interpreters_with("x = 1\n".into()).search(false, path.to_str(), &Environ::capture());
        match search.chosen {
            Some(Found {
                interpreter: found, ..
            }) => {
                assert!(found.version >= interpreter::OLDEST && found.executable.is_absolute());
                assert!(found.boot_pyc.len() > 100 && found.module_pyc.len() > 16);
                assert!(found.cache_tag.contains('-') || found.implementation != "cpython");
            }
            None => {
                let reason = &search.refused[0].reason;
                assert!(
                    reason.contains("and 3.8 or newer is needed"),
                    "{}: {reason}",
                    path.display()
                );
            }
        }
    }
}

#[test]
fn environments_come_first_in_project_mode_and_never_in_strict_mode() {
    let python = &pythons()[0];
    let (venv, conda, path) = (Folder::new(), Folder::new(), Folder::new());
    let in_venv = wrapper(&venv, "bin/python", python);
    let in_conda = wrapper(&conda, "bin/python", python);
    let on_path = wrapper(&path, "python3", python);
    let interpreters = interpreters_with(String::new());
    let all = env(&[
        ("VIRTUAL_ENV", &venv.0),
        ("CONDA_PREFIX", &conda.0),
        ("PATH", &path.0),
    ]);
    let found = |project, environ: &Environ| {
        interpreters
            .find(project, None, environ)
            .unwrap()
            .requested
            .clone()
    };
    assert_eq!(found(true, &all), in_venv);
    assert_eq!(found(false, &all), on_path);
    fs::remove_file(&in_venv).unwrap();
    assert_eq!(found(true, &all), in_conda);
    assert_eq!(found(true, &env(&[("PATH", &path.0)])), on_path);
    let search = interpreters.search(true, in_conda.to_str(), &env(&[("PATH", &path.0)]));
    let set = search.chosen.unwrap();
    assert_eq!(
        (set.interpreter.requested.as_path(), set.origin),
        (in_conda.as_path(), "the setting \"python\"")
    );
}

#[test]
fn the_executable_behind_a_wrapper_is_what_runs() {
    let folder = Folder::new();
    let python = &pythons()[0];
    let wrapper = wrapper(&folder, "python3", python);
    let found = interpreters_with(String::new())
        .find(false, None, &env(&[("PATH", &folder.0)]))
        .unwrap();
    assert_eq!(found.requested, wrapper);
    assert_ne!(found.executable, wrapper);
    assert!(found.executable.is_file());
}

#[test]
fn an_interpreter_is_probed_once_until_its_file_changes_or_it_is_forgotten() {
    let folder = Folder::new();
    let path = wrapper(&folder, "python3", &pythons()[0]);
    let environ = env(&[("PATH", &folder.0)]);
    let interpreters = interpreters_with(String::new());
    for _ in 0..3 {
        interpreters.find(false, None, &environ).unwrap();
    }
    assert_eq!(starts(&path), 1);
    let found = interpreters.find(false, None, &environ).unwrap();
    interpreters.forget(&found);
    interpreters.find(false, None, &environ).unwrap();
    assert_eq!(starts(&path), 2);
}

#[test]
fn a_failure_is_remembered_until_the_file_changes() {
    let folder = Folder::new();
    let broken = program(
        &folder,
        "python3",
        "#!/bin/sh\necho start >> \"$0.starts\"\necho 'lib is missing' >&2\nexit 3\n",
    );
    let environ = env(&[("PATH", &folder.0)]);
    let interpreters = interpreters_with(String::new());
    for _ in 0..2 {
        let error = interpreters.find(false, None, &environ).unwrap_err();
        assert_eq!(error.code(), Code::Interpreter);
        assert!(error.message().contains("lib is missing"), "{error}");
        assert!(
            error.message().contains(broken.to_str().unwrap()),
            "{error}"
        );
        assert!(error.message().contains("set \"python\""), "{error}");
    }
    assert_eq!(starts(&broken), 1);
    wrapper(&folder, "python3", &pythons()[0]);
    interpreters.find(false, None, &environ).unwrap();
}

#[test]
fn what_is_no_interpreter_is_passed_over_with_a_reason() {
    let (bad, mute, good) = (Folder::new(), Folder::new(), Folder::new());
    program(&bad, "python3", "#!/bin/sh\necho hello\n");
    program(&mute, "python3", "no program at all");
    let works = wrapper(&good, "python3", &pythons()[0]);
    let path = std::env::join_paths([&bad.0, &mute.0, &good.0]).unwrap();
    let venv = Folder::new();
    fs::create_dir_all(venv.0.join("bin/python")).unwrap();
    let environ = env(&[("PATH", Path::new(&path)), ("VIRTUAL_ENV", &venv.0)]);
    let search = interpreters_with(String::new()).search(true, None, &environ);
    assert_eq!(search.chosen.unwrap().interpreter.requested, works);
    let reasons: Vec<&str> = search.refused.iter().map(|r| r.reason.as_str()).collect();
    assert!(reasons[0].contains("is a directory"), "{reasons:?}");
    assert!(
        reasons[1].contains("does not answer like a Python"),
        "{reasons:?}"
    );
    assert!(reasons[2].contains("does not start"), "{reasons:?}");
}

#[test]
fn an_interpreter_that_hangs_is_given_up() {
    let folder = Folder::new();
    program(&folder, "python3", "#!/bin/sh\nwhile :; do :; done\n");
    let interpreters = Interpreters::with_deadline(Duration::from_millis(50));
    let error = interpreters
        .find(false, None, &env(&[("PATH", &folder.0)]))
        .unwrap_err();
    assert!(
        error.message().contains("did not answer in time"),
        "{error}"
    );
}

#[test]
fn what_cannot_be_found_is_named() {
    let nowhere = interpreters_with(String::new());
    let error = nowhere
        .find(true, None, &env(&[("PATH", Path::new("/nonexistent"))]))
        .unwrap_err();
    assert!(
        error.message().contains("there is no python3 on PATH"),
        "{error}"
    );
    let error = nowhere
        .find(true, Some("/no/such/python"), &Environ::default())
        .unwrap_err();
    assert!(
        error
            .message()
            .contains("/no/such/python (the setting \"python\"): does not exist"),
        "{error}"
    );
    let error = nowhere
        .find(true, Some("pythonx"), &Environ::default())
        .unwrap_err();
    assert!(error.message().contains("pythonx"), "{error}");
}

#[test]
fn a_module_that_cannot_be_compiled_is_no_interpreters_success() {
    let error = interpreters_with("def broken(\n".into())
        .find(false, pythons()[0].executable.to_str(), &Environ::capture())
        .unwrap_err();
    assert!(error.message().contains("SyntaxError"), "{error}");
}

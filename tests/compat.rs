//! Ordinary scripts (`tests/compat/`) give the same output at every level of isolation that is meant to let them work.

#![cfg(unix)]

mod support;

use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use support::{echo, engine_with, execute, Ran, TempDir};

fn scripts() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/compat");
    let mut scripts: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    scripts.sort();
    scripts
}

fn run_at(level: &str, code: &str) -> Ran {
    let dir = TempDir::new();
    let config = json!({
        "code_execution": {"isolation": level, "max_tool_calls": 1000},
        "tools": [{"name": "echo", "input_schema": {"type": "object", "properties": {"value": {}}, "required": ["value"]}}],
    });
    let options = json!({"cwd": dir.path(), "timeout": 200});
    execute(
        &engine_with(&config.to_string(), echo),
        &options.to_string(),
        code,
    )
}

/// What is wrong with the script at `path`, if anything is.
fn judge(path: &Path) -> Result<(), String> {
    let code = std::fs::read_to_string(path).unwrap();
    let name = path.file_stem().unwrap().to_string_lossy();
    let levels = code
        .lines()
        .next()
        .and_then(|line| line.strip_prefix("# levels: "));
    let mut levels = levels
        .ok_or_else(|| format!("{name}: no levels"))?
        .split(' ');
    assert_eq!(levels.next(), Some("none"));
    let free = run_at("none", &code);
    if free.error().starts_with("skipped: ") {
        println!("{name}: {}", free.error());
        return Ok(());
    }
    if free.status() != "success" || free.output().is_empty() {
        return Err(format!("{name} at none: {}", free.json));
    }
    for level in levels {
        let ran = run_at(level, &code);
        if ran.status() != "success" || ran.output() != free.output() {
            return Err(format!(
                "{name} at {level}: {}\nat none: {}",
                ran.json,
                free.output()
            ));
        }
        ran.assert_nothing_survived();
    }
    Ok(())
}

#[test]
fn ordinary_scripts_work_at_every_level_that_lets_them() {
    let scripts = scripts();
    assert!(scripts.len() >= 20);
    let queue = Mutex::new(scripts.iter());
    let faults = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| loop {
                let Some(path) = queue.lock().unwrap().next() else {
                    return;
                };
                if let Err(fault) = judge(path) {
                    faults.lock().unwrap().push(fault);
                }
            });
        }
    });
    let faults = faults.into_inner().unwrap();
    assert!(faults.is_empty(), "{}", faults.join("\n\n"));
}

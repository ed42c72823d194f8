//! Scripts as models write them, from the command line alone: files and commands by the built-in tools, the web by two
//! commands.

mod support;

use serde_json::Value;
use std::process::Command;
use support::TempDir;

/// The canned web: what is found for any query, and the text of each page.
const WEB: &str = r#"
import json, sys
pages = {
    "https://a.example/1": ("One", "The first page, with an é."),
    "https://a.example/2": ("Two", "The second page."),
}
asked = json.load(sys.stdin)
if sys.argv[1] == "search":
    found = [{"url": url, "title": title, "description": ""} for url, (title, _) in pages.items()]
    print(json.dumps({"data": {"web": found[:asked.get("limit", 5)]}}))
else:
    print(json.dumps({"results": [{"url": u, "title": pages[u][0], "content": pages[u][1], "error": None} for u in asked["urls"]]}))
"#;

fn run(dir: &TempDir, script: &str) -> String {
    let script = format!("{}/tests/scripts/{script}.py", env!("CARGO_MANIFEST_DIR"));
    dir.write("web.py", WEB);
    let mut command = Command::new(env!("CARGO_BIN_EXE_ptc"));
    command.args([
        "run",
        &script,
        "--builtin",
        "all",
        "--max-tool-calls",
        "100",
    ]);
    command.args(["--tool", "web_search=python3 web.py search"]);
    command.args(["--tool", "web_extract=python3 web.py extract"]);
    let output = command.current_dir(dir.path()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && said.is_empty(),
        "{script}: {said}"
    );
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn search_and_summarise() {
    let printed = run(&TempDir::new(), "1_search_and_summarise");
    assert_eq!(
        printed,
        "One: 26 characters, starts 'The first page, with an é.'\nTwo: 16 characters, starts 'The second page.'\npages: 2\n"
    );
}

#[test]
fn config_scan() {
    let dir = TempDir::new();
    dir.write("app.yaml", "database: one\n");
    dir.write("deep/er/other.yaml", "# database database\n");
    dir.write("notes.txt", "database\n");
    let report: Value = serde_json::from_str(&run(&dir, "2_config_scan")).unwrap();
    let rows: Vec<String> = report
        .as_array()
        .unwrap()
        .iter()
        .map(|row| format!("{} {}", row["file"], row["mentions"]))
        .collect();
    assert_eq!(rows, ["\"app.yaml\" 1", "\"deep/er/other.yaml\" 2"]);
}

#[test]
fn research() {
    let found: Value = serde_json::from_str(&run(&TempDir::new(), "3_research")).unwrap();
    assert_eq!(found["failed"], 0, "{found:#}");
    assert!(found["pages"].as_array().unwrap().len() >= 2, "{found:#}");
}

#[test]
fn bulk_refactor() {
    let dir = TempDir::new();
    dir.write("src/a.py", "legacy_call(1)\nlegacy_call(2)\n");
    dir.write("src/b/c.py", "x = legacy_call(3)\r\n");
    dir.write("src/d.py", "# legacy_call is only mentioned\n");
    assert_eq!(run(&dir, "4_bulk_refactor"), "changed 2 of 3 files\n");
    assert_eq!(dir.read("src/a.py"), "modern_call(1)\nmodern_call(2)\n");
    assert_eq!(dir.read("src/b/c.py"), "x = modern_call(3)\r\n");
}

#[test]
fn build_and_test() {
    let dir = TempDir::new();
    dir.write(
        "project/test_it.py",
        "import unittest\nclass T(unittest.TestCase):\n    def test_a(self): pass\n    def test_b(self): self.fail()\n",
    );
    let seen: Value = serde_json::from_str(&run(&dir, "5_build_and_test")).unwrap();
    assert_eq!(
        (&seen["ok"], &seen["failed"], &seen["exit_code"]),
        (&1.into(), &1.into(), &1.into()),
        "{seen:#}"
    );
}

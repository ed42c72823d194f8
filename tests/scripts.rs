//! Scripts as models write them, run unchanged on a host whose tools really read, search, change and run things.

mod support;
#[path = "support/tools.rs"]
mod tools;

use ptc::{Engine, Host};
use serde_json::{json, Value};
use std::sync::Arc;
use support::*;
use tools::{Page, Tools};

const SEARCH_AND_SUMMARISE: &str = include_str!("scripts/1_search_and_summarise.py");
const CONFIG_SCAN: &str = include_str!("scripts/2_config_scan.py");
const RESEARCH: &str = include_str!("scripts/3_research.py");
const BULK_REFACTOR: &str = include_str!("scripts/4_bulk_refactor.py");
const BUILD_AND_TEST: &str = include_str!("scripts/5_build_and_test.py");

/// Who serves files and commands. The web is the host's in any case.
#[derive(Clone, Copy)]
enum Server {
    /// The host, on so many threads of the engine; none: on its own.
    Host(usize),
    /// The engine's built-in tools.
    Engine,
}

/// Every way in which a tool can be asked, and both modes.
const WAYS: [(Server, &str); 5] = [
    (Server::Host(0), "project"),
    (Server::Host(0), "strict"),
    (Server::Host(4), "project"),
    (Server::Engine, "project"),
    (Server::Engine, "strict"),
];

fn host_of(dir: &TempDir, web: Vec<Page>, server: Server) -> Engine {
    let (tools, threads) = match server {
        Server::Host(threads) => (format!(r#""tools":{}"#, Tools::NAMES), threads),
        Server::Engine => {
            let tools = r#""tools":["web_search","web_extract"],"builtin_tools":"all""#;
            (tools.to_string(), 0)
        }
    };
    let config = format!(r#"{{{tools},"terminal":{{"cwd":{}}}}}"#, quoted(dir.path()));
    let tools = Arc::new(Tools {
        root: dir.path().to_path_buf(),
        web,
    });
    let host = Host::new().threads(threads).dispatch(move |call| {
        let args = serde_json::from_str(call.args()).unwrap();
        match tools.serve(call.tool(), &args) {
            Ok(value) => call.reply(&value.to_string()).unwrap(),
            Err(message) => call.fail(&message).unwrap(),
        }
    });
    Engine::new(&config, host).unwrap()
}

fn in_mode(engine: &Engine, mode: &str, code: &str) -> Ran {
    execute(engine, &json!({ "mode": mode }).to_string(), code)
}

// ---- 1: search and summarise ----

const PRACTICE: &[&str] = &["structured concurrency in practice"];

fn articles() -> Vec<Page> {
    let page = |url, title, content| Page {
        url,
        title,
        found_by: PRACTICE,
        content: Ok(content),
    };
    vec![
        page(
            "https://a.example/1",
            "Nurseries",
            "Notes on structured concurrency, or: go statement considered harmful.",
        ),
        page(
            "https://a.example/2",
            "Über Aufgaben",
            "Übersicht: Aufgaben 'und' \"Gruppen\" 🎉 enden gemeinsam, immer.",
        ),
        page(
            "https://a.example/3",
            "Lines",
            "# Heading\n\n- one\n- two\n\tand a tab\n",
        ),
        page("https://a.example/4", "Short", "Tiny."),
        page(
            "https://a.example/5",
            "The fifth is over the limit",
            "Never shown.",
        ),
    ]
}

#[test]
fn search_and_summarise() {
    let dir = TempDir::new();
    for (server, mode) in WAYS {
        let ran = in_mode(
            &host_of(&dir, articles(), server),
            mode,
            SEARCH_AND_SUMMARISE,
        );
        assert_eq!(
            ran.printed(),
            "Nurseries: 69 characters, starts 'Notes on structured concurrency, or: go '\n\
             Über Aufgaben: 61 characters, starts 'Übersicht: Aufgaben \\'und\\' \"Gruppen\" 🎉 en'\n\
             Lines: 34 characters, starts '# Heading\\n\\n- one\\n- two\\n\\tand a tab\\n'\n\
             Short: 5 characters, starts 'Tiny.'\n\
             pages: 4\n"
        );
        assert_eq!(
            ran.of_calls("tool"),
            [
                "web_search",
                "web_extract",
                "web_extract",
                "web_extract",
                "web_extract"
            ]
        );
        assert_eq!(ran.json["tool_calls_made"], 5);
    }
}

// ---- 2: configuration scan ----

fn report(rows: &[(&str, u32)]) -> Value {
    rows.iter()
        .map(|(file, mentions)| json!({"file": file, "mentions": mentions}))
        .collect()
}

#[test]
fn config_scan() {
    let dir = TempDir::new();
    dir.write(
        "app.yaml",
        "name: app\ndatabase:\n  url: postgres://host/database\n",
    );
    dir.write("deploy/prod.yaml", "# the database of record\nport: 1\n");
    dir.write("deploy/deeper/é.yaml", "database: [database, database]\n");
    dir.write("other.yaml", "cache: redis\n");
    dir.write("notes.txt", "database\n");
    dir.write("app.yml", "database: no\n");
    for (server, mode) in WAYS {
        let ran = in_mode(&host_of(&dir, Vec::new(), server), mode, CONFIG_SCAN);
        // One entry for each line that matches, as the script has it.
        let expected = report(&[
            ("app.yaml", 2),
            ("app.yaml", 2),
            ("deploy/deeper/é.yaml", 3),
            ("deploy/prod.yaml", 1),
        ]);
        assert_eq!(ran.printed_json(), expected);
        assert!(
            ran.output()
                .starts_with("[\n  {\n    \"file\": \"app.yaml\",\n    \"mentions\": 2\n  },\n"),
            "{}",
            ran.output()
        );
        assert_eq!(ran.json["tool_calls_made"], 5);
    }
}

#[test]
fn config_scan_with_any_number_of_matches() {
    for count in [0, 4, 5, 6, 20, 23] {
        let dir = TempDir::new();
        for n in 0..count {
            dir.write(&format!("{n:02}.yaml"), "database: x\n");
        }
        let ran = in_mode(
            &host_of(&dir, Vec::new(), Server::Host(0)),
            "project",
            CONFIG_SCAN,
        );
        let names: Vec<String> = (0..count.min(20)).map(|n| format!("{n:02}.yaml")).collect();
        let rows: Vec<(&str, u32)> = names.iter().map(|name| (name.as_str(), 1)).collect();
        assert_eq!(ran.printed_json(), report(&rows));
        assert_eq!(ran.json["tool_calls_made"], 1 + rows.len());
    }
}

// ---- 3: research ----

const LONG: &str =
    "Newline-delimited JSON over a socket. Newline-delimited JSON over a socket. Newline-delimited JSON over a socket. \
     Newline-delimited JSON over a socket. Newline-delimited JSON over a socket. Newline-delimited JSON over a socket.";

fn sources() -> Vec<Page> {
    let page = |url, title, found_by, content| Page {
        url,
        title,
        found_by,
        content,
    };
    vec![
        page(
            "https://s.example/fork",
            "Fork servers",
            &["fork server"],
            Ok("A fork server imports once."),
        ),
        page(
            "https://s.example/both",
            "Both",
            &["fork server", "landlock"],
            Ok("Processes — “isolated” and warm. 中文"),
        ),
        page(
            "https://s.example/gone",
            "Gone",
            &["fork server", "unix socket rpc"],
            Err("404"),
        ),
        page(
            "https://s.example/lock",
            "Landlock",
            &["landlock"],
            Ok("Landlock restricts ambient rights."),
        ),
        page("https://s.example/empty", "Empty", &["landlock"], Ok("")),
        page(
            "https://s.example/rpc",
            "RPC",
            &["unix socket rpc"],
            Ok(LONG),
        ),
        page(
            "https://s.example/fork2",
            "Over the limit",
            &["fork server"],
            Ok("Never extracted."),
        ),
    ]
}

#[test]
fn research() {
    let dir = TempDir::new();
    let rpc = &LONG[..200];
    let page = |topic: &str, title: &str, url: &str, excerpt: &str| json!({"topic": topic, "title": title, "url": format!("https://s.example/{url}"), "excerpt": excerpt});
    let expected = json!({"pages": [
        page("fork server", "Fork servers", "fork", "A fork server imports once."),
        page("fork server", "Both", "both", "Processes — “isolated” and warm. 中文"),
        page("landlock", "Landlock", "lock", "Landlock restricts ambient rights."),
        page("unix socket rpc", "RPC", "rpc", rpc),
    ], "failed": 2});
    for (server, mode) in WAYS {
        let ran = in_mode(&host_of(&dir, sources(), server), mode, RESEARCH);
        assert_eq!(ran.printed_json(), expected);
        assert!(
            ran.output()
                .contains("Processes — “isolated” and warm. 中文"),
            "{}",
            ran.output()
        );
        assert_eq!(
            ran.json["tool_calls_made"],
            3 + 6,
            "each page is read once: {:#}",
            ran.json
        );
        assert!(ran
            .of_calls("state")
            .iter()
            .all(|state| *state == "answered"));
    }
}

#[test]
fn research_goes_on_when_a_tool_fails() {
    let config = format!(r#"{{"tools":{}}}"#, Tools::NAMES);
    let tools = Tools {
        root: std::env::temp_dir(),
        web: sources(),
    };
    let engine = engine_with(&config, move |tool, args| {
        let unlucky =
            args["query"] == "landlock" || args["urls"] == json!(["https://s.example/rpc"]);
        if unlucky {
            return Err("the service is down".into());
        }
        tools.serve(tool, args)
    });
    let ran = execute(&engine, "", RESEARCH);
    let found = ran.printed_json();
    let titles: Vec<&Value> = found["pages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|page| &page["title"])
        .collect();
    assert_eq!(titles, ["Fork servers", "Both"]);
    assert_eq!(found["failed"], 1);
    assert_eq!(
        ran.of_calls("state")
            .iter()
            .filter(|state| **state == "failed")
            .count(),
        2
    );
}

// ---- 4: bulk refactor ----

#[test]
fn bulk_refactor() {
    for (server, mode) in WAYS {
        let dir = TempDir::new();
        dir.write(
            "src/a.py",
            "def f():\n    legacy_call(1)\n    return legacy_call(2)\n",
        );
        dir.write(
            "src/deep/b.py",
            "x = legacy_call ( 1 )\ny = [legacy_call(n) for n in 'é']\n",
        );
        dir.write("src/c.py", "# legacy_call is mentioned, not called\n");
        dir.write("src/d.py", "modern_call(1)\n");
        dir.write("src/e.txt", "legacy_call(1)\n");
        dir.write("tests/t.py", "legacy_call(1)\n");
        let ran = in_mode(&host_of(&dir, Vec::new(), server), mode, BULK_REFACTOR);
        assert_eq!(ran.printed(), "changed 2 of 3 files\n");
        assert_eq!(
            dir.read("src/a.py"),
            "def f():\n    modern_call(1)\n    return modern_call(2)\n"
        );
        assert_eq!(
            dir.read("src/deep/b.py"),
            "x = legacy_call ( 1 )\ny = [modern_call(n) for n in 'é']\n"
        );
        assert_eq!(
            dir.read("src/c.py"),
            "# legacy_call is mentioned, not called\n"
        );
        assert_eq!(dir.read("src/e.txt"), "legacy_call(1)\n");
        assert_eq!(dir.read("tests/t.py"), "legacy_call(1)\n");
        assert_eq!(
            ran.of_calls("tool"),
            [
                "search_files",
                "patch",
                "patch",
                "patch",
                "read_file",
                "read_file"
            ]
        );
        assert_eq!(
            ran.of_calls("state"),
            ["answered", "answered", "failed", "answered", "answered", "answered"]
        );
    }
}

#[test]
fn bulk_refactor_without_anything_to_do() {
    let dir = TempDir::new();
    let engine = host_of(&dir, Vec::new(), Server::Host(0));
    // There is no src at all, so the search fails, and the script takes that for no matches.
    assert_eq!(
        execute(&engine, "", BULK_REFACTOR).printed(),
        "changed 0 of 0 files\n"
    );
}

// ---- 5: build and test ----

#[test]
fn build_and_test() {
    let dir = TempDir::new();
    dir.write(
        "project/test_it.py",
        "import unittest\nclass T(unittest.TestCase):\n    def test_a(self): pass\n    def test_b(self): self.assertEqual(1, 2)\n\
         \x20   def test_c(self): raise KeyError('é')\n    def test_d(self): pass\n",
    );
    for (server, mode) in WAYS {
        let ran = in_mode(&host_of(&dir, Vec::new(), server), mode, BUILD_AND_TEST);
        let seen = ran.printed_json();
        assert_eq!(
            (&seen["ok"], &seen["failed"], &seen["errors"]),
            (&json!(2), &json!(1), &json!(1)),
            "{seen:#}"
        );
        assert_eq!(seen["exit_code"], 1);
        let tail = seen["tail"].as_array().unwrap();
        assert!(
            tail[0].as_str().unwrap().starts_with("Ran 4 tests in "),
            "{seen:#}"
        );
        assert_eq!(
            (&tail[1], &tail[2]),
            (&json!(""), &json!("FAILED (failures=1, errors=1)"))
        );
    }
    dir.write(
        "project/test_it.py",
        "import unittest\nclass T(unittest.TestCase):\n    def test_a(self): pass\n",
    );
    let seen = in_mode(
        &host_of(&dir, Vec::new(), Server::Host(0)),
        "project",
        BUILD_AND_TEST,
    )
    .printed_json();
    assert_eq!(
        (&seen["ok"], &seen["exit_code"], &seen["tail"][2]),
        (&json!(1), &json!(0), &json!("OK")),
        "{seen:#}"
    );
}

#[test]
fn build_and_test_of_a_project_that_there_is_not() {
    let dir = TempDir::new();
    let seen = in_mode(
        &host_of(&dir, Vec::new(), Server::Host(0)),
        "project",
        BUILD_AND_TEST,
    )
    .printed_json();
    assert_eq!(
        (&seen["ok"], &seen["failed"], &seen["errors"]),
        (&json!(0), &json!(0), &json!(0)),
        "{seen:#}"
    );
    assert_ne!(seen["exit_code"], 0);
    assert!(
        seen["tail"][0].as_str().unwrap().contains("project"),
        "{seen:#}"
    );
}

// ---- what passes between a script and such tools ----

#[test]
fn text_of_every_kind_arrives_as_it_was_sent() {
    let dir = TempDir::new();
    let code = r#"
from hermes_tools import read_file, write_file, search_files, terminal
texts = ["".join(map(chr, range(32))) + "\x7f\x85\u2028\u2029", "a\r\nb\r\n", "\ufeffmark", "no line end", "", "\u00e9\u4e2d\U0001f389 \\n \" '", "x" * 300000]
for n, text in enumerate(texts):
    written = write_file(f"deep/er/{n}.txt", text)
    assert written["status"] == "ok" and written["bytes_written"] == len(text.encode()), written
    for _ in range(3):
        got = read_file(f"deep/er/{n}.txt")["content"]
        assert got == text, (n, got[:100], text[:100])
write_file("controls.txt", "find me" + "".join(chr(c) for c in range(32) if c not in (10, 13)))
match, = search_files("find me", file_glob="controls*")["matches"]
assert match["content"] == "find me" + "".join(chr(c) for c in range(32) if c not in (10, 13)), match
assert terminal("printf 'a\\0b\\033[31mc\\001'")["output"] == "a\0b\x1b[31mc\x01"
assert read_file("missing.txt")["error"].startswith("missing.txt: "), read_file("missing.txt")
assert terminal("sleep 600", timeout=0.2)["exit_code"] == 124
print("all")
"#;
    assert_eq!(
        execute(&host_of(&dir, Vec::new(), Server::Host(0)), "", code).printed(),
        "all\n"
    );
}

//! What the README shows works as it stands there.

#[path = "support/cc.rs"]
mod cc;

use serde_json::Value;
use std::io::Write;
use std::process::{Command, Stdio};

const README: &str = include_str!("../README.md");

/// The text between the fences of the first block in `language`.
fn block(language: &str) -> &'static str {
    let start = README.find(&format!("```{language}\n")).unwrap() + language.len() + 4;
    let length = README[start..].find("```").unwrap();
    &README[start..start + length]
}

#[test]
fn the_host_in_c_finds_the_largest_city() {
    let source = std::env::temp_dir().join(format!("ptc-readme-{}.c", std::process::id()));
    std::fs::write(&source, block("c")).unwrap();
    let program = cc::compile("readme", &source);
    std::fs::remove_file(&source).unwrap();
    let mut command = Command::new(program);
    cc::find_library(&mut command);
    let output = command.output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "Rome 2748109\n");
}

#[test]
fn the_first_command_does_what_it_says() {
    // The options of the README's first line, with the command that this build has made.
    let line = block("sh").lines().next().unwrap();
    let words = line
        .split('#')
        .next()
        .unwrap()
        .split_once(" -- ")
        .unwrap()
        .1;
    let output = Command::new(env!("CARGO_BIN_EXE_ptc"))
        .args(words.split_whitespace())
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(
        printed.starts_with("20 calls, "),
        "{printed}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn every_line_about_the_command_works() {
    let section = README.split("\n## The command\n").nth(1).unwrap();
    let block = section.split("```").nth(1).unwrap();
    let lines = block.strip_prefix("sh\n").unwrap().lines();
    let folder = std::env::temp_dir().join(format!("readme-{}", std::process::id()));
    std::fs::create_dir(&folder).unwrap();
    let script = "from hermes_tools import lookup\nprint(lookup(word='x'))\n";
    std::fs::write(folder.join("script.py"), script).unwrap();
    std::fs::write(folder.join("lookup.sh"), "#!/bin/sh\ncat\n").unwrap();
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_ptc"));
    let path = std::env::var("PATH").unwrap();
    let path = format!("{}:{path}", program.parent().unwrap().display());
    let run = |line: &str| {
        let mut shell = Command::new("sh");
        shell.args(["-c", line]).current_dir(&folder);
        shell.env("PATH", &path).output().unwrap()
    };
    run("chmod +x lookup.sh");
    let outputs: Vec<_> = lines.map(|line| (line, run(line))).collect();
    let trace = std::fs::read_to_string(folder.join("trace.json"));
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(outputs.len() >= 7);
    for (line, output) in outputs {
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && said.is_empty(), "{line}: {said}");
    }
    assert!(trace.unwrap().contains("\"lookup\""));
}

#[test]
fn the_configuration_of_a_client_starts_a_server() {
    let config: Value = serde_json::from_str(block("json")).unwrap();
    let server = &config["mcpServers"]["ptc"];
    assert_eq!(server["command"], "ptc");
    let args = server["args"].as_array().unwrap().iter();
    // The reader's own folder is somewhere else.
    let args = args.map(|arg| match arg.as_str().unwrap() {
        "/home/me/project" => env!("CARGO_MANIFEST_DIR"),
        arg => arg,
    });
    let mut child = Command::new(env!("CARGO_BIN_EXE_ptc"))
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let hello = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}"#;
    let list = r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#;
    let mut stdin = child.stdin.take().unwrap();
    writeln!(stdin, "{hello}\n{list}").unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    let said = String::from_utf8(output.stdout).unwrap();
    let answer: Value = serde_json::from_str(said.lines().nth(1).unwrap()).unwrap();
    let description = answer["result"]["tools"][0]["description"]
        .as_str()
        .unwrap();
    for tool in ["read_file(", "patch(", "terminal(", "lookup("] {
        assert!(description.contains(tool), "{description}");
    }
}

#[test]
fn every_key_of_the_contract_is_in_a_table() {
    let keys = [
        "mode",
        "timeout",
        "kill_grace",
        "max_tool_calls",
        "max_parallel_calls",
        "max_stdout_bytes",
        "max_stderr_bytes",
        "max_message_bytes",
        "spill_dir",
        "max_spill_bytes",
        "module_name",
        "on_tool_error",
        "isolation",
        "warm",
        "allow_mcp",
    ];
    for key in keys {
        assert!(README.contains(&format!("`code_execution.{key}`")), "{key}");
    }
    let result = [
        "status",
        "output",
        "tool_calls_made",
        "duration_seconds",
        "error",
        "hint",
        "exit_code",
        "signal",
        "started",
        "stdout_bytes",
        "stderr_bytes",
        "stdout_truncated",
        "stderr_truncated",
        "stdout_path",
        "survivors",
        "tool_calls",
        "tool_calls_omitted",
        "mode",
        "cwd",
        "python",
        "isolation",
    ];
    for key in result {
        assert!(README.contains(&format!("`{key}`")), "{key}");
    }
}

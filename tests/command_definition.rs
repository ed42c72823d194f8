//! `ptc definition`: what to show the model, in every format, and how large it is.

#[path = "support/cli.rs"]
mod cli;

use cli::{json, ptc, text, Folder};
use serde_json::Value;
use std::process::Output;

fn definition(args: &[&str]) -> Output {
    let output = ptc(&[&["definition"], args].concat()).output().unwrap();
    assert_eq!(text(&output.stderr), "", "{args:?}");
    assert_eq!(output.status.code(), Some(0), "{args:?}");
    output
}

#[test]
fn every_format_is_what_its_interface_expects() {
    let tools = ["--tool", "echo=cat"];
    let of = |format: &str| json(&definition(&[&tools[..], &["--format", format]].concat()));
    let anthropic = of("anthropic");
    assert_eq!(anthropic["name"], "execute_code");
    assert_eq!(
        anthropic["input_schema"]["required"],
        Value::from(vec!["code"])
    );
    assert_eq!(
        of("openai")["function"]["parameters"],
        anthropic["input_schema"]
    );
    assert_eq!(of("mcp")["inputSchema"], anthropic["input_schema"]);
    assert_eq!(json(&definition(&tools)), anthropic);
    let output = definition(&[&tools[..], &["--format=text"]].concat());
    let described = text(&output.stdout);
    assert!(described.contains("\n- echo("), "{described}");
    assert_eq!(
        described.trim_end(),
        anthropic["description"].as_str().unwrap().trim_end()
    );
}

#[test]
fn configuration_tools_and_options_are_in_it() {
    let folder = Folder::new();
    let config = folder.write(
        "c.json",
        r#"{"code_execution": {"timeout": 77, "module_name": "my_tools"}, "tools": ["web_search"]}"#,
    );
    let args = ["--config", &config, "--format", "text", "--builtin"];
    let output = definition(&[&args[..], &["read_file,patch", "--mode=strict"]].concat());
    let described = text(&output.stdout);
    for expected in [
        "77 s",
        "from my_tools import",
        "- web_search(",
        "- patch(",
        "- read_file(",
    ] {
        assert!(described.contains(expected), "{expected}: {described}");
    }
    assert!(!described.contains("- terminal("));
    let project = definition(&["--format=text", "--cwd", folder.0.to_str().unwrap()]);
    assert!(text(&project.stdout).contains(folder.0.to_str().unwrap()));
    assert_ne!(
        definition(&["--mode=strict"]).stdout,
        definition(&[]).stdout
    );
}

#[test]
fn its_size_is_told() {
    let args = ["--builtin", "all", "--format", "openai"];
    let shown = definition(&args);
    let bytes = text(&shown.stdout).trim_end().len();
    let tokens = bytes.div_ceil(4);
    let stats = definition(&[&args[..], &["--stats"]].concat());
    assert_eq!(
        text(&stats.stdout),
        format!("{bytes} bytes, about {tokens} tokens, 5 of 5 tools shown\n")
    );
    let output = definition(&[&args[..], &["--json"]].concat());
    assert_eq!(output.stdout.iter().filter(|b| **b == b'\n').count(), 1);
    let line = json(&output);
    assert_eq!(line["definition"], json(&shown));
    assert_eq!(line["bytes"], bytes);
    assert_eq!(line["estimated_tokens"], tokens);
    assert_eq!(
        (&line["tools"], &line["tools_shown"]),
        (&5.into(), &5.into())
    );
    let line = json(&definition(&["--json", "--format", "text"]));
    assert!(line["definition"].is_string());
}

#[test]
fn many_tools_are_not_all_shown() {
    let folder = Folder::new();
    let tools: Vec<Value> = (0..1000)
        .map(|n| serde_json::json!({"name": format!("tool_number_{n}"), "description": "Does a thing. ".repeat(9)}))
        .collect();
    let config = folder.write("c.json", &serde_json::json!({"tools": tools}).to_string());
    let line = json(&definition(&["--json", "--config", &config]));
    assert_eq!(line["tools"], 1000);
    assert!(line["tools_shown"].as_u64().unwrap() < 1000);
    assert!(line["bytes"].as_u64().unwrap() <= 16_000);
}

#[test]
fn bad_usage_is_explained() {
    for (args, expected) in [
        (&["--format", "tex"][..], "did you mean \"text\"?"),
        (&["script.py"], "options only"),
        (&["--timeout", "5"], "unknown option --timeout"),
        (&["--builtin", "all,"], "--builtin expects"),
        (&["--mode", "loose"], "code_execution.mode"),
    ] {
        let output = ptc(&[&["definition"], args].concat()).output().unwrap();
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {message}");
        assert!(message.contains(expected), "{args:?}: {message}");
        assert_eq!(text(&output.stdout), "");
    }
}

use super::*;
use crate::json::{self, Value};

const ALL: &str =
    r#"["web_search","web_extract","read_file","write_file","search_files","patch","terminal"]"#;

fn config(json: &str) -> Config {
    Config::parse(json).unwrap_or_else(|e| panic!("{json}: {e}"))
}

fn text(json: &str) -> String {
    definition("text", &DefinitionContext::of(&config(json))).unwrap()
}

fn with_tools(tools: &str) -> String {
    text(&format!(r#"{{"tools":{tools}}}"#))
}

#[test]
fn each_format_is_what_its_interface_expects() {
    let config = config(&format!(r#"{{"tools":{ALL}}}"#));
    let context = DefinitionContext::of(&config);
    let description = definition("text", &context).unwrap();
    let object = |format: &str| json::parse(&definition(format, &context).unwrap()).unwrap();
    let check = |tool: &Value, schema: &str| {
        assert_eq!(tool.get("name").unwrap().as_str(), Some("execute_code"));
        assert_eq!(
            tool.get("description").unwrap().as_str(),
            Some(description.as_str())
        );
        let schema = tool.get(schema).unwrap();
        assert_eq!(schema.get("type").unwrap().as_str(), Some("object"));
        assert_eq!(schema.get("required").unwrap().to_string(), r#"["code"]"#);
        let code = schema.get("properties").unwrap().get("code").unwrap();
        assert_eq!(code.get("type").unwrap().as_str(), Some("string"));
    };
    check(&object("anthropic"), "input_schema");
    check(&object("mcp"), "inputSchema");
    let openai = object("openai");
    assert_eq!(openai.get("type").unwrap().as_str(), Some("function"));
    check(openai.get("function").unwrap(), "parameters");
}

#[test]
fn an_unknown_format_is_refused() {
    let config = config("");
    let error = definition("antropic", &DefinitionContext::of(&config)).unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument);
    let expected = r#"format: expected anthropic, openai, mcp, text, got "antropic"; did you mean "anthropic"?"#;
    assert_eq!(error.message(), expected);
    assert!(stats("", &DefinitionContext::of(&config)).is_err());
}

#[test]
fn it_names_the_tools_at_hand_and_no_others() {
    let all = with_tools(ALL);
    for signature in [
        "- web_search(query: str, limit: int = 5) -> dict\n",
        "- web_extract(urls: list[str], char_limit: int = None) -> dict\n",
        "- read_file(path: str, offset: int = 1, limit: int = 2000) -> dict\n",
        "- write_file(path: str, content: str) -> dict\n",
        "- search_files(pattern: str, target: Literal[\"content\", \"files\"] = \"content\", path: str = \".\"",
        "- patch(path: str = None, old_string: str = None, new_string: str = None, replace_all: bool = False",
        "- terminal(command: str, timeout: float = None, workdir: str = None) -> dict\n",
        "Returns {\"data\": {\"web\": [{\"url\": str, \"title\": str, \"description\": str}]}}",
        "Returns {\"output\": str, \"exit_code\": int, \"error\"?: str | None}",
    ] {
        assert!(all.contains(signature), "{signature}\n{all}");
    }
    let some = with_tools(r#"["terminal","read_file"]"#);
    assert!(some.contains("- terminal(") && some.contains("- read_file("));
    for other in [
        "web_search",
        "web_extract",
        "write_file",
        "search_files",
        "patch(",
    ] {
        assert!(!some.contains(other), "{other}\n{some}");
    }
}

#[test]
fn a_host_s_own_tool_is_shown_under_its_python_name() {
    let shown = with_tools(
        r#"[{"name":"list-users","description":"All users.\nSorted.","input_schema":{"properties":{"from":{"type":"integer"}}},
            "output_schema":{"type":"array","items":{"type":"object","properties":{"id":{"type":"integer"}},"required":["id"]}}}]"#,
    );
    let entry = "- list_users(from_: int = None) -> list[dict]\n    All users. Sorted.\n    Returns [{\"id\": int}]";
    assert!(shown.contains(entry), "{shown}");
    assert!(shown.contains("import list_users\n"));
}

#[test]
fn the_import_example_prefers_the_common_tools() {
    assert!(with_tools(ALL).contains("from hermes_tools import web_search, terminal\n"));
    assert!(with_tools(r#"["terminal","patch"]"#).contains("import terminal\n"));
    assert!(
        with_tools(r#"["write_file","read_file","patch"]"#).contains("import patch, read_file\n")
    );
    let own = text(r#"{"code_execution":{"module_name":"kit"},"tools":["web_search"]}"#);
    assert!(
        own.contains("Tools, imported from kit:") && own.contains("from kit import web_search\n")
    );
    assert!(!own.contains("hermes_tools"));
}

#[test]
fn without_tools_nothing_is_imported() {
    let none = text("");
    assert!(!none.contains("import"), "{none}");
    assert!(!none.contains("parallel("), "{none}");
    assert!(none.contains("Only what it prints comes back"));
}

#[test]
fn it_says_when_to_use_it_and_when_not() {
    let all = with_tools(ALL);
    for phrase in [
        "three or more tool calls",
        "Do not use it for a single tool call",
        "Only what the script prints",
        "parallel([",
        "json_parse",
        "shell_quote",
        "retry",
        "await aio.",
        "tools.search",
    ] {
        assert!(all.contains(phrase), "{phrase}");
    }
}

#[test]
fn the_terminal_is_named_only_where_there_is_one() {
    for mode in ["project", "strict"] {
        let of = |tools: &str| {
            text(&format!(
                r#"{{"code_execution":{{"mode":"{mode}"}},"tools":{tools}}}"#
            ))
        };
        let wrapping = "Do not wrap a single shell command in a script";
        assert_eq!(of(ALL).matches(wrapping).count(), 1);
        assert!(of(ALL).contains("call the terminal tool for it"));
        for tools in ["[]", r#"["web_search"]"#] {
            assert!(!of(tools).contains("terminal"), "{}", of(tools));
            assert!(of(tools).contains(wrapping) && of(tools).contains("subprocess"));
        }
    }
}

#[test]
fn the_modes_exclude_each_other_and_promise_no_sandbox() {
    let project = text(&format!(r#"{{"tools":{ALL}}}"#));
    let strict = text(&format!(
        r#"{{"code_execution":{{"mode":"strict"}},"tools":{ALL}}}"#
    ));
    assert!(project.contains("session's working directory") && project.contains("venv"));
    assert!(!project.contains("temp dir"));
    assert!(strict.contains("temp dir") && !strict.contains("session") && !strict.contains("venv"));
    assert!(project.len().abs_diff(strict.len()) <= 200);
    for word in ["sandbox", "isolated", "cloud"] {
        assert!(
            !project.to_lowercase().contains(word) && !strict.to_lowercase().contains(word),
            "{word}"
        );
    }
}

#[test]
fn the_limits_are_those_in_force() {
    assert!(text("").contains("Limits: 5 minutes (300 s), 50 tool calls, 50KB of printed output"));
    let limits = |code: &str| text(&format!(r#"{{"code_execution":{{{code}}}}}"#));
    let other = limits(r#""timeout":2.5,"max_tool_calls":1,"max_stdout_bytes":2000000"#);
    assert!(
        other.contains("Limits: 2.5 seconds, 1 tool call, 2MB of printed output"),
        "{other}"
    );
    let least = limits(r#""timeout":60,"max_tool_calls":0,"max_stdout_bytes":9"#);
    assert!(
        least.contains("Limits: 1 minute (60 s), no tool calls, 9 bytes of printed output"),
        "{least}"
    );
}

#[test]
fn failures_are_told_as_configured() {
    assert!(with_tools(ALL).contains("returns {\"error\""));
    let raising = text(&format!(
        r#"{{"code_execution":{{"on_tool_error":"raise"}},"tools":{ALL}}}"#
    ));
    assert!(raising.contains("raises ToolError") && !raising.contains("returns {\"error\""));
}

#[test]
fn place_and_interpreter_are_told_where_known() {
    let config = config(r#"{"terminal":{"cwd":"/srv/app"}}"#);
    let mut context = DefinitionContext::of(&config);
    assert!(definition("text", &context)
        .unwrap()
        .contains("working directory (/srv/app) with the project's Python, that"));
    context.interpreter = Some("/opt/py");
    assert!(definition("text", &context)
        .unwrap()
        .contains("the project's Python (/opt/py), that"));
    context.mode = Mode::Strict;
    let strict = definition("text", &context).unwrap();
    assert!(strict.contains("the host's Python (/opt/py):") && !strict.contains("/srv/app"));
}

#[test]
fn the_order_of_the_configuration_does_not_show() {
    let one = with_tools(r#"[{"name":"zeta"},"terminal",{"name":"alpha"},"web_search"]"#);
    let other = with_tools(r#"["web_search",{"name":"alpha"},{"name":"zeta"},"terminal"]"#);
    assert_eq!(one, other);
    let at = |name: &str| one.find(&format!("- {name}(")).unwrap();
    assert!(
        at("web_search") < at("terminal")
            && at("terminal") < at("alpha")
            && at("alpha") < at("zeta")
    );
}

/// `n` tools as they come from real servers: several arguments, a paragraph of description, a result schema.
fn many(n: usize, description: &str) -> Config {
    let tool = |i: usize| {
        format!(
            r#"{{"name":"service_{i}_operation","description":"{description}","input_schema":{{"properties":{{
                "identifier":{{"type":"string","description":"Which."}},"include":{{"type":"array","items":{{"type":"string"}}}},
                "page":{{"type":"integer","default":1}}}},"required":["identifier"]}},
                "output_schema":{{"type":"object","properties":{{"items":{{"type":"array","items":{{"type":"string"}}}}}}}}}}"#
        )
    };
    let tools: Vec<String> = (0..n).map(tool).collect();
    config(&format!(
        r#"{{"tools":["web_search",{}]}}"#,
        tools.join(",")
    ))
}

#[test]
fn two_hundred_tools_stay_under_four_thousand_tokens() {
    let plain = "Performs the operation. It has a long description that goes on for a while.";
    let awkward = "\\\"Quotes\\\" and \\\\ and \\n line ends and äöü 🚀 in every sentence of it";
    for description in [plain, awkward, &"x".repeat(3000)] {
        for n in [199, 2000] {
            let config = many(n, description);
            for mode in [Mode::Project, Mode::Strict] {
                let long = "/a".repeat(500);
                let context = DefinitionContext {
                    mode,
                    cwd: Some(Path::new(&long)),
                    ..DefinitionContext::of(&config)
                };
                for (format, _) in FORMATS {
                    let whole = definition(format, &context).unwrap();
                    assert!(whole.len() < MAX_BYTES, "{n} {format}: {}", whole.len());
                }
                let stats = stats("openai", &context).unwrap();
                assert!(stats.tokens < 4000 && stats.tokens > 3500, "{stats:?}");
                assert!(
                    stats.tools_shown > 20 && stats.tools_shown < stats.tools,
                    "{stats:?}"
                );
                let whole = definition("text", &context).unwrap();
                let rest = format!(
                    "… and {} more. Find them from inside a script: tools.search(",
                    n + 1 - stats.tools_shown
                );
                assert!(whole.contains(&rest), "{whole}");
                assert!(whole
                    .contains("- web_search(query: str, limit: int = 5) -> dict: Search the web."));
            }
        }
    }
}

#[test]
fn a_middling_number_of_tools_is_shown_in_short() {
    let config = many(100, "Performs the operation. It has a long description that goes on for a while, with examples.");
    let context = DefinitionContext::of(&config);
    let stats = stats("text", &context).unwrap();
    assert_eq!((stats.tools, stats.tools_shown), (101, 101));
    let whole = definition("text", &context).unwrap();
    assert!(
        whole.contains("page: int = 1) -> dict: Performs the operation.\n"),
        "{whole}"
    );
    assert!(!whole.contains("more. Find them") && whole.len() == stats.bytes);
}

#[test]
fn one_tool_with_an_endless_specification_is_bounded() {
    let many: Vec<String> = (0..3000)
        .map(|i| format!(r#""argument_{i}":{{"type":"integer"}}"#))
        .collect();
    let shown = with_tools(&format!(
        r#"["terminal",{{"name":"wide","description":"{}","input_schema":{{"properties":{{{}}}}}}}]"#,
        "word ".repeat(5000),
        many.join(",")
    ));
    assert!(shown.len() < MAX_BYTES);
    assert!(
        shown.contains("- wide(…), see tools.describe(\"wide\")\n    word word"),
        "{shown}"
    );
}

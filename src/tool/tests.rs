use super::*;
use crate::config::Config;

fn tools(json: &str) -> Vec<ToolSpec> {
    Config::parse(json)
        .unwrap_or_else(|e| panic!("{json}: {e}"))
        .tools
}

fn error(json: &str) -> String {
    Config::parse(json).expect_err(json).message().to_string()
}

fn error_of(tools: &str) -> String {
    error(&format!(r#"{{"tools":[{tools}]}}"#))
}

fn named(name: &str) -> String {
    format!(r#"{{"name":"{name}","input_schema":{{"type":"object"}}}}"#)
}

#[test]
fn the_standard_tools_bring_their_signatures() {
    let names: Vec<String> = STANDARD
        .iter()
        .map(|tool| crate::json::quote(tool.name))
        .collect();
    let found = tools(&format!(r#"{{"tools":[{}]}}"#, names.join(",")));
    let signatures: Vec<String> = found.iter().map(|tool| tool.function.signature()).collect();
    let expected = [
        "web_search(query: str, limit: int = 5) -> dict",
        "web_extract(urls: list[str], char_limit: int = None) -> dict",
        "read_file(path: str, offset: int = 1, limit: int = 2000) -> dict",
        "write_file(path: str, content: str) -> dict",
        r#"search_files(pattern: str, target: Literal["content", "files"] = "content", path: str = ".", file_glob: str = None, limit: int = 50, offset: int = 0, output_mode: Literal["content", "files_only", "count"] = "content", context: int = 0, order: Literal["discovery", "modified"] = "discovery") -> dict"#,
        r#"patch(path: str = None, old_string: str = None, new_string: str = None, replace_all: bool = False, mode: Literal["replace", "patch"] = "replace", patch: str = None) -> dict"#,
        "terminal(command: str, timeout: float = None, workdir: str = None) -> dict",
    ];
    assert_eq!(signatures, expected);
    for (tool, standard) in found.iter().zip(&STANDARD) {
        assert_eq!(tool.origin, Origin::Standard);
        assert!(tool.parallel);
        assert_eq!(tool.description, standard.description);
        let described = |p: &signature::Parameter| !p.description.is_empty();
        assert!(
            tool.function.parameters.iter().all(described),
            "{}",
            tool.name
        );
    }
}

#[test]
fn a_specification_is_read_in_full() {
    let found = tools(
        r#"{"tools":[{"name":"Sum-Up","description":" Adds. ","parallel":false,
            "input_schema":{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]},
            "output_schema":{"type":"integer"}}, {"name":"free"}]}"#,
    );
    assert_eq!(found[0].name, "Sum-Up");
    assert_eq!(found[0].description, "Adds.");
    assert!(!found[0].parallel);
    assert_eq!(found[0].origin, Origin::Host);
    assert_eq!(found[0].function.signature(), "Sum_Up(a: int) -> int");
    assert!(found[1].parallel && found[1].description.is_empty());
    assert_eq!(found[1].function.signature(), "free(**more)");
}

#[test]
fn a_standard_name_without_a_schema_gets_the_standard_one() {
    let found = tools(
        r#"{"tools":[{"name":"terminal","description":"Mine.","parallel":false},
            {"name":"web_search","input_schema":{"properties":{"q":{"type":"string"}}}}]}"#,
    );
    assert_eq!(found[0].origin, Origin::Standard);
    assert_eq!(found[0].description, "Mine.");
    assert!(!found[0].parallel);
    let signature = found[0].function.signature();
    assert!(signature.starts_with("terminal(command: str, timeout") && signature.ends_with("dict"));
    assert_eq!(found[1].origin, Origin::Host);
    assert_eq!(found[1].function.signature(), "web_search(q: str = None)");
}

#[test]
fn built_in_tools_by_name_or_all() {
    let names = |json: &str| -> Vec<(String, Origin)> {
        tools(json)
            .into_iter()
            .map(|tool| (tool.name, tool.origin))
            .collect()
    };
    let own = |name: &str, origin| (name.to_string(), origin);
    assert_eq!(
        names(r#"{"builtin_tools":["patch","read_file"]}"#),
        [
            own("patch", Origin::BuiltIn),
            own("read_file", Origin::BuiltIn)
        ]
    );
    assert_eq!(
        names(r#"{"builtin_tools":"all","tools":["web_search","terminal"]}"#),
        [
            own("web_search", Origin::Standard),
            own("terminal", Origin::Standard),
            own("read_file", Origin::BuiltIn),
            own("write_file", Origin::BuiltIn),
            own("search_files", Origin::BuiltIn),
            own("patch", Origin::BuiltIn),
        ]
    );
    assert!(names(r#"{"builtin_tools":[]}"#).is_empty());
}

#[test]
fn what_a_script_must_never_call_is_refused() {
    for (tool, part) in [
        (
            r#""execute_code""#,
            r#"tools[0]: "execute_code" is refused: a script must not run scripts"#,
        ),
        (
            &named("execute_code"),
            r#"tools[0].name: "execute_code" is refused"#,
        ),
        (
            &named("delegate_task"),
            r#"tools[0].name: "delegate_task" is refused: a script must not delegate"#,
        ),
        (
            &named("mcp_github_search"),
            r#"tools[0].name: "mcp_github_search" is refused: scripts do not reach MCP servers"#,
        ),
        (
            &named("mcp__github__search"),
            r#""code_execution": {"allow_mcp": true} admits them"#,
        ),
        (r#""mcp_x""#, r#"tools[0]: "mcp_x" is refused"#),
        (&named(""), "tools[0].name: a tool needs a name"),
        (
            &named("a\\nb"),
            "tools[0].name: the name of a tool has no control characters",
        ),
        (
            &named(&"x".repeat(201)),
            "tools[0].name: the name of a tool has at most 200 bytes",
        ),
    ] {
        let message = error_of(tool);
        assert!(message.contains(part), "{message}");
    }
    // The switch admits those names and no others; a name that only resembles them is free.
    let admit = |name: &str| {
        format!(
            r#"{{"code_execution":{{"allow_mcp":true}},"tools":[{}]}}"#,
            named(name)
        )
    };
    assert_eq!(
        tools(&admit("mcp__github__search"))[0].function.name,
        "mcp__github__search"
    );
    assert!(
        error(&admit("execute_code")).contains("refused")
            && error(&admit("delegate_task")).contains("refused")
    );
    assert_eq!(
        tools(&format!(r#"{{"tools":[{}]}}"#, named("mcpish")))[0].name,
        "mcpish"
    );
}

#[test]
fn bad_specifications_name_their_path() {
    for (tool, message) in [
        (
            "5",
            "tools[0]: expected a tool (an object, or the name of a standard tool), got 5",
        ),
        (
            "null",
            "tools[0]: expected a tool (an object, or the name of a standard tool), got null",
        ),
        ("{}", "tools[0].name: missing"),
        (r#"{"name":5}"#, "tools[0].name: expected a string, got 5"),
        (
            r#"{"name":"t","description":[]}"#,
            "tools[0].description: expected a string, got []",
        ),
        (
            r#"{"name":"t","parallel":"no"}"#,
            r#"tools[0].parallel: expected true or false, got "no""#,
        ),
        (
            r#"{"name":"t","input_schema":"x"}"#,
            r#"tools[0].input_schema: expected an object, got "x""#,
        ),
        (
            r#"{"name":"t","input_schema":{"type":"string"}}"#,
            r#"tools[0].input_schema.type: expected "object", since arguments have names, got "string""#,
        ),
        (
            r#"{"name":"t","input_schema":{"properties":[]}}"#,
            "tools[0].input_schema.properties: expected an object, got []",
        ),
        (
            r#"{"name":"t","input_schema":{"properties":{"a b":"string"}}}"#,
            r#"tools[0].input_schema.properties["a b"]: expected a JSON Schema (an object), got "string""#,
        ),
        (
            r#"{"name":"t","input_schema":{"required":"a"}}"#,
            r#"tools[0].input_schema.required: expected a list of names, got "a""#,
        ),
        (
            r#"{"name":"t","input_schema":{"required":[1]}}"#,
            "tools[0].input_schema.required[0]: expected a name, got 1",
        ),
        (
            r#"{"name":"t","output_schema":[]}"#,
            "tools[0].output_schema: expected a JSON Schema (an object), got []",
        ),
    ] {
        assert_eq!(error_of(tool), message);
    }
    let unknown = error_of(r#"{"name":"t","inputSchema":{}}"#);
    assert!(
        unknown.starts_with(r#"tools[0].inputSchema: unknown key; did you mean "input_schema"?"#),
        "{unknown}"
    );
    let standard = error_of(r#""websearch""#);
    let expected = r#"tools[0]: "websearch" is no standard tool; did you mean "web_search"?; those are web_search, web_extract,"#;
    assert!(standard.starts_with(expected), "{standard}");
    assert!(error_of(&format!("{}, 7", named("a"))).starts_with("tools[1]: "));
}

#[test]
fn bad_names_of_built_in_tools() {
    for (value, message) in [
        (
            r#""al""#,
            r#"builtin_tools: expected "all" or a list of names, got "al""#,
        ),
        (
            "[1]",
            "builtin_tools[0]: expected the name of a built-in tool, got 1",
        ),
        (
            r#"["read_file","web_search"]"#,
            r#"builtin_tools[1]: "web_search" is always served by the host; list it in `tools` instead"#,
        ),
        (
            r#"["readfile"]"#,
            r#"builtin_tools[0]: no built-in tool is called "readfile"; did you mean "read_file"?; known: read_file, write_file, search_files, patch, terminal"#,
        ),
    ] {
        assert_eq!(error(&format!(r#"{{"builtin_tools":{value}}}"#)), message);
    }
}

#[test]
fn collisions_name_both() {
    assert_eq!(
        error_of(r#""terminal", {"name":"terminal"}"#),
        r#"tools[1]: the tool "terminal" is listed twice, here and at tools[0]; remove one"#
    );
    assert_eq!(
        error(r#"{"tools":["terminal"],"builtin_tools":["terminal"]}"#),
        r#"builtin_tools[0]: the tool "terminal" is listed twice, here and at tools[0]; remove one"#
    );
    assert_eq!(
        error_of(&format!("{}, {}", named("a-b"), named("a.b"))),
        r#"tools[1]: the tools "a-b" (at tools[0]) and "a.b" would both be the Python function a_b; rename one"#
    );
    assert_eq!(
        error_of(r#"{"name":"t","input_schema":{"properties":{"x-y":{},"z":{},"x.y":{}}}}"#),
        r#"tools[0].input_schema.properties: the arguments "x-y" and "x.y" would both be the Python parameter x_y; rename one"#
    );
    for helper in names::HELPERS {
        let message = error_of(&named(helper));
        let expected = format!("tools[0]: the tool {helper:?} would hide the helper {helper} that every script has; rename it");
        assert_eq!(message, expected);
    }
    // Mapping does not open a way around it.
    assert!(error_of(&named("json-parse")).contains("would hide the helper json_parse"));
}

use super::*;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Stands in for the runtime: a call returns what would be sent.
const RUNTIME: &str =
    "import sys\n_CONFIG = {}\n\ndef _call(tool, arguments):\n    return [tool, arguments]\n";

fn source(tools: &str) -> String {
    let config = Config::parse(&format!(r#"{{"tools":{tools}}}"#)).unwrap();
    module_source(RUNTIME, &config)
}

/// Every interpreter that can be found: `python3` on PATH and what pyenv has installed.
fn interpreters() -> Vec<PathBuf> {
    let mut found = vec![PathBuf::from("python3")];
    let root = std::env::var_os("PYENV_ROOT").map(PathBuf::from);
    let root = root.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".pyenv")));
    let versions = root.and_then(|root| std::fs::read_dir(root.join("versions")).ok());
    found.extend(
        versions
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path().join("bin/python")),
    );
    let recent = "import sys; sys.exit(sys.version_info < (3, 8))";
    found.retain(|python| {
        let status = Command::new(python)
            .args(["-c", recent])
            .stderr(Stdio::null())
            .status();
        status.is_ok_and(|status| status.success())
    });
    assert!(!found.is_empty(), "these tests need a Python 3.8 or newer");
    found
}

/// Executes the module `source` and then `check`, where `m` is the module, in `python`.
fn run(python: &PathBuf, source: &str, check: &str) {
    let program = "import sys, types, json\n\
        source, check = json.load(sys.stdin)\n\
        m = types.ModuleType('m'); sys.modules['m'] = m\n\
        exec(compile(source, 'm.py', 'exec'), m.__dict__)\n\
        exec(compile(check, 'check.py', 'exec'))\n";
    let mut child = Command::new(python)
        .args(["-W", "error", "-c", program])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let input = crate::json::string_array([source, check]);
    child
        .stdin
        .take()
        .unwrap()
        .write_all(input.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{}:\n{stderr}\n{source}",
        python.display()
    );
}

fn run_everywhere(source: &str, check: &str) {
    for python in interpreters() {
        run(&python, source, check);
    }
}

#[test]
fn the_standard_tools_send_what_was_given_and_nothing_else() {
    let names = r#"["web_search","web_extract","read_file","write_file","search_files","patch","terminal"]"#;
    run_everywhere(
        &source(names),
        r#"
assert m.web_search("q") == ["web_search", {"query": "q"}]
assert m.web_search("q", 3) == ["web_search", {"query": "q", "limit": 3}]
assert m.web_search(limit=0, query="q") == ["web_search", {"query": "q", "limit": 0}]
assert m.web_extract(["u"], char_limit=None) == ["web_extract", {"urls": ["u"]}]
assert m.read_file("p", offset=5) == ["read_file", {"path": "p", "offset": 5}]
assert m.write_file("p", "") == ["write_file", {"path": "p", "content": ""}]
assert m.patch("p", "a", "b") == ["patch", {"path": "p", "old_string": "a", "new_string": "b"}]
assert m.patch(mode="patch", patch="x") == ["patch", {"mode": "patch", "patch": "x"}]
assert m.terminal("ls", 5, workdir="/") == ["terminal", {"command": "ls", "timeout": 5, "workdir": "/"}]
assert m.search_files("x", "files", ".", "*.py", 5, 1, "count", 2, "modified")[1] == {
    "pattern": "x", "target": "files", "path": ".", "file_glob": "*.py", "limit": 5, "offset": 1,
    "output_mode": "count", "context": 2, "order": "modified"}
"#,
    );
}

#[test]
fn help_and_inspect_read_as_if_written_by_hand() {
    run_everywhere(
        &source(r#"["web_search", "terminal"]"#),
        r#"
import inspect, pydoc
assert str(inspect.signature(m.web_search)) == "(query: str, limit: int = 5) -> dict", inspect.signature(m.web_search)
assert str(inspect.signature(m.terminal)) == "(command: str, timeout: float = None, workdir: str = None) -> dict"
text = pydoc.plain(pydoc.render_doc(m.web_search))
assert "web_search(query: str, limit: int = 5) -> dict" in text, text
assert "Search the web." in text and "query (str): What to look for." in text, text
assert "limit (int, default 5): How many results at most." in text, text
assert '"url" (str)' in text, text
assert m.web_search.__name__ == m.web_search.__qualname__ == "web_search" and m.web_search.__module__ == "m"
import pickle
assert pickle.loads(pickle.dumps(m.web_search)) is m.web_search
"#,
    );
}

#[test]
fn the_configuration_describes_the_tools() {
    let config = Config::parse(
        r#"{"code_execution":{"module_name":"kit","on_tool_error":"raise","max_message_bytes":4096},"tools":[
            {"name":"a-b","description":"First. Second.","input_schema":{"properties":{"x":{"type":"integer"}},"required":["x"]}}]}"#,
    )
    .unwrap();
    run_everywhere(
        &module_source(RUNTIME, &config),
        r#"
assert m._CONFIG == {"module": "kit", "max_message_bytes": 4096, "on_tool_error": "raise", "tools": {"a-b": {
    "function": "a_b", "summary": "First.", "signature": "a_b(x: int)",
    "description": "First. Second.\n\nArgs:\n    x (int)"}}}, m._CONFIG
assert m.a_b(x=1) == ["a-b", {"x": 1}]
assert m.a_b.__doc__ == m._CONFIG["tools"]["a-b"]["description"]
"#,
    );
}

#[test]
fn wrong_arguments_are_explained() {
    let tools = r#"["web_search", "terminal", {"name":"two.words","input_schema":{"properties":{
        "from":{"type":"string"},"max-rows":{"type":"integer"},"deep":{}},"required":["from"]}},
        {"name":"none","input_schema":{"properties":{}}}, {"name":"named","input_schema":{"properties":{
        "a":{"type":"string"},"b":{"type":"string"}},"required":["b","a"]}}]"#;
    run_everywhere(
        &source(tools),
        r#"
def says(call, *parts):
    try:
        call()
    except TypeError as error:
        assert error.__cause__ is None and error.__context__ is None
        for part in parts:
            assert part in str(error), (part, str(error))
    else:
        assert False, parts
says(lambda: m.web_search(qurey="x"), "web_search has no argument 'qurey'; did you mean 'query'?",
    "Call it as web_search(query: str, limit: int = 5) -> dict")
says(lambda: m.web_search(q="x"), "has no argument 'q'; did you mean 'query'?")
says(lambda: m.web_search("x", max_limit=3), "has no argument 'max_limit'; did you mean 'limit'?")
says(lambda: m.web_search("x", zzz=3), "has no argument 'zzz'; it has query, limit")
says(lambda: m.web_search(), "web_search is missing the argument 'query'.")
says(lambda: m.web_search(1, 2, 3), "was given 3 arguments by position and takes 2 that way")
says(lambda: m.web_search("x", query="y"), "was given the argument 'query' twice")
says(lambda: m.two_words(**{"from": "x"}), "two_words (two.words) has no argument 'from'; did you mean 'from_'?")
says(lambda: m.two_words("x", maxrows=1), "did you mean 'max_rows'?")
says(lambda: m.none(1), "none was given 1 arguments by position and takes 0 that way. Call it as none()")
says(lambda: m.none(x=1), "none has no argument 'x'; it has none")
says(lambda: m.named("x", "y"), "takes 0 that way; give the others by name: a=…, b=…", "named(*, a: str, b: str)")
says(lambda: m.named(a=1), "named is missing the argument 'b'")
says(lambda: m.terminal("x", background=True), "terminal has no argument 'background': commands run in the foreground only")
assert m.two_words("x", deep=None) == ["two.words", {"from": "x", "deep": None}]
assert m.two_words("x", max_rows=None) == ["two.words", {"from": "x"}]
"#,
    );
}

#[test]
fn a_type_error_from_further_inside_passes_unchanged() {
    let config = Config::parse(r#"{"tools":["web_search"]}"#).unwrap();
    let runtime = "_CONFIG = {}\ndef _call(tool, arguments):\n    raise TypeError('no JSON: argument limit')\n";
    run_everywhere(
        &module_source(runtime, &config),
        r#"
try:
    m.web_search("x")
except TypeError as error:
    assert str(error) == "no JSON: argument limit"
else:
    assert False
"#,
    );
}

#[test]
fn open_schemas_take_further_arguments() {
    let tools = r#"[{"name":"any"}, {"name":"some","input_schema":{"properties":{"dict":{"type":"string"},"n":{"type":"integer"}},
        "required":["dict"],"additionalProperties":true}}]"#;
    run_everywhere(
        &source(tools),
        r#"
assert m.any_(a=1, **{"x-y": 2}) == ["any", {"a": 1, "x-y": 2}]
assert m.some("d", z=1) == ["some", {"z": 1, "dict": "d"}]
assert m.some("d", n=2, z=1) == ["some", {"z": 1, "dict": "d", "n": 2}]
"#,
    );
}

/// Names, texts and defaults that would break out of a careless generator.
#[test]
fn nothing_in_a_specification_becomes_code() {
    let nasty = [
        r#"\"\"\" + __import__('os').abort() + \"\"\""#,
        r#"ends with a quote \""#,
        r#"ends with a backslash \\"#,
        r#"'''\n\"\"\"\\\"\"\"\\N{DASH} \\x41 {braces} %s %(x)s"#,
        r#"line\r\nline\ttab\u0000nul\u001b[31m\u2028\u202e\ufeff\u0085"#,
        r#"日本語 größe 🚀 \ud800 \ud83d\ude00"#,
        r#"\n\n    indented\n\n"#,
    ];
    let big = "9".repeat(5000);
    let deep = "[".repeat(60) + &"]".repeat(60);
    for (i, text) in nasty.iter().enumerate() {
        let tools = format!(
            r#"[{{"name":"t {i}","description":"{text}","output_schema":{{"properties":{{"{text}":{{"description":"{text}"}}}}}},
            "input_schema":{{"properties":{{
                "{text}":{{"type":"string","description":"{text}","default":"{text}"}},
                "choice":{{"enum":["{text}",null,{big},true,1.5e400]}},
                "choices":{{"enum":["{text}","a",{{"{text}":1}}]}},
                "object":{{"type":"object","properties":{{"{text}":{{"type":"string","description":"{text}"}}}},"default":{{"{text}":[{big}]}}}},
                "huge":{{"type":"integer","default":{big}}},
                "deep":{{"type":"array","default":{deep}}}}}}}}}]"#
        );
        let escaped = format!("\"{text}\"").replace("\\ud800", "\\ufffd");
        let check = format!(
            "import pydoc, inspect\n\
            text = json.loads({})\n\
            tool = m.__dict__['t_{i}']\n\
            first = list(inspect.signature(tool).parameters)[0]\n\
            assert tool(**{{first: 'v'}}) == ['t {i}', {{text: 'v'}}], tool(**{{first: 'v'}})\n\
            assert tool() == ['t {i}', {{}}]\n\
            assert m._CONFIG['tools']['t {i}']['description'] == tool.__doc__, tool.__doc__\n\
            plain = lambda t: ''.join(c for c in t if c.isprintable() and c != ' ')\n\
            assert plain(text) in plain(tool.__doc__), (text, tool.__doc__)\n\
            pydoc.render_doc(tool)\n",
            python_string(&escaped)
        );
        run_everywhere(&source(&tools), &check);
    }
}

#[test]
fn two_hundred_tools_and_a_thousand_arguments_compile() {
    let tool = |i: usize| {
        format!(
            r#"{{"name":"tool {i}","description":"Does {i}.","input_schema":{{"properties":{{"a":{{"type":"string"}},"b":{{"default":{i}}}}},"required":["a"]}}}}"#
        )
    };
    let mut tools: Vec<String> = (0..200).map(tool).collect();
    let many: Vec<String> = (0..1000)
        .map(|i| format!(r#""p{i}":{{"type":"integer"}}"#))
        .collect();
    tools.push(format!(
        r#"{{"name":"wide","input_schema":{{"properties":{{{}}}}}}}"#,
        many.join(",")
    ));
    run_everywhere(
        &source(&format!("[{}]", tools.join(","))),
        "assert m.tool_199('x', b=None) == ['tool 199', {'a': 'x', 'b': None}]\n\
         assert m.wide(p999=1) == ['wide', {'p999': 1}]\n\
         assert len(m._CONFIG['tools']) == 201\n",
    );
}

#[test]
fn without_tools_the_module_still_has_its_helpers() {
    run_everywhere(&source("[]"), "assert m._CONFIG['tools'] == {}");
}

#[test]
fn a_summary_is_one_short_sentence() {
    let config = |text: &str| {
        Config::parse(&format!(
            r#"{{"tools":[{{"name":"t","description":"{text}"}}]}}"#
        ))
        .unwrap()
    };
    for (text, expected) in [
        ("One.\\n Two.", "One."),
        ("Version 1.5 of it", "Version 1.5 of it"),
        ("", ""),
    ] {
        assert_eq!(summary(&config(text).tools[0]), expected);
    }
    assert_eq!(
        summary(&config(&"ä".repeat(300)).tools[0]),
        "ä".repeat(100) + "…"
    );
}

//! Configuration and options from the outside: every key's bad values, every unknown key, bounds, and what wins.

mod support;

use ptc::{Code, Engine, Host};
use serde_json::{json, Value};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use support::*;

/// One value of each kind that JSON has, `null` left out: it means the default everywhere.
const KINDS: [(&str, &str); 5] = [
    ("string", r#""\u0000""#),
    ("number", "-3"),
    ("boolean", "true"),
    ("list", "[[]]"),
    ("object", r#"{"surely no key":1}"#),
];

/// Every key with what a complaint about it expects. A value of a kind behind the colon may be wrong in another way,
/// so its message is not looked at, only that it names the path.
const KEYS: [(&str, &str, &str); 24] = [
    ("code_execution", "an object", "object"),
    ("code_execution.mode", r#""project" or "strict""#, ""),
    ("code_execution.timeout", "a number of seconds > 0", ""),
    ("code_execution.kill_grace", "a number of seconds >= 0", ""),
    (
        "code_execution.max_tool_calls",
        "a whole number from 0 to 1000000000",
        "",
    ),
    (
        "code_execution.max_parallel_calls",
        "a whole number from 1 to 1024",
        "",
    ),
    (
        "code_execution.max_stdout_bytes",
        "a whole number from 1 to 1073741824",
        "",
    ),
    (
        "code_execution.max_stderr_bytes",
        "a whole number from 0 to 1073741824",
        "",
    ),
    (
        "code_execution.max_message_bytes",
        "a whole number from 1024 to 2147483647",
        "",
    ),
    ("code_execution.spill_dir", "a path", ""),
    (
        "code_execution.max_spill_bytes",
        "a whole number from 1 to 1099511627776",
        "",
    ),
    ("code_execution.module_name", "a string", "string"),
    ("code_execution.on_tool_error", r#""return" or "raise""#, ""),
    (
        "code_execution.isolation",
        "the name of a level or an object with `level`",
        "string object",
    ),
    (
        "code_execution.warm",
        "true, false or an object with `preload`",
        "boolean object",
    ),
    ("code_execution.allow_mcp", "true or false", "boolean"),
    ("terminal", "an object", "object"),
    (
        "terminal.env_passthrough",
        "a list of environment variable names",
        "list",
    ),
    ("terminal.cwd", "a path", ""),
    ("python", "a string", "string"),
    ("roots", "a list of paths", "list"),
    ("tools", "a list of tools", "list object"),
    (
        "builtin_tools",
        r#""all" or a list of names"#,
        "list string",
    ),
    (
        "code_execution.isolation.require",
        "true or false",
        "boolean",
    ),
];

const OPTIONS: [(&str, &str, &str); 8] = [
    ("mode", r#""project" or "strict""#, ""),
    ("cwd", "a path", ""),
    ("timeout", "a number of seconds > 0", ""),
    ("max_tool_calls", "a whole number from 0 to 1000000000", ""),
    ("tools", "a list of tool names", "list"),
    (
        "env_passthrough",
        "a list of environment variable names",
        "list",
    ),
    ("env", "an object", "object"),
    ("session", "a string", "string"),
];

/// `{"a":{"b":value}}` for `a.b`.
fn nested(path: &str, value: &str) -> String {
    let wrap = |inner: String, key: &str| format!("{{{}:{inner}}}", Value::from(key));
    path.rsplit('.').fold(value.to_string(), wrap)
}

fn config_error(config: &str) -> String {
    let error = Engine::new(config, Host::new()).expect_err(config);
    assert_eq!(error.code(), Code::Config, "{config}: {error}");
    error.message().to_string()
}

fn options_error(engine: &Engine, options: &str) -> String {
    let error = engine.start("print(1)", options).expect_err(options);
    assert_eq!(error.code(), Code::Config, "{options}: {error}");
    error.message().to_string()
}

#[test]
fn a_wrong_type_names_its_path_and_what_was_expected() {
    for (path, expected, kinds) in KEYS {
        for (kind, value) in KINDS {
            let right = kinds.split(' ').any(|k| k == kind);
            if right && kind == "boolean" {
                continue;
            }
            let message = config_error(&nested(path, value));
            if right {
                assert!(message.starts_with(path), "{path}: {value}: {message}");
            } else {
                assert_eq!(message, format!("{path}: expected {expected}, got {value}"));
            }
        }
    }
}

#[test]
fn a_wrong_type_in_the_options_does_the_same() {
    let engine = engine("");
    for (key, expected, kinds) in OPTIONS {
        for (kind, value) in KINDS {
            let message = options_error(&engine, &nested(key, value));
            if kinds.split(' ').any(|k| k == kind) {
                assert!(
                    message.starts_with(&format!("options.{key}")),
                    "{key}: {value}: {message}"
                );
            } else {
                assert_eq!(
                    message,
                    format!("options.{key}: expected {expected}, got {value}")
                );
            }
        }
    }
}

#[test]
fn null_is_the_default_for_every_key() {
    for (path, _, _) in KEYS {
        engine(&nested(path, "null"));
    }
    let engine = engine("");
    for (key, _, _) in OPTIONS {
        execute(&engine, &nested(key, "null"), "print(1)").printed();
    }
}

#[test]
fn unknown_keys_are_errors_inside_our_sections() {
    let cases = [
        (
            r#"{"code_execution":{"timeouts":5}}"#,
            r#"code_execution.timeouts: unknown key; did you mean "timeout"?; known here: mode, timeout, "#,
        ),
        (
            r#"{"terminal":{"passthrough":[]}}"#,
            "terminal.passthrough: unknown key",
        ),
        (
            r#"{"code_execution":{"isolation":{"levels":"none"}}}"#,
            r#"code_execution.isolation.levels: unknown key; did you mean "level"?"#,
        ),
        (
            r#"{"code_execution":{"warm":{"preloaded":[]}}}"#,
            "code_execution.warm.preloaded: unknown key",
        ),
        (
            r#"{"tools":[{"name":"a","parameters":{}}]}"#,
            "tools[0].parameters: unknown key",
        ),
        (
            r#"{"tools":["terminal",{"name":"a","":1}]}"#,
            r#"tools[1][""]: unknown key"#,
        ),
    ];
    for (config, begin) in cases {
        let message = config_error(config);
        assert!(message.starts_with(begin), "{config}: {message}");
    }
    let message = options_error(&engine(""), r#"{"time":5}"#);
    assert!(
        message.starts_with("options.time: unknown key"),
        "{message}"
    );
    assert!(
        message.ends_with(
            "known here: mode, cwd, timeout, max_tool_calls, tools, env_passthrough, env, session"
        ),
        "{message}"
    );
}

#[test]
fn an_agents_own_configuration_file_is_valid() {
    let config = json!({
        "model": {"default": "some-model", "provider": "auto"}, "toolsets": ["all"], "_config_version": 12,
        "agent": {"max_turns": 60}, "display": {}, "mcp_servers": {"x": {"command": "npx"}}, "memory": null,
        "code_execution": {"mode": "project", "timeout": 300, "max_tool_calls": 50},
        "terminal": {"backend": "local", "cwd": ".", "timeout": 180, "env_passthrough": [], "docker_image": "x:1"},
    });
    assert_eq!(
        run(&config.to_string(), "", "print('fine')").printed(),
        "fine\n"
    );
}

#[test]
fn what_is_no_json_object_is_refused_with_the_place() {
    for text in ["[]", "5", "\"x\"", "true"] {
        assert_eq!(
            config_error(text),
            format!("configuration: expected a JSON object, got {text}")
        );
        assert_eq!(
            options_error(&engine(""), text),
            format!("options: expected a JSON object, got {text}")
        );
    }
    for text in [
        "{",
        "{'a': 1}",
        "{\"a\":1,}",
        "timeout: 5",
        "{}{}",
        "{\"a\":NaN}",
    ] {
        let message = config_error(text);
        assert!(
            message.starts_with("configuration: not valid JSON: ") && message.contains("line 1"),
            "{message}"
        );
        let message = options_error(&engine(""), text);
        assert!(
            message.starts_with("options: not valid JSON: "),
            "{message}"
        );
    }
    let deep = format!("{{\"a\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    config_error(&deep);
    for text in ["", " \n", "{}", "null"] {
        engine(text);
    }
}

#[test]
fn limits_hold_at_both_ends_of_their_ranges() {
    let ranges: [(&str, &[&str], &[&str]); 9] = [
        (
            "timeout",
            &["0.001", "1", "31536000"],
            &["0", "-1", "31536001", "1e400", "1e-400"],
        ),
        ("kill_grace", &["0", "1", "3600"], &["-0.5", "3600.5"]),
        (
            "max_tool_calls",
            &["0", "1", "1000000000"],
            &["-1", "0.5", "1000000001", "1e99"],
        ),
        ("max_parallel_calls", &["1", "1024"], &["0", "1025"]),
        (
            "max_stdout_bytes",
            &["1", "1073741824"],
            &["0", "1073741825"],
        ),
        (
            "max_stderr_bytes",
            &["0", "1", "1073741824"],
            &["-1", "18446744073709551616"],
        ),
        (
            "max_message_bytes",
            &["1024", "2147483647"],
            &["0", "1", "1023", "2147483648"],
        ),
        (
            "max_spill_bytes",
            &["1", "1099511627776"],
            &["0", "1099511627777"],
        ),
        (
            "mode",
            &["\"strict\"", "\"PROJECT\""],
            &["\"\"", "\"both\""],
        ),
    ];
    for (key, good, bad) in ranges {
        let path = format!("code_execution.{key}");
        for value in good {
            engine(&nested(&path, value));
        }
        for value in bad {
            let message = config_error(&nested(&path, value));
            assert!(
                message.starts_with(&format!("{path}: expected ")),
                "{message}"
            );
            assert!(message.ends_with(&format!(", got {value}")), "{message}");
        }
    }
}

#[test]
fn the_widest_limits_are_no_burden() {
    let config = r#"{"code_execution":{"timeout":31536000,"kill_grace":3600,"max_tool_calls":1000000000,
        "max_parallel_calls":1024,"max_stdout_bytes":1073741824,"max_stderr_bytes":1073741824,
        "max_message_bytes":2147483647,"max_spill_bytes":1099511627776}}"#;
    assert_eq!(
        run(config, "", "print('x' * 100000)").printed().len(),
        100_001
    );
}

#[test]
fn without_grace_the_kill_comes_at_once() {
    let config = r#"{"code_execution":{"kill_grace":0,"timeout":1}}"#;
    let ran = run(
        config,
        "",
        "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nwhile True: signal.pause()",
    );
    assert_eq!(ran.error(), "Script timed out after 1s and was killed.");
    ran.assert_nothing_survived();
}

#[test]
fn only_so_many_calls_are_under_way_at_once() {
    let config = format!(r#"{{"code_execution":{{"max_parallel_calls":2}},"tools":[{ECHO}]}}"#);
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    // Two calls meet here, so there are at least two at once; a third would be seen.
    let pair = Barrier::new(2);
    let seen = Arc::clone(&most);
    let host = Host::new().threads(8).dispatch(move |call| {
        seen.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        pair.wait();
        now.fetch_sub(1, Ordering::SeqCst);
        call.reply("1").unwrap();
    });
    let engine = Engine::new(&config, host).unwrap();
    let code = "from concurrent.futures import ThreadPoolExecutor\nfrom hermes_tools import echo\n\
                with ThreadPoolExecutor(8) as pool:\n    print(sum(pool.map(lambda i: echo(value=i), range(40))))";
    assert_eq!(execute(&engine, "", code).printed(), "40\n");
    assert_eq!(most.load(Ordering::SeqCst), 2);
}

#[test]
fn a_message_over_the_limit_is_an_error_that_says_what_to_do() {
    let config = format!(r#"{{"code_execution":{{"max_message_bytes":1024}},"tools":[{ECHO}]}}"#);
    let engine = engine_with(&config, |_, args| {
        Ok(json!(
            "x".repeat(args["value"].as_u64().unwrap_or(0) as usize)
        ))
    });
    let code = "from hermes_tools import echo\nprint(len(echo(value=900)))\nprint(echo(value=2000)['error'])\necho(value='y' * 2000)";
    let ran = execute(&engine, "", code);
    let (stdout, _) = ran.output().split_once("--- stderr ---\n").unwrap();
    let lines: Vec<&str> = stdout.lines().collect();
    assert_eq!(lines[0], "900");
    assert!(
        lines[1].starts_with("the result of 'echo' is "),
        "{}",
        lines[1]
    );
    assert!(
        lines[1].contains("over the limit of 1024")
            && lines[1].contains("code_execution.max_message_bytes")
    );
    assert!(
        ran.error()
            .starts_with("ValueError: echo: the arguments are 2,0"),
        "{}",
        ran.error()
    );
    assert_eq!(ran.of_calls("state"), ["answered", "failed"]);
}

#[test]
fn the_module_is_called_as_configured() {
    let config =
        format!(r#"{{"code_execution":{{"module_name":"agent_tools"}},"tools":[{ECHO}]}}"#);
    let engine = engine_with(&config, echo);
    assert_eq!(
        execute(
            &engine,
            "",
            "from agent_tools import echo\nprint(echo(value=5))"
        )
        .printed(),
        "5\n"
    );
    let ran = execute(&engine, "", "import hermes_tools");
    assert_eq!(
        ran.error(),
        "ModuleNotFoundError: No module named 'hermes_tools'"
    );
    for name in [
        "a-b",
        "1a",
        "class",
        "json",
        "_x",
        "",
        "a.b",
        "sitecustomize",
    ] {
        let message = config_error(&nested(
            "code_execution.module_name",
            &Value::from(name).to_string(),
        ));
        assert!(
            message.starts_with(
                "code_execution.module_name: expected a name that scripts can import ("
            ),
            "{message}"
        );
    }
}

// ---- options over configuration ----

#[test]
fn options_win_for_their_run_only() {
    let (base, other) = (TempDir::new(), TempDir::new());
    let config = format!(
        r#"{{"code_execution":{{"mode":"strict","max_tool_calls":1}},"terminal":{{"cwd":{}}},"tools":[{ECHO}]}}"#,
        quoted(base.path())
    );
    let engine = engine_with(&config, echo);
    let code = "import os\nfrom hermes_tools import echo\nprint([echo(value=1) for _ in range(3)][-1] == 1)\nprint(os.environ.get('EXTRA'))";
    let options = format!(
        r#"{{"mode":"project","cwd":{},"max_tool_calls":3,"env":{{"EXTRA":"given"}},"timeout":200}}"#,
        quoted(other.path())
    );
    let ran = execute(&engine, &options, code);
    assert_eq!(ran.printed(), "True\ngiven\n");
    assert_eq!(
        (ran.text("mode"), ran.text("cwd")),
        ("project", other.str())
    );
    let ran = execute(&engine, "", code);
    assert_eq!(ran.printed(), "False\nNone\n");
    assert_eq!(ran.text("mode"), "strict");
    let ran = execute(&engine, r#"{"mode":"project"}"#, code);
    assert_eq!(ran.text("cwd"), base.str());
}

#[test]
fn bad_environment_pairs_are_refused() {
    let engine = engine("");
    for (options, message) in [
        (
            r#"{"env":{"A":1}}"#,
            "options.env.A: expected a string without NUL characters, got 1",
        ),
        (
            r#"{"env":{"A":"x\u0000y"}}"#,
            r#"options.env.A: expected a string without NUL characters, got "x\u0000y""#,
        ),
        (
            r#"{"env":{"A=B":"x"}}"#,
            r#"options.env["A=B"]: is no name of an environment variable"#,
        ),
        (
            r#"{"env":{"":"x"}}"#,
            r#"options.env[""]: is no name of an environment variable"#,
        ),
        (
            r#"{"env_passthrough":["OK",""]}"#,
            r#"options.env_passthrough[1]: expected an environment variable name, got """#,
        ),
    ] {
        assert_eq!(options_error(&engine, options), message);
    }
}

// ---- tools ----

fn two_tools() -> Engine {
    engine_with(
        &format!(r#"{{"tools":[{ECHO},"web_search"]}}"#),
        |tool, _| Ok(json!(tool)),
    )
}

#[test]
fn a_run_can_be_given_fewer_tools() {
    let engine = two_tools();
    let both = "from hermes_tools import echo, web_search\nprint(echo(), web_search('x'))";
    assert_eq!(execute(&engine, "", both).printed(), "echo web_search\n");
    let one = r#"{"tools":["echo"]}"#;
    assert_eq!(
        execute(&engine, one, "from hermes_tools import echo\nprint(echo())").printed(),
        "echo\n"
    );
    let ran = execute(&engine, one, both);
    assert_eq!(ran.status(), "error");
    assert!(
        ran.error().contains("web_search") && ran.error().contains("ImportError"),
        "{}",
        ran.error()
    );
    assert!(
        ran.hint()
            .contains("hermes_tools offers these tools: echo."),
        "{}",
        ran.hint()
    );
    assert_eq!(ran.json["tool_calls_made"], 0);

    let listing = "import hermes_tools\nprint(sorted(n for n in dir(hermes_tools) if n in ('echo', 'web_search')))";
    assert_eq!(
        execute(&engine, r#"{"tools":[]}"#, listing).printed(),
        "[]\n"
    );
    assert_eq!(execute(&engine, one, listing).printed(), "['echo']\n");
}

#[test]
fn a_tool_that_the_run_has_not_is_refused_on_the_wire_as_well() {
    let code = "import json, os, socket\ns = socket.socket(socket.AF_UNIX)\ns.connect(os.environ['PTC_RPC_SOCKET'])\n\
                s.sendall((json.dumps({'token': os.environ['PTC_RPC_TOKEN']}) + '\\n').encode())\n\
                s.sendall(b'{\"id\": 7, \"tool\": \"web_search\", \"args\": {\"query\": \"x\"}}\\n')\nprint(s.makefile().readline())";
    let ran = execute(&two_tools(), r#"{"tools":["echo"]}"#, code);
    let reply: Value = ran.printed_json();
    assert_eq!(
        reply,
        json!({"id": 7, "error": "Tool 'web_search' is not available in execute_code. Available: echo"})
    );
}

#[test]
fn a_subset_names_only_what_there_is() {
    let message = options_error(&two_tools(), r#"{"tools":["echo","web_serch"]}"#);
    assert_eq!(
        message,
        r#"options.tools[1]: this engine has no tool "web_serch"; did you mean "web_search"?; it has: echo, web_search"#
    );
    let message = options_error(&engine(""), r#"{"tools":["echo"]}"#);
    assert_eq!(
        message,
        r#"options.tools[0]: this engine has no tool "echo"; it has: none"#
    );
    let message = options_error(&two_tools(), r#"{"tools":["echo",5]}"#);
    assert_eq!(message, "options.tools[1]: expected a tool name, got 5");
}

#[test]
fn names_that_scripts_must_not_reach_are_refused() {
    for name in [
        "execute_code",
        "delegate_task",
        "mcp_github_search",
        "mcp__github__search",
    ] {
        for (tool, path) in [
            (json!(name), "tools[0]"),
            (
                json!({"name": name, "description": "", "input_schema": {}}),
                "tools[0].name",
            ),
        ] {
            let message = config_error(&json!({"tools": [tool]}).to_string());
            assert!(
                message.starts_with(&format!("{path}: ")) && message.contains(name),
                "{message}"
            );
        }
        let allowed = json!({"code_execution": {"allow_mcp": true},
            "tools": [{"name": name, "description": "", "input_schema": {}}]});
        let made = Engine::new(&allowed.to_string(), Host::new());
        assert_eq!(made.is_ok(), name.starts_with("mcp_"), "{name}");
    }
    let message = config_error(r#"{"tools":[{"name":"mcp_x"}]}"#);
    assert!(message.contains("allow_mcp"), "{message}");
}

#[test]
fn an_admitted_mcp_tool_can_be_called() {
    let config = r#"{"code_execution":{"allow_mcp":true},"tools":[{"name":"mcp__git__log","input_schema":{"type":"object"}}]}"#;
    let engine = engine_with(config, |tool, args| Ok(json!([tool, args])));
    let ran = execute(
        &engine,
        "",
        "from hermes_tools import mcp__git__log\nprint(mcp__git__log(n=1))",
    );
    assert_eq!(ran.printed(), "['mcp__git__log', {'n': 1}]\n");
}

#[test]
fn bad_tools_name_their_place() {
    for (tools, begin) in [
        (
            "[5]",
            "tools[0]: expected a tool (an object, or the name of a standard tool), got 5",
        ),
        ("[\"terminal\",null]", "tools[1]: expected a tool"),
        (
            "[\"web_serch\"]",
            r#"tools[0]: "web_serch" is no standard tool; did you mean "web_search"?"#,
        ),
        ("[{}]", "tools[0].name: missing"),
        ("[{\"name\":\"\"}]", "tools[0].name: "),
        ("[{\"name\":7}]", "tools[0].name: expected a string, got 7"),
        (
            "[{\"name\":\"a\",\"description\":7}]",
            "tools[0].description: expected a string, got 7",
        ),
        (
            "[{\"name\":\"a\",\"input_schema\":7}]",
            "tools[0].input_schema: ",
        ),
        (
            "[{\"name\":\"a\",\"input_schema\":{\"type\":\"array\"}}]",
            "tools[0].input_schema",
        ),
        (
            "[{\"name\":\"a\",\"parallel\":\"yes\"}]",
            "tools[0].parallel: expected true or false, got \"yes\"",
        ),
        ("[{\"name\":\"a\"},{\"name\":\"a\"}]", "tools[1]"),
        ("[{\"name\":\"a-b\"},{\"name\":\"a_b\"}]", "tools[1]"),
        ("[{\"name\":\"retry\"}]", "tools[0]"),
    ] {
        let message = config_error(&format!(r#"{{"tools":{tools}}}"#));
        assert!(message.starts_with(begin), "{tools}: {message}");
    }
}

#[test]
fn standard_tools_come_with_their_signatures() {
    let config = r#"{"tools":["web_search","web_extract","read_file","write_file","search_files","patch","terminal"]}"#;
    let engine = engine_with(config, |tool, args| Ok(json!([tool, args])));
    let cases = [
        ("web_search('q')", "web_search", json!({"query": "q"})),
        (
            "web_search('q', limit=3)",
            "web_search",
            json!({"query": "q", "limit": 3}),
        ),
        ("web_extract(['u'])", "web_extract", json!({"urls": ["u"]})),
        (
            "web_extract(['u'], char_limit=9)",
            "web_extract",
            json!({"urls": ["u"], "char_limit": 9}),
        ),
        (
            "read_file('p', 2, 3)",
            "read_file",
            json!({"path": "p", "offset": 2, "limit": 3}),
        ),
        (
            "write_file('p', 'c')",
            "write_file",
            json!({"path": "p", "content": "c"}),
        ),
        (
            "search_files('x', 'files', 'd')",
            "search_files",
            json!({"pattern": "x", "target": "files", "path": "d"}),
        ),
        (
            "search_files('x', file_glob='*.py', limit=5)",
            "search_files",
            json!({"pattern": "x", "file_glob": "*.py", "limit": 5}),
        ),
        (
            "patch('p', 'a', 'b', True)",
            "patch",
            json!({"path": "p", "old_string": "a", "new_string": "b", "replace_all": true}),
        ),
        (
            "patch(mode='patch', patch='*** Begin Patch')",
            "patch",
            json!({"mode": "patch", "patch": "*** Begin Patch"}),
        ),
        (
            "terminal('ls', timeout=5)",
            "terminal",
            json!({"command": "ls", "timeout": 5}),
        ),
        (
            "terminal('ls', workdir='d')",
            "terminal",
            json!({"command": "ls", "workdir": "d"}),
        ),
    ];
    let lines: Vec<String> = cases
        .iter()
        .map(|(call, ..)| format!("print(json.dumps({call}))"))
        .collect();
    let ran = execute(
        &engine,
        "",
        format!(
            "import json\nfrom hermes_tools import *\n{}",
            lines.join("\n")
        ),
    );
    for (line, (call, tool, given)) in ran.printed().lines().zip(&cases) {
        let seen: Value = serde_json::from_str(line).unwrap();
        assert_eq!(seen[0], *tool, "{call}");
        for (name, value) in given.as_object().unwrap() {
            assert_eq!(&seen[1][name], value, "{call}: {line}");
        }
    }
    assert_eq!(ran.json["tool_calls_made"], cases.len());

    let ran = execute(
        &engine,
        "",
        "from hermes_tools import terminal\nterminal('ls', background=True)",
    );
    assert!(
        ran.error().starts_with("TypeError: ") && ran.error().contains("background"),
        "{}",
        ran.error()
    );
    assert!(ran.error().contains("foreground"), "{}", ran.error());
    assert_eq!(ran.json["tool_calls_made"], 0);
}

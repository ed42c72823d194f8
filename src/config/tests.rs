use super::*;
use crate::error::Code;
use std::path::Path;

fn parse(json: &str) -> Config {
    Config::parse(json).unwrap_or_else(|e| panic!("{json}: {e}"))
}

fn error(json: &str) -> String {
    let error = Config::parse(json).expect_err(json);
    assert_eq!(error.code(), Code::Config, "{json}");
    error.message().to_string()
}

fn run(options: &str, config: &str) -> RunOptions {
    RunOptions::parse(options, &parse(config)).unwrap_or_else(|e| panic!("{options}: {e}"))
}

fn run_error(options: &str, config: &str) -> String {
    RunOptions::parse(options, &parse(config))
        .expect_err(options)
        .message()
        .to_string()
}

#[test]
fn nothing_means_the_defaults() {
    for json in [
        "",
        "  \n",
        "{}",
        "null",
        "\u{feff}{}",
        r#"{"code_execution":null,"terminal":null,"tools":null}"#,
    ] {
        let config = parse(json);
        assert_eq!(config.mode, Mode::Project);
        assert_eq!(config.timeout, Seconds::whole(300));
        assert_eq!(config.timeout.text, "300");
        assert_eq!(config.kill_grace.duration, Duration::from_secs(5));
        assert_eq!(config.max_tool_calls, 50);
        assert_eq!(config.max_parallel_calls, 16);
        assert_eq!(config.max_stdout_bytes, 50_000);
        assert_eq!(config.max_stderr_bytes, 10_000);
        assert_eq!(config.max_message_bytes, 67_108_864);
        assert_eq!(config.spill_dir, None);
        assert_eq!(config.max_spill_bytes, 5_000_000);
        assert_eq!(config.module_name, "hermes_tools");
        assert_eq!(config.on_tool_error, OnToolError::Return);
        assert_eq!(config.isolation, Isolation::default());
        assert_eq!(config.isolation.level, IsolationLevel::Guard);
        assert!(config.env_passthrough.is_empty());
        assert_eq!(config.cwd, None);
        assert_eq!(config.terminal_env, TerminalEnv::Scrubbed);
        assert_eq!(config.python, None);
        assert!(config.roots.is_empty());
        assert!(config.tools.is_empty());
    }
}

#[test]
fn null_means_the_default_for_every_key() {
    let nulls = |keys: &[&str]| {
        keys.iter()
            .map(|key| format!("\"{key}\":null"))
            .collect::<Vec<_>>()
            .join(",")
    };
    let config = parse(&format!(
        "{{\"code_execution\":{{{}}},\"terminal\":{{{}}},{}}}",
        nulls(&CODE_EXECUTION_KEYS),
        nulls(&TERMINAL_KEYS),
        nulls(&["python", "tools", "builtin_tools", "roots"])
    ));
    assert_eq!(format!("{config:?}"), format!("{:?}", parse("{}")));
}

#[test]
fn every_key_is_read() {
    let config = parse(
        r#"{"code_execution": {"mode": " Strict ", "timeout": 1.50, "kill_grace": 0, "max_tool_calls": 0,
            "max_parallel_calls": 1, "max_stdout_bytes": 5e4, "max_stderr_bytes": 0, "max_message_bytes": 1024.0,
            "spill_dir": "/tmp/spill", "max_spill_bytes": 7, "module_name": "my_tools", "on_tool_error": "raise",
            "isolation": "none", "warm": {"preload": ["json", "xml.etree"]}, "allow_mcp": true, "kernel_mode": "x"},
            "terminal": {"env_passthrough": ["A", "B", "A"], "cwd": "/srv", "env": "host"},
            "python": "/usr/bin/python3", "roots": ["/srv", "/data"], "tools": ["web_search"], "builtin_tools": ["read_file"]}"#,
    );
    assert_eq!(config.mode, Mode::Strict);
    assert_eq!(config.timeout.duration, Duration::from_millis(1500));
    assert_eq!(config.timeout.text, "1.50");
    assert_eq!(config.kill_grace.duration, Duration::ZERO);
    assert_eq!((config.max_tool_calls, config.max_parallel_calls), (0, 1));
    assert_eq!(
        (config.max_stdout_bytes, config.max_stderr_bytes),
        (50_000, 0)
    );
    assert_eq!(
        (config.max_message_bytes, config.max_spill_bytes),
        (1024, 7)
    );
    assert_eq!(config.spill_dir.as_deref(), Some(Path::new("/tmp/spill")));
    assert_eq!(config.module_name, "my_tools");
    assert_eq!(config.on_tool_error, OnToolError::Raise);
    assert_eq!(config.isolation.level, IsolationLevel::None);
    assert_eq!(config.env_passthrough, ["A", "B"]);
    assert_eq!(config.cwd.as_deref(), Some(Path::new("/srv")));
    assert_eq!(config.terminal_env, TerminalEnv::Host);
    assert_eq!(config.python.as_deref(), Some("/usr/bin/python3"));
    assert_eq!(config.roots, [Path::new("/srv"), Path::new("/data")]);
    let names: Vec<&str> = config.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["web_search", "read_file"]);
}

/// One row a key: a bad value, and the whole message.
#[test]
fn a_bad_value_names_its_path_and_what_was_expected() {
    let seconds = "expected a number of seconds > 0";
    let code = [
        ("mode", r#""banana""#, r#"expected "project" or "strict", got "banana""#.to_string()),
        ("mode", "1", r#"expected "project" or "strict", got 1"#.into()),
        ("mode", r#""stric""#, r#"expected "project" or "strict", got "stric"; did you mean "strict"?"#.into()),
        ("timeout", r#""5m""#, format!(r#"{seconds}, got "5m""#)),
        ("timeout", "0", format!("{seconds}, got 0")),
        ("timeout", "-0.0", format!("{seconds}, got -0.0")),
        ("timeout", "-1", format!("{seconds}, got -1")),
        ("timeout", "-1e999", format!("{seconds}, got -1e999")),
        ("timeout", "1e-300", format!("{seconds}, got 1e-300")),
        ("timeout", "1e300", format!("{seconds} and at most 31536000, got 1e300")),
        ("timeout", "1e999", format!("{seconds} and at most 31536000, got 1e999")),
        ("timeout", "true", format!("{seconds}, got true")),
        ("timeout", "[5]", format!("{seconds}, got [5]")),
        ("timeout", r#""NaN""#, format!(r#"{seconds}, got "NaN""#)),
        ("kill_grace", "-1", "expected a number of seconds >= 0, got -1".into()),
        ("kill_grace", "3601", "expected a number of seconds >= 0 and at most 3600, got 3601".into()),
        ("kill_grace", "{}", "expected a number of seconds >= 0, got {}".into()),
        ("max_tool_calls", "-1", "expected a whole number from 0 to 1000000000, got -1".into()),
        ("max_tool_calls", "1.5", "expected a whole number from 0 to 1000000000, got 1.5".into()),
        ("max_tool_calls", r#""50""#, r#"expected a whole number from 0 to 1000000000, got "50""#.into()),
        ("max_parallel_calls", "0", "expected a whole number from 1 to 1024, got 0".into()),
        ("max_stdout_bytes", "0", "expected a whole number from 1 to 1073741824, got 0".into()),
        (
            "max_stdout_bytes",
            "9223372036854775808",
            "expected a whole number from 1 to 1073741824, got 9223372036854775808".into(),
        ),
        ("max_stderr_bytes", "-5", "expected a whole number from 0 to 1073741824, got -5".into()),
        ("max_message_bytes", "1", "expected a whole number from 1024 to 2147483647, got 1".into()),
        ("max_message_bytes", "1e30", "expected a whole number from 1024 to 2147483647, got 1e30".into()),
        ("spill_dir", "5", "expected a path, got 5".into()),
        ("spill_dir", r#""""#, r#"expected a path, got """#.into()),
        ("spill_dir", r#""a\u0000b""#, r#"expected a path, got "a\u0000b""#.into()),
        ("max_spill_bytes", "0", "expected a whole number from 1 to 1099511627776, got 0".into()),
        ("module_name", "5", "expected a string, got 5".into()),
        (
            "module_name",
            r#""a.b""#,
            r#"expected a name that scripts can import (letters, digits and underscores, no keyword, no dots), got "a.b""#.into(),
        ),
        (
            "module_name",
            r#""json""#,
            r#"expected a name that scripts can import (none that the standard library or the interpreter uses), got "json""#.into(),
        ),
        ("on_tool_error", r#""throw""#, r#"expected "return" or "raise", got "throw""#.into()),
        ("isolation", r#""jail""#, r#"expected "none", "guard" or "sandbox", got "jail""#.into()),
        ("isolation", "true", "expected the name of a level or an object with `level`, got true".into()),
        ("warm", "1", "expected true, false or an object with `preload`, got 1".into()),
        ("warm", r#""yes""#, r#"expected true, false or an object with `preload`, got "yes""#.into()),
        ("allow_mcp", r#""yes""#, r#"expected true or false, got "yes""#.into()),
    ];
    for (key, value, message) in code {
        let json = format!(r#"{{"code_execution":{{"{key}":{value}}}}}"#);
        assert_eq!(error(&json), format!("code_execution.{key}: {message}"));
    }
    for (json, message) in [
        ("[]", "configuration: expected a JSON object, got []"),
        (
            r#"{"code_execution":[1]}"#,
            "code_execution: expected an object, got [1]",
        ),
        (
            r#"{"terminal":"local"}"#,
            r#"terminal: expected an object, got "local""#,
        ),
        (
            r#"{"terminal":{"cwd":1}}"#,
            "terminal.cwd: expected a path, got 1",
        ),
        (
            r#"{"terminal":{"env":{}}}"#,
            r#"terminal.env: expected "scrubbed" or "host", got {}"#,
        ),
        (
            r#"{"terminal":{"env_passthrough":"A"}}"#,
            r#"terminal.env_passthrough: expected a list of environment variable names, got "A""#,
        ),
        (
            r#"{"terminal":{"env_passthrough":["A","B=1"]}}"#,
            r#"terminal.env_passthrough[1]: expected an environment variable name, got "B=1""#,
        ),
        (
            r#"{"terminal":{"env_passthrough":[null]}}"#,
            "terminal.env_passthrough[0]: expected an environment variable name, got null",
        ),
        (r#"{"python":3}"#, "python: expected a string, got 3"),
        (
            r#"{"python":" "}"#,
            r#"python: expected the path or name of a Python interpreter, got " ""#,
        ),
        (
            r#"{"roots":"/"}"#,
            r#"roots: expected a list of paths, got "/""#,
        ),
        (r#"{"roots":["/",7]}"#, "roots[1]: expected a path, got 7"),
        (
            r#"{"tools":"web_search"}"#,
            r#"tools: expected a list of tools, got "web_search""#,
        ),
        (
            r#"{"builtin_tools":true}"#,
            r#"builtin_tools: expected "all" or a list of names, got true"#,
        ),
        (
            r#"{"code_execution":{"warm":{"preload":["a b"]}}}"#,
            r#"code_execution.warm.preload[0]: expected a module name, got "a b""#,
        ),
        (
            r#"{"code_execution":{"warm":{"preloads":[]}}}"#,
            r#"code_execution.warm.preloads: unknown key; did you mean "preload"?; known here: preload"#,
        ),
    ] {
        assert_eq!(error(json), message);
    }
}

#[test]
fn text_that_is_no_json_says_where() {
    let message = error("{\n  \"python\": nope}");
    assert!(
        message.starts_with("configuration: not valid JSON: "),
        "{message}"
    );
    assert!(message.contains("line 2"), "{message}");
    assert!(run_error("{", "").starts_with("options: not valid JSON: "));
    // What JSON cannot say never reaches the bounds.
    assert!(error(r#"{"code_execution":{"timeout":NaN}}"#).contains("not valid JSON"));
    assert!(error(r#"{"code_execution":{"timeout":Infinity}}"#).contains("not valid JSON"));
}

#[test]
fn a_long_value_is_not_repeated_in_full() {
    let message = error(&format!(
        r#"{{"code_execution":{{"timeout":"{}"}}}}"#,
        "é".repeat(5000)
    ));
    assert!(message.ends_with("é…"), "{message}");
    assert!(message.chars().count() < 150);
}

#[test]
fn unknown_keys_are_errors_inside_our_sections_only() {
    assert_eq!(
        parse(r#"{"model":{"default":"x"},"_config_version":50,"skills":[]}"#).max_tool_calls,
        50
    );
    let message = error(r#"{"code_execution":{"time_out":5}}"#);
    assert!(
        message.starts_with(r#"code_execution.time_out: unknown key; did you mean "timeout"?; known here: mode, timeout,"#),
        "{message}"
    );
    assert!(error(r#"{"code_execution":{"x y":null}}"#)
        .starts_with(r#"code_execution["x y"]: unknown key; known"#));
    assert!(error(r#"{"terminal":{"env_passtrough":[]}}"#)
        .contains(r#"did you mean "env_passthrough"?"#));
}

#[test]
fn a_peers_terminal_section_is_valid() {
    let config = parse(
        r#"{"terminal":{"backend":"docker","cwd":".","timeout":180,"lifetime_seconds":300,"home_mode":"auto",
            "docker_image":"x","docker_env":{},"container_cpu":1,"persistent_shell":true,"shell_init_files":[],
            "ssh_host":"h","sudo_password":"","modal_mode":"auto","env_passthrough":["A"]},"tools":{"tool_search":{}}}"#,
    );
    assert_eq!(config.env_passthrough, ["A"]);
    assert_eq!(config.cwd, std::env::current_dir().ok());
    assert!(config.tools.is_empty());
    assert!(error(r#"{"terminal":{"back_end_of":1}}"#).contains("unknown key"));
    assert!(error(r#"{"tools":{"tool_serch":{}}}"#).contains("expected a list of tools"));
}

#[test]
fn of_a_key_written_twice_the_last_counts() {
    let config = parse(r#"{"code_execution":{"timeout":"bad","timeout":7}}"#);
    assert_eq!(config.timeout.text, "7");
}

#[test]
fn home_and_relative_paths_are_made_absolute() {
    let home = std::env::var("HOME").unwrap();
    let config = parse(
        r#"{"terminal":{"cwd":"~/x y"},"code_execution":{"spill_dir":"~"},"python":"~/venv/bin/python"}"#,
    );
    assert_eq!(config.cwd, Some(Path::new(&home).join("x y")));
    assert_eq!(config.spill_dir, Some(PathBuf::from(&home)));
    assert_eq!(config.python, Some(format!("{home}/venv/bin/python")));
    // A user's name behind the tilde is a name, and a bare interpreter is looked up on PATH.
    let here = std::env::current_dir().unwrap();
    assert_eq!(
        parse(r#"{"terminal":{"cwd":"~nobody"}}"#).cwd,
        Some(here.join("~nobody"))
    );
    assert_eq!(
        parse(r#"{"python":"python3.11"}"#).python.as_deref(),
        Some("python3.11")
    );
    assert_eq!(
        parse(r#"{"python":"bin/python"}"#).python,
        Some(here.join("bin/python").display().to_string())
    );
}

#[test]
fn isolation_is_a_level_or_an_object() {
    let isolation =
        |value: &str| parse(&format!(r#"{{"code_execution":{{"isolation":{value}}}}}"#)).isolation;
    assert_eq!(isolation(r#""Sandbox""#).level, IsolationLevel::Sandbox);
    assert_eq!(isolation("{}"), Isolation::default());
    assert!(isolation(r#"{"require":true}"#).require);
    let full = isolation(
        r#"{"level":"sandbox","memory_mb":512,"cpu_seconds":10,"processes":20,"file_mb":5,"open_files":64,
            "write":["/a","/b"],"read":["/usr"],"write_cwd":false,"network":true,"unix_sockets":true,
            "require":true}"#,
    );
    let limits = isolation::Limits {
        memory_mb: Some(512),
        cpu_seconds: Some(10),
        processes: Some(20),
        file_mb: Some(5),
        open_files: Some(64),
    };
    assert_eq!(full.limits, limits);
    assert_eq!(full.write, [Path::new("/a"), Path::new("/b")]);
    assert_eq!(full.read, Some(vec![PathBuf::from("/usr")]));
    assert_eq!(
        (
            full.write_cwd,
            full.network,
            full.unix_sockets,
            full.require
        ),
        (false, true, true, true)
    );
    assert_eq!(
        isolation(r#"{"level":"sandbox","read":[]}"#).read,
        Some(Vec::new())
    );
    assert!(isolation(r#"{"level":"sandbox"}"#).write_cwd);
}

#[test]
fn every_key_of_isolation_is_checked() {
    let at = "code_execution.isolation";
    for (key, value, message) in [
        (
            "level",
            "2",
            r#"expected "none", "guard" or "sandbox", got 2"#,
        ),
        (
            "memory_mb",
            "1",
            "expected a whole number from 32 to 16777216, got 1",
        ),
        (
            "cpu_seconds",
            "0",
            "expected a whole number from 1 to 31536000, got 0",
        ),
        (
            "processes",
            "true",
            "expected a whole number from 1 to 4194304, got true",
        ),
        (
            "file_mb",
            "-1",
            "expected a whole number from 1 to 16777216, got -1",
        ),
        (
            "open_files",
            "15",
            "expected a whole number from 16 to 1048576, got 15",
        ),
        ("write", r#""/a""#, r#"expected a list of paths, got "/a""#),
        ("read", "1", "expected a list of paths, got 1"),
        ("write_cwd", "0", "expected true or false, got 0"),
        (
            "network",
            r#""off""#,
            r#"expected true or false, got "off""#,
        ),
        ("unix_sockets", "1", "expected true or false, got 1"),
        ("require", "1", "expected true or false, got 1"),
    ] {
        let level = if key == "level" {
            ""
        } else {
            r#""level":"sandbox","#
        };
        let json = format!(r#"{{"code_execution":{{"isolation":{{{level}"{key}":{value}}}}}}}"#);
        assert_eq!(error(&json), format!("{at}.{key}: {message}"));
    }
    let message = error(r#"{"code_execution":{"isolation":{"level":"sandbox","memory":1}}}"#);
    assert!(
        message.starts_with(&format!(
            "{at}.memory: unknown key; did you mean \"memory_mb\"?"
        )),
        "{message}"
    );
}

#[test]
fn a_limit_that_nothing_enforces_is_refused() {
    for (value, level) in [
        (r#"{"memory_mb":512}"#, "guard"),
        (r#"{"level":"none","network":true}"#, "none"),
    ] {
        let message = error(&format!(r#"{{"code_execution":{{"isolation":{value}}}}}"#));
        assert!(
            message.ends_with(&format!(
                r#"works with "level": "sandbox" only, the level is "{level}""#
            )),
            "{message}"
        );
    }
}

#[test]
fn options_default_to_the_configuration() {
    let config = r#"{"code_execution":{"mode":"strict","timeout":7,"max_tool_calls":3},
        "terminal":{"cwd":"/srv","env_passthrough":["A"]},"tools":["web_search"]}"#;
    for options in [
        "",
        "{}",
        "null",
        r#"{"mode":null,"cwd":null,"timeout":null,"max_tool_calls":null,"tools":null,
        "env_passthrough":null,"env":null,"session":null}"#,
    ] {
        let options = run(options, config);
        assert_eq!(options.mode, Mode::Strict);
        assert_eq!(options.timeout.text, "7");
        assert_eq!(options.max_tool_calls, 3);
        assert_eq!(options.cwd.as_deref(), Some(Path::new("/srv")));
        assert_eq!(options.env_passthrough, ["A"]);
        assert_eq!(options.tools, None);
        assert!(options.env.is_empty());
        assert_eq!(options.session, None);
    }
}

#[test]
fn options_lie_over_the_configuration() {
    let options = run(
        r#"{"mode":"project","cwd":"/tmp","timeout":2.5,"max_tool_calls":9,"tools":["terminal","web_search","terminal"],
            "env_passthrough":["A","B"],"env":{"X":"1","EMPTY":"","GONE":null,"X":"2"},"session":"chat 1"}"#,
        r#"{"code_execution":{"mode":"strict"},"terminal":{"cwd":"/srv","env_passthrough":["A"]},
            "tools":["web_search","web_extract","terminal"]}"#,
    );
    assert_eq!(options.mode, Mode::Project);
    assert_eq!(options.cwd.as_deref(), Some(Path::new("/tmp")));
    assert_eq!(options.timeout.text, "2.5");
    assert_eq!(options.max_tool_calls, 9);
    assert_eq!(
        options.tools,
        Some(vec!["web_search".to_string(), "terminal".to_string()])
    );
    assert_eq!(options.env_passthrough, ["A", "B"]);
    let pair = |name: &str, value: &str| (name.to_string(), value.to_string());
    assert_eq!(options.env, [pair("EMPTY", ""), pair("X", "2")]);
    assert_eq!(options.session.as_deref(), Some("chat 1"));
    assert_eq!(
        run(r#"{"tools":[]}"#, r#"{"tools":["terminal"]}"#).tools,
        Some(Vec::new())
    );
}

#[test]
fn bad_options_name_their_path() {
    let config = r#"{"tools":["web_search","terminal"]}"#;
    for (options, message) in [
        ("7", "options: expected a JSON object, got 7"),
        (
            r#"{"mode":"x"}"#,
            r#"options.mode: expected "project" or "strict", got "x""#,
        ),
        (r#"{"cwd":[]}"#, "options.cwd: expected a path, got []"),
        (
            r#"{"timeout":0}"#,
            "options.timeout: expected a number of seconds > 0, got 0",
        ),
        (
            r#"{"max_tool_calls":"x"}"#,
            r#"options.max_tool_calls: expected a whole number from 0 to 1000000000, got "x""#,
        ),
        (
            r#"{"tools":"all"}"#,
            r#"options.tools: expected a list of tool names, got "all""#,
        ),
        (
            r#"{"tools":[1]}"#,
            "options.tools[0]: expected a tool name, got 1",
        ),
        (
            r#"{"tools":["terminal","websearch"]}"#,
            r#"options.tools[1]: this engine has no tool "websearch"; did you mean "web_search"?; it has: web_search, terminal"#,
        ),
        (
            r#"{"env_passthrough":[""]}"#,
            r#"options.env_passthrough[0]: expected an environment variable name, got """#,
        ),
        (
            r#"{"env":["A=1"]}"#,
            r#"options.env: expected an object, got ["A=1"]"#,
        ),
        (
            r#"{"env":{"A":1}}"#,
            "options.env.A: expected a string without NUL characters, got 1",
        ),
        (
            r#"{"env":{"A":"x\u0000"}}"#,
            r#"options.env.A: expected a string without NUL characters, got "x\u0000""#,
        ),
        (
            r#"{"env":{"A=B":"1"}}"#,
            r#"options.env["A=B"]: is no name of an environment variable"#,
        ),
        (
            r#"{"session":5}"#,
            "options.session: expected a string, got 5",
        ),
        (
            r#"{"session":""}"#,
            r#"options.session: expected a name of 1 to 256 bytes without control characters, got """#,
        ),
    ] {
        assert_eq!(run_error(options, config), message);
    }
    assert!(run_error(r#"{"time":5}"#, "")
        .starts_with(r#"options.time: unknown key; did you mean "timeout"?"#));
    assert!(run_error(r#"{"tools":["x"]}"#, "").ends_with("it has: none"));
}

#[test]
fn the_names_of_enums_are_those_of_the_configuration() {
    assert_eq!(
        (Mode::Project.name(), Mode::Strict.name()),
        ("project", "strict")
    );
    assert_eq!(
        (OnToolError::Return.name(), OnToolError::Raise.name()),
        ("return", "raise")
    );
    assert_eq!(IsolationLevel::Sandbox.name(), "sandbox");
    assert!(
        IsolationLevel::None < IsolationLevel::Guard
            && IsolationLevel::Guard < IsolationLevel::Sandbox
    );
}

//! `ptc check`: what keeps a script from running, found without running any of it.

#[path = "support/cli.rs"]
mod cli;

use cli::{fed, json, ptc, run, text, Folder};

/// Checks `code`; what was said of it. Nothing means that it passes.
fn said(code: &str, args: &[&str]) -> String {
    let output = fed(code, &[&["check", "-"], args].concat());
    assert_eq!(text(&output.stdout), "");
    let message = text(&output.stderr).to_string();
    let status = if message.is_empty() { 0 } else { 1 };
    assert_eq!(output.status.code(), Some(status), "{message}");
    message
}

#[test]
fn a_script_that_can_run_passes_without_a_word() {
    for code in [
        "print(1)",
        "import asyncio\nawait asyncio.sleep(0)\n",
        "from hermes_tools import echo, parallel\nprint(echo(a=1))\n",
        "# coding: latin-1\nprint('ä')\n",
        "while True: pass",
        "raise SystemExit(3)",
        "import no_such_module_at_all",
    ] {
        assert_eq!(said(code, &["--tool", "echo=cat"]), "", "{code}");
    }
    let output = fed("print(1)", &["check", "-", "--json"]);
    assert_eq!(text(&output.stdout), "{\"passes\":true}\n");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn nothing_of_the_script_or_its_project_runs() {
    let folder = Folder::new();
    let marker = folder.path("ran");
    let touch = format!("open({marker:?}, 'w').close()\n");
    for module in ["json.py", "ast.py", "sitecustomize.py", "helper.py"] {
        folder.write(module, &touch);
    }
    let script = format!("import helper, json\n{touch}from hermes_tools import mark\nmark()\n@mark\ndef f(x={touch}): pass\n")
        .replace(".close()\n): pass", ".close()): pass");
    let bad = format!("{touch}x = = 1\n");
    let missing = format!("import helper\n{touch}from hermes_tools import mork\n");
    let awaits = format!("import asyncio\n{touch}await asyncio.sleep(0)\n");
    let tool = format!("mark=touch {marker}");
    for (code, passes) in [
        (&script, true),
        (&bad, false),
        (&missing, false),
        (&awaits, true),
    ] {
        let path = folder.write("script.py", code);
        let output = ptc(&["check", &path, "--tool", &tool, "--cwd"])
            .arg(&folder.0)
            .env("PYTHONPATH", &folder.0)
            .output()
            .unwrap();
        assert_eq!(output.status.success(), passes, "{}", text(&output.stderr));
        assert!(!std::path::Path::new(&marker).exists(), "{code}");
    }
    // The same script does all of that when it runs.
    let path = folder.write("script.py", &script);
    let ran = ptc(&["run", &path, "--tool", &tool, "--cwd"])
        .arg(&folder.0)
        .output()
        .unwrap();
    assert!(std::path::Path::new(&marker).exists(), "{ran:?}");
}

#[test]
fn a_syntax_error_is_shown_where_it_is() {
    let folder = Folder::new();
    let script = folder.write("s.py", "x = 1\nif x:\n\tä = = 2\n");
    let output = ptc(&["check", &script]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let found = json(&ptc(&["check", "--json", &script]).output().unwrap());
    assert_eq!(
        (&found["line"], &found["text"]),
        (&3.into(), &"\tä = = 2\n".into())
    );
    // Where exactly is for the interpreter to say; behind the tab, offsets begin with 1.
    let offset = found["offset"].as_u64().unwrap() as usize;
    assert!((5..=7).contains(&offset), "{found}");
    let caret = " ".repeat(4 + offset - 2) + "^";
    let place = format!("  File \"{script}\", line 3\n    ä = = 2\n{caret}\nSyntaxError: ");
    let message = text(&output.stderr);
    assert!(message.starts_with(&place), "{message}");
    let message = said("def f(:\n", &[]);
    assert!(message.starts_with("  File \"<stdin>\", line 1\n    def f(:\n"));
}

#[test]
fn a_missing_tool_is_named_with_the_nearest_one() {
    let tools = ["--tool", "echo=cat", "--builtin", "read_file"];
    let message = said(
        "from hermes_tools import echo\nprint('ä', red_file('x'))\n",
        &tools,
    );
    assert!(
        message.starts_with("  File \"<stdin>\", line 2\n    print('ä', red_file('x'))\n               ^\nNameError: "),
        "{message}"
    );
    assert!(message.contains("Did you mean 'read_file'?"), "{message}");
    let message = said("import hermes_tools as t\nt.ecko(1)\n", &tools);
    assert!(message.contains("Did you mean 'echo'?"), "{message}");
    let message = said("print(echo(a=1))\n", &tools);
    assert!(
        message.contains("Add: from hermes_tools import echo"),
        "{message}"
    );
}

#[test]
fn json_tells_the_place() {
    let output = fed(
        "from hermes_tools import ecko\n",
        &["check", "-", "--json", "--tool", "echo=cat"],
    );
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(text(&output.stderr), "");
    assert_eq!(output.stdout.iter().filter(|b| **b == b'\n').count(), 1);
    let found = json(&output);
    assert_eq!(found["passes"], false);
    assert_eq!(found["type"], "ImportError");
    assert_eq!((&found["line"], &found["offset"]), (&1.into(), &1.into()));
    assert_eq!(found["text"], "from hermes_tools import ecko");
    let whole = format!("ImportError: {}", found["message"].as_str().unwrap());
    assert_eq!(found["error"], whole);
}

#[test]
fn a_check_finds_what_a_run_finds() {
    for code in [
        "x = = 1",
        "  indented = 1\n",
        "return 1",
        "print('never closed",
        "from hermes_tools import ecko",
        "import hermes_tools\nhermes_tools.ecko()",
        "print(echo())",
        "def f():\n    await x\n",
    ] {
        let args = ["--json", "--tool", "echo=cat"];
        let ran = json(&run(code, &args));
        let found = json(&fed(code, &[&["check", "-"], &args[..]].concat()));
        assert_eq!(ran["started"], false, "{code}");
        assert_eq!(ran["error"], found["error"], "{code}");
    }
}

#[test]
fn what_cannot_be_checked_says_why() {
    for (code, args, expected) in [
        ("", &[][..], "empty"),
        ("a\0b", &[], "NUL byte"),
        (
            "print(1)",
            &["--python", "/no/such/python"],
            "/no/such/python",
        ),
    ] {
        let message = said(code, args);
        assert!(message.contains(expected), "{message}");
        let output = fed(code, &[&["check", "-", "--json"], args].concat());
        assert_eq!(output.status.code(), Some(1));
        let found = json(&output);
        assert_eq!(found["passes"], false);
        assert!(
            found["error"].as_str().unwrap().contains(expected),
            "{found}"
        );
    }
}

#[test]
fn bad_usage_is_explained() {
    for (args, expected) in [
        (&[][..], "say which script to check"),
        (&["/no/such.py"], "cannot read /no/such.py"),
        (&["-", "--trace", "x"], "unknown option --trace"),
        (&["-", "--cwd", "/no/such"], "--cwd expects a directory"),
        (&["a.py", "b.py"], "only one script"),
    ] {
        let output = ptc(&[&["check"], args].concat()).output().unwrap();
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {message}");
        assert!(message.contains(expected), "{args:?}: {message}");
    }
}

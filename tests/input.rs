//! What can be given as a script: text that is none, odd encodings, syntax errors, huge files, and the ways of Python
//! that depend on how a script is run.

mod support;

use ptc::{Code, Engine};
use serde_json::json;
use support::*;

fn refused(code: &[u8]) -> String {
    let error = engine("")
        .start(code, "")
        .expect_err("code that is refused");
    assert_eq!(error.code(), Code::InvalidArgument);
    let again = engine("").execute(code, "").expect_err("here as well");
    assert_eq!(again.message(), error.message());
    error.message().to_string()
}

fn plain(code: impl AsRef<[u8]>) -> Ran {
    execute(&engine(""), "", code)
}

fn echo_engine(settings: &str) -> Engine {
    engine_with(
        &format!(r#"{{"code_execution":{{{settings}}},"tools":[{ECHO}]}}"#),
        echo,
    )
}

// ---- text that is no script ----

#[test]
fn code_without_anything_in_it_is_refused() {
    for code in ["", " ", "\n\r\n\t ", "\u{feff}", "\u{feff}\n"] {
        assert_eq!(
            refused(code.as_bytes()),
            "code: empty; send a Python script that prints its result"
        );
    }
}

#[test]
fn a_nul_byte_is_refused_with_its_place() {
    assert_eq!(
        refused(b"print(1)\0"),
        "code: a NUL byte at byte 8, which Python does not accept in a script; write it as \\0 in a string"
    );
    assert_eq!(plain("print(len('a\\0b'))").printed(), "3\n");
}

#[test]
fn code_that_is_not_utf8_is_refused_with_its_place() {
    let cases: [&[u8]; 4] = [
        b"a = 1\nb = '\xff'",
        b"a = 1\nb = '\xe9t\xe9'",
        b"a = 1\nb = '\xed\xa0\x80'",
        b"a = 1\nb = '\xf0\x9f",
    ];
    for code in cases {
        assert_eq!(
            refused(code),
            "code: not valid UTF-8 at byte 11 (line 2); send the script as UTF-8"
        );
    }
    let utf16: Vec<u8> = "print(1)"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    assert!(refused(&utf16).starts_with("code: a NUL byte"));
}

#[test]
fn a_script_of_comments_succeeds_and_prints_nothing() {
    for code in [
        "# nothing",
        "# nothing\n\n# at all\n",
        "\"\"\"Words.\"\"\"",
        "pass",
    ] {
        let ran = plain(code);
        assert_eq!(ran.printed(), "");
        assert!(ran.hint().contains("printed nothing"));
    }
}

// ---- encodings and line ends ----

#[test]
fn marks_and_line_ends_of_other_systems_are_fine() {
    let body = [
        "if True:",
        "    print('é', 1)",
        "print('''a",
        "b''' == 'a\\nb')",
        "",
    ];
    for end in ["\n", "\r\n", "\r"] {
        for mark in ["", "\u{feff}"] {
            assert_eq!(
                plain(mark.to_string() + &body.join(end)).printed(),
                "é 1\nTrue\n",
                "{mark:?} {end:?}"
            );
        }
    }
    let ran = plain("\u{feff}print(1)\r\nprint(2)\r\n1/0");
    assert!(
        ran.output().starts_with("1\n2\n") && ran.output().contains("line 3, in <module>"),
        "{}",
        ran.output()
    );
}

#[test]
fn a_coding_declaration_does_not_spoil_the_text() {
    for declaration in [
        "# -*- coding: utf-8 -*-",
        "# -*- coding: latin-1 -*-",
        "#!/usr/bin/env python3\r\n# vim: set fileencoding=cp1252 :",
        "\n# coding: no_such_encoding",
        "# coding: ascii",
    ] {
        assert_eq!(
            plain(format!("{declaration}\nprint('é中🎉')")).printed(),
            "é中🎉\n",
            "{declaration}"
        );
    }
}

#[test]
fn a_script_needs_no_line_end_and_may_have_form_feeds() {
    assert_eq!(plain("print(1)").printed(), "1\n");
    assert_eq!(
        plain("\u{c}print(1)\n\u{c}\nprint(2)  # the end").printed(),
        "1\n2\n"
    );
    assert_eq!(
        plain("größe, 变量 = 1, 2\nprint(größe + 变量)").printed(),
        "3\n"
    );
}

// ---- syntax errors ----

#[test]
fn a_script_that_cannot_be_compiled_never_starts() {
    let cases = [
        ("print(1)\nif True:\nprint(2)\n", "IndentationError", 3),
        ("print(1)\nprint 'x'", "SyntaxError", 2),
        ("print(1)\nx = 'abc", "SyntaxError", 2),
        ("def f():\n\tif 1:\n        pass\n", "TabError", 3),
        ("return 5", "SyntaxError", 1),
        ("print(1)\nyield 5", "SyntaxError", 2),
        ("print(“x”)", "SyntaxError", 1),
        ("print(1)\r\n1 = x\r\n", "SyntaxError", 2),
        ("Here it is:\nprint(1)", "SyntaxError", 1),
        ("from __future__ import braces", "SyntaxError", 1),
        ("await x\n)", "SyntaxError", 2),
    ];
    for (code, kind, line) in cases {
        let ran = plain(code);
        assert_eq!(
            (ran.status(), &ran.json["started"]),
            ("error", &json!(false)),
            "{code}: {:#}",
            ran.json
        );
        assert_eq!(ran.json["exit_code"], 1, "{code}");
        assert!(
            ran.error().starts_with(&format!("{kind}: ")),
            "{code}: {}",
            ran.error()
        );
        assert_eq!(
            ran.hint(),
            format!("Nothing of the script has run: Python stopped at line {line}."),
            "{code}"
        );
        assert!(
            ran.output().starts_with("--- stderr ---\n  File \""),
            "{code}: {}",
            ran.output()
        );
        assert!(
            ran.output()
                .contains(&format!("script.py\", line {line}\n")),
            "{code}: {}",
            ran.output()
        );
        assert!(
            !ran.output().contains("Traceback"),
            "{code}: {}",
            ran.output()
        );
        assert_eq!(
            ran.output().matches(ran.error()).count(),
            1,
            "{code}: {}",
            ran.output()
        );
    }
}

#[test]
fn a_syntax_error_of_something_else_is_not_the_scripts() {
    for code in [
        "print('A')\nexec('x = =')",
        "print('A')\ncompile('(', 'other', 'exec')",
        "print('A')\nraise SyntaxError('mine')",
    ] {
        let ran = plain(code);
        assert!(ran.error().starts_with("SyntaxError: "), "{}", ran.error());
        assert!(!ran.has("started") && !ran.has("hint"), "{:#}", ran.json);
        assert!(
            ran.output().starts_with("A\n--- stderr ---\nTraceback"),
            "{}",
            ran.output()
        );
    }
}

#[test]
fn too_much_nesting_is_an_error_and_no_crash() {
    let deep = [
        "(".repeat(1000) + &")".repeat(1000),
        "[".repeat(150) + &"]".repeat(150) + "\nprint('fine')",
        "-".repeat(100_000) + "1",
        (0..150)
            .map(|i| format!("{}if 1:\n", " ".repeat(i)))
            .collect::<String>()
            + &" ".repeat(150)
            + "print(1)",
        format!("x = {}1\n", "lambda: ".repeat(5_000)),
        format!("x = a{}\n", ".b".repeat(100_000)),
    ];
    for code in deep {
        let ran = plain(&code);
        assert!(
            ran.status() == "success" || !ran.error().is_empty(),
            "{:.80}: {:#}",
            code,
            ran.json
        );
        assert!(!ran.has("signal"), "{code:.80}: {:#}", ran.json);
    }
}

// ---- size ----

#[test]
fn five_megabytes_of_code_run() {
    let comments =
        "# a line of words that nobody needs, just to make the script large\n".repeat(78_000);
    assert!(comments.len() > 5_000_000);
    assert_eq!(plain(comments + "print('end')").printed(), "end\n");
    let ran = plain(format!(
        "text = '''{}'''\nprint(len(text))",
        "0123456789\n".repeat(480_000)
    ));
    assert_eq!(ran.printed(), "5280000\n");
    let ran = plain("# x\n".repeat(1_300_000) + "x = (");
    assert_eq!(ran.json["started"], false);
    assert_eq!(
        ran.hint(),
        "Nothing of the script has run: Python stopped at line 1300001."
    );
}

#[test]
fn a_line_of_a_megabyte_runs() {
    let ran = plain(format!("print(len('{}'))", "é".repeat(500_000)));
    assert_eq!(ran.printed(), "500000\n");
    let ran = plain(format!("print(sum([{}]))", "1, ".repeat(330_000)));
    assert_eq!(ran.printed(), "330000\n");
    let ran = plain(format!("x = [{}\nprint(1)", "1, ".repeat(330_000)));
    assert!(ran.error().starts_with("SyntaxError"), "{}", ran.error());
    assert!(ran.output().len() < 60_000, "what is shown is bounded");
}

// ---- how a script is run ----

#[test]
fn a_script_is_the_main_module_in_a_file() {
    let code = "from __future__ import annotations\nimport inspect, sys\ndef f(x: Undefined): return x\n\
                if __name__ == '__main__':\n    print(sys.modules['__main__'].f is f, f.__module__, inspect.getsource(f).strip())\n\
                print(__doc__, f.__annotations__)";
    assert_eq!(
        plain(code).printed(),
        "True __main__ def f(x: Undefined): return x\nNone {'x': 'Undefined'}\n"
    );
}

#[test]
fn names_do_not_come_from_us() {
    let code = "print(sorted(n for n in globals() if n not in ('__annotations__', '__cached__')))";
    assert_eq!(
        plain(code).printed(),
        "['__builtins__', '__doc__', '__file__', '__loader__', '__name__', '__package__', '__spec__']\n"
    );
}

#[test]
fn its_own_classes_can_be_pickled() {
    let code = "import pickle, copy, dataclasses\n@dataclasses.dataclass\nclass P:\n    x: int\n\
                print(pickle.loads(pickle.dumps(P(1))), copy.deepcopy(P(2)), pickle.dumps(P(1))[:0])";
    assert_eq!(plain(code).printed(), "P(x=1) P(x=2) b''\n");
}

#[test]
fn multiprocessing_works_with_every_start_method() {
    let engine = echo_engine("");
    for method in ["fork", "spawn", "forkserver"] {
        let code = format!(
            "import multiprocessing\nfrom hermes_tools import echo\nclass Job:\n    def __init__(self, n): self.n = n\n\
             def work(job): return echo(value=job.n * 2)\nif __name__ == '__main__':\n    context = multiprocessing.get_context('{method}')\n\
             \x20   with context.Pool(2) as pool:\n        print(pool.map(work, [Job(n) for n in range(6)]))\n    print(echo(value='parent'))"
        );
        let ran = execute(&engine, "", &code);
        assert_eq!(ran.printed(), "[0, 2, 4, 6, 8, 10]\nparent\n", "{method}");
        assert_eq!(ran.json["tool_calls_made"], 7, "{method}");
        ran.assert_nothing_survived();
    }
    let ran = execute(
        &engine,
        "",
        "from concurrent.futures import ProcessPoolExecutor\nif __name__ == '__main__':\n    with ProcessPoolExecutor(2) as pool:\n\
         \x20       print(list(pool.map(abs, [-1, -2])))",
    );
    assert_eq!(ran.printed(), "[1, 2]\n");
}

#[test]
fn a_forked_child_calls_tools_on_its_own() {
    let code = "import os\nfrom hermes_tools import echo\nprint(echo(value='before'))\npid = os.fork()\n\
                if pid == 0:\n    print(echo(value='child'))\n    os._exit(0)\nos.waitpid(pid, 0)\nprint(echo(value='parent'))";
    let ran = execute(&echo_engine(""), "", code);
    assert_eq!(ran.printed(), "before\nchild\nparent\n");
}

#[test]
fn await_works_outside_of_functions() {
    let engine = echo_engine("");
    let code = "import asyncio\nfrom hermes_tools import aio\nprint(await aio.echo(value=1))\n\
                print(await asyncio.gather(*(aio.echo(value=n) for n in range(5))))\n\
                async def numbers():\n    for n in range(3):\n        yield n\nasync for n in numbers():\n    print(n)\n\
                print([n async for n in numbers()])";
    assert_eq!(
        execute(&engine, "", code).printed(),
        "1\n[0, 1, 2, 3, 4]\n0\n1\n2\n[0, 1, 2]\n"
    );

    let ran = execute(
        &engine,
        "",
        "import asyncio, sys\nprint('A')\nawait asyncio.sleep(0)\nsys.exit(3)",
    );
    assert_eq!((&ran.json["exit_code"], ran.output()), (&json!(3), "A\n"));
    let ran = execute(
        &engine,
        "",
        "import asyncio\nawait asyncio.sleep(0)\nprint('A')\n1/0",
    );
    assert_eq!(
        (ran.error(), &ran.json["exit_code"]),
        ("ZeroDivisionError: division by zero", &json!(1))
    );
    assert_eq!(files_of_traceback(&ran), ["script.py"], "{}", ran.output());

    let ordinary = "import asyncio\nfrom hermes_tools import aio\nasync def main():\n    print(await aio.echo(value=1))\nasyncio.run(main())";
    assert_eq!(execute(&engine, "", ordinary).printed(), "1\n");
}

/// The names of the files in a traceback, in their order.
fn files_of_traceback(ran: &Ran) -> Vec<&str> {
    let files = ran
        .output()
        .lines()
        .filter_map(|line| line.trim_start().strip_prefix("File \"")?.split('"').next());
    files
        .map(|path| path.rsplit('/').next().unwrap_or(path))
        .collect()
}

#[test]
fn a_traceback_shows_the_scripts_lines_and_none_of_ours() {
    let engine = echo_engine(r#""on_tool_error":"raise","max_tool_calls":0"#);
    let cases = [
        ("def f(x):\n    return 1 / x\n\nf(0)", "ZeroDivisionError: division by zero", 2, "    return 1 / x"),
        ("from hermes_tools import echo\ndef f():\n    echo(value=1)\nf()", "", 2, "    echo(value=1)"),
        ("from hermes_tools import echo\necho(value={1, 2})", "TypeError: echo: ", 1, "    echo(value={1, 2})"),
        ("from hermes_tools import echo\necho(nothing=1, value=2, x=object())", "TypeError: echo", 1, "    echo(nothing=1"),
        ("from hermes_tools import retry\ndef g():\n    raise ValueError('g')\nretry(g, 1)", "ValueError: g", 2, "    raise ValueError('g')"),
        (
            "from hermes_tools import parallel\ndef g():\n    raise KeyError('g')\nparallel([g, g])",
            "KeyError: 'g'",
            2,
            "    raise KeyError('g')",
        ),
    ];
    for (code, error, depth, line) in cases {
        let ran = execute(&engine, "", code);
        assert!(ran.error().contains(error), "{code}: {}", ran.error());
        let files = files_of_traceback(&ran);
        assert!(
            !files.contains(&"hermes_tools.py") && !files.contains(&"sitecustomize.py"),
            "{code}: {}",
            ran.output()
        );
        let own = files.iter().filter(|f| **f == "script.py").count();
        assert!(own >= depth, "{code}: {}", ran.output());
        assert!(ran.output().contains(line), "{code}: {}", ran.output());
    }
}

#[test]
fn a_recursion_is_shown_by_its_ends() {
    let ran = plain("def f(n):\n    return f(n + 1)\nf(0)");
    assert!(
        ran.error()
            .starts_with("RecursionError: maximum recursion depth exceeded"),
        "{}",
        ran.error()
    );
    assert!(
        ran.output().contains("line 3, in <module>"),
        "{}",
        ran.output()
    );
    assert!(ran.output().lines().count() < 120, "{}", ran.output());
}

#[test]
fn a_script_has_no_input_and_is_told_so() {
    let ran = plain("name = input('name? ')");
    assert_eq!(ran.error(), "EOFError: EOF when reading a line");
    assert_eq!(
        ran.hint(),
        "Scripts have no standard input: input() cannot be used; put the value into the script."
    );
    assert!(
        ran.output()
            .starts_with("name? \n--- stderr ---\nTraceback"),
        "{}",
        ran.output()
    );
    assert_eq!(
        plain("import sys\nprint(repr(sys.stdin.read()))").printed(),
        "''\n"
    );
}

#[test]
fn a_tool_that_there_is_not_stops_the_script_before_it_begins() {
    let code = "from hermes_tools import echo, eco\nprint('begun')\necho(value=1)\neco(value=2)";
    let ran = execute(&echo_engine(""), "", code);
    assert_eq!(ran.status(), "error");
    assert!(!ran.output().contains("begun\n"), "{}", ran.output());
    assert_eq!(ran.json["tool_calls_made"], 0);
    assert!(ran.error().contains("eco"), "{}", ran.error());
}

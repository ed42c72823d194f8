//! The helpers beside the tools, and what the module shows of itself.

use super::*;

#[test]
fn json_parse_forgives_what_surrounds_json() {
    expect_everywhere(
        r#"
from hermes_tools import json_parse
cases = [
    ('{"a": [1, 2.5, null, true]}', {"a": [1, 2.5, None, True]}),
    ('{"a": "tab\there\nnew line"}', {"a": "tab\there\nnew line"}),
    ('\ufeff{"a": 1}', {"a": 1}), (b'\xef\xbb\xbf[1]', [1]),
    ('```json\n{"a": 1}\n```', {"a": 1}), ('  ```\n[1]\n```\n', [1]),
    ('{"a": [1, 2, ], "b": ",]", }', {"a": [1, 2], "b": ",]"}), ('"text"', "text"), (" 7 ", 7),
    ('"quoted \\", ]"', 'quoted ", ]'), ({"a": 1}, {"a": 1}), (None, None),
    ("1" * 5000, int("1" * 2500) * (10**2500 + 1)),
]
for text, expected in cases:
    assert json_parse(text) == expected, (text, json_parse(text))
import json
for bad in ("", "{", "nothing like it", '{"a": }', "[1 2]", "```\n```"):
    try:
        json_parse(bad)
    except json.JSONDecodeError as error:
        assert str(error).startswith("json_parse: "), error
    else:
        raise AssertionError(bad)
print("ok")
"#,
        "ok\n",
    );
}

#[test]
fn shell_quote_makes_one_word_of_anything() {
    expect_everywhere(
        r#"
import pathlib, shlex, subprocess
from hermes_tools import shell_quote
for text in ("", "plain-1.txt", "two words", "`id` $(id) \"'\\'", "new\nline", "-é", "a;b", "~", "*"):
    assert shell_quote(text) == shlex.quote(text)
    assert subprocess.run(["sh", "-c", "printf %s " + shell_quote(text)], stdout=subprocess.PIPE).stdout.decode() == text
assert shell_quote(pathlib.Path("/a b")) == "'/a b'" and shell_quote(5) == "5"
print("ok")
"#,
        "ok\n",
    );
}

#[test]
fn retry_tries_again_and_waits_longer_each_time() {
    expect_everywhere(
        r#"
import time
from hermes_tools import fail, retry
waits, calls = [], []
time.sleep = waits.append
def third():
    calls.append(1)
    if len(calls) < 3: raise ValueError(len(calls))
    return "done"
assert retry(lambda: 1) == 1 and waits == []
assert retry(third, delay=0.5) == "done" and waits == [0.5, 1.0]
calls.clear(); waits.clear()
try:
    retry(third, max_attempts=2, delay=1)
except ValueError as error:
    assert error.args == (2,) and waits == [1]
calls.clear()
try:
    retry(third, exceptions=KeyError)
except ValueError:
    assert len(calls) == 1
waits.clear()
assert retry(lambda: fail("busy"), attempts=4, delay=1, backoff=3) == {"error": "busy"} and waits == [1, 3, 9]
for bad in (lambda: retry(third, 0), lambda: retry(5)):
    try: bad()
    except (ValueError, TypeError) as error: print(error)
"#,
        "retry: attempts must be at least 1, not 0\nretry: pass a function that makes the call, e.g. retry(lambda: web_search('x'))\n",
    );
}

#[test]
fn parallel_runs_calls_at_once_and_keeps_their_order() {
    expect_everywhere(
        r#"
import functools
from hermes_tools import echo, fail, meet, parallel
assert parallel([(meet, 8)] * 8) == [""] * 8
assert parallel([(meet, 3, "x"), functools.partial(meet, 3, "x"), lambda: meet(count=3, name="x")]) == ["x"] * 3
assert parallel([(echo, i) for i in range(100)]) == [*range(100)]
assert parallel(echo, "abc") == ["a", "b", "c"] and parallel([]) == [] and parallel(echo, []) == []
assert parallel([("echo", 1), (echo, {"value": 2}), (echo, {"other": 3}), {"tool": "echo", "args": {"value": 4}}]) == [1, 2, {"other": 3}, 4]
assert parallel([(fail, "no"), (echo, 1)]) == [{"error": "no"}, 1]
done = []
def bad(n): done.append(n); raise ValueError(n)
try:
    parallel([(bad, 1), (echo, 0), (bad, 2)])
except ValueError as error:
    assert error.args == (1,) and sorted(done) == [1, 2]
mixed = parallel([(bad, 1), (echo, 0)], return_exceptions=True)
assert repr(mixed) == "[ValueError(1), 0]" or repr(mixed) == "[ValueError(1,), 0]", mixed
for wrong in ([5], [("ecko", 1)], echo, [aio_call for aio_call in ["nothing"]]):
    try: parallel(wrong)
    except TypeError as error: print(str(error).split("Tools:")[0])
"#,
        "parallel: call 0 is a int, not a function or a (function, argument, ...) tuple\n\
         parallel: call 0: there is no tool or helper 'ecko'. Did you mean 'echo'? \n\
         parallel: pass a list of calls, e.g. parallel([(web_search, 'a'), (web_search, 'b')])\n\
         parallel: call 0: there is no tool or helper 'nothing'. \n",
    );
}

#[test]
fn aio_calls_overlap_and_leave_the_loop_alone() {
    expect_everywhere(
        r#"
import asyncio
from hermes_tools import aio, echo, fail
async def main():
    ticks = []
    async def tick():
        while True:
            ticks.append(1)
            await asyncio.sleep(0)
    ticking = asyncio.ensure_future(tick())
    assert await asyncio.gather(*(aio.meet(20) for _ in range(20))) == [""] * 20
    ticking.cancel()
    assert len(ticks) > 1
    assert await asyncio.gather(*(aio.echo([i, "x" * 100000]) for i in range(150))) == [[i, "x" * 100000] for i in range(150)]
    assert await aio.fail("no") == {"error": "no"} and echo(1) == 1
    for wrong in (lambda: aio.echo(), lambda: aio.echo({1}), lambda: aio.nothing()):
        try: await wrong()
        except (TypeError, AttributeError) as error: print(str(error).split(":")[0])
asyncio.run(main())
asyncio.run(main())
"#,
        &"echo() missing 1 required positional argument\necho\nthere is no tool or helper 'nothing'. Tools\n".repeat(2),
    );
}

#[test]
fn a_cancelled_aio_call_is_given_up_and_harms_no_other() {
    expect_everywhere(
        r#"
import asyncio
from hermes_tools import aio
async def main():
    await asyncio.gather(*(aio.echo(i) for i in range(5)))
    for round in range(20):
        stuck = [asyncio.ensure_future(aio.meet(1000, f"never {round}")) for _ in range(5)]
        await asyncio.sleep(0)
        good = asyncio.gather(*(aio.echo([round, i]) for i in range(5)))
        for task in stuck: task.cancel()
        assert await good == [[round, i] for i in range(5)]
        assert all(isinstance(e, asyncio.CancelledError) for e in await asyncio.gather(*stuck, return_exceptions=True))
    try:
        await asyncio.wait_for(aio.meet(1000, "never"), 0.001)
    except asyncio.TimeoutError:
        print(await aio.echo("after"))
asyncio.run(main())
"#,
        "after\n",
    );
}

#[test]
fn tools_can_be_searched_and_described() {
    expect_everywhere(
        r#"
from hermes_tools import tools, echo, list as list_files
print(tools.names(), len(tools), "hang-up" in tools, "nothing" in tools)
print([t["name"] for t in tools.search("zebra")], [t["name"] for t in tools.search("ZEBRA files")], tools.search("zzz"))
print(len(tools.search()), len(tools.search(limit=2)), tools.search("echo")[0])
print(tools.describe("list")); print(tools.describe(echo) == tools.describe("echo"), tools.echo(5), list_files("x"))
for wrong in (lambda: tools.describe("ecko"), lambda: tools.ecko):
    try: wrong()
    except (LookupError, AttributeError) as error: print(type(error).__name__, "Did you mean 'echo'?" in str(error))
"#,
        "['echo', 'fail', 'reply', 'meet', 'hang_up', 'list'] 6 True False\n['list'] ['list', 'echo'] []\n\
         6 2 {'name': 'echo', 'signature': 'echo(value: any)', 'summary': 'Returns its argument.'}\n\
         list(path='.')\n\nThe search word is zebra.\nTrue 5 ['x']\nLookupError True\nAttributeError True\n"
            .replace("['list'] ['list', 'echo'] []", "['list'] ['list'] []")
            .as_str(),
    );
}

#[test]
fn the_module_shows_tools_and_helpers_only() {
    expect_everywhere(
        r#"
import hermes_tools, pydoc, inspect, pickle
helpers = ["ToolError", "aio", "json_parse", "parallel", "retry", "shell_quote", "tools"]
shown = [name for name in dir(hermes_tools) if not name.startswith("__")]
assert sorted(shown) == sorted(helpers + ["echo", "fail", "hang_up", "list", "meet", "reply"]), shown
assert sorted(hermes_tools.__all__) == sorted(shown)
assert "Returns its argument" in pydoc.render_doc(hermes_tools.echo)
assert str(inspect.signature(hermes_tools.echo)) == "(value)"
assert pickle.loads(pickle.dumps(hermes_tools.echo)) is hermes_tools.echo
# A tool called `list` is no longer there for the module's own code, which uses the built-in one.
assert hermes_tools.parallel(hermes_tools.echo, range(2)) == [0, 1]
from hermes_tools import *
print(echo(1), retry(lambda: 2))
"#,
        "1 2\n",
    );
}

#[test]
fn a_missing_tool_is_answered_with_what_there_is() {
    let code = r#"
import hermes_tools
for text in ("from hermes_tools import ecko", "hermes_tools.ecko", "from hermes_tools import echo, web_search"):
    try:
        exec(text)
    except (ImportError, AttributeError) as error:
        print(type(error).__name__, error)
print(hasattr(hermes_tools, "ecko"), getattr(hermes_tools, "ecko", None))
"#;
    let tools = "Tools: echo, fail, reply, meet, hang_up, list. Helpers: ToolError, aio, json_parse, parallel, retry, shell_quote, tools";
    let expected = format!(
        "ImportError cannot import name 'ecko' from 'hermes_tools': there is no tool or helper 'ecko'. Did you mean 'echo'? {tools}\n\
         AttributeError module 'hermes_tools' has no attribute 'ecko': there is no tool or helper 'ecko'. Did you mean 'echo'? {tools}\n\
         ImportError cannot import name 'web_search' from 'hermes_tools': there is no tool or helper 'web_search'. {tools}\n\
         False None\n"
    );
    expect_everywhere(code, &expected);
}

#[test]
fn a_run_can_narrow_the_tools() {
    for python in pythons() {
        let mut stage = Stage::new();
        stage
            .environment
            .insert("PTC_TOOLS".into(), "echo,hang-up".into());
        let code = r#"
import hermes_tools, subprocess, sys
print(hermes_tools.tools.names(), hasattr(hermes_tools, "list"), hasattr(hermes_tools.aio, "list"), "list" in hermes_tools.__all__)
print(hermes_tools.echo(1), list((2,)))
print(subprocess.run([sys.executable, "-c", "import hermes_tools; print(hermes_tools.tools.names())"], stdout=subprocess.PIPE).stdout)
"#;
        let expected =
            "['echo', 'hang_up'] False False False\n1 [2]\nb\"['echo', 'hang_up']\\n\"\n";
        assert_eq!(stage.run(python, code).clean(python), expected);
        stage.environment.insert("PTC_TOOLS".into(), "".into());
        assert_eq!(
            stage
                .run(
                    python,
                    "import hermes_tools\nprint(hermes_tools.tools.names())\n"
                )
                .clean(python),
            "[]\n"
        );
    }
}

#[test]
fn files_of_the_project_cannot_take_the_place_of_what_the_module_needs() {
    for python in pythons() {
        let stage = Stage::new();
        for name in [
            "json",
            "socket",
            "re",
            "threading",
            "difflib",
            "asyncio",
            "opcode",
            "enum",
            "selectors",
            "_json",
            "queue",
        ] {
            stage
                .project
                .write(&format!("{name}.py"), &format!("mine = '{name}'\n"));
        }
        stage
            .project
            .write("collections/__init__.py", "mine = 'collections'\n");
        let code = r#"
import json, socket, sys, threading
kept = [json, socket, threading]
from hermes_tools import echo, json_parse, parallel
print(echo({"a": 1}), json_parse('{"a": 1}'), parallel(echo, [1, 2]))
try:
    from hermes_tools import ecko
except ImportError as error:
    print("Did you mean 'echo'?" in str(error))
print(json.mine, socket.mine, all(sys.modules[module.__name__] is module for module in kept))
import json, re
print(json.mine)
"#;
        let outcome = stage.run(python, code);
        let expected = "{'a': 1} {'a': 1} [1, 2]\nTrue\njson socket True\njson\n";
        assert_eq!(
            (outcome.stdout.as_str(), outcome.code),
            (expected, Some(0)),
            "{}",
            outcome.stderr
        );
        let code = "import sys, os\nfrom hermes_tools import aio\nprint(await aio.echo(1))\n";
        assert_eq!(stage.run(python, code).clean(python), "1\n");
    }
}

//! What becomes of values on their way to a tool and back: the table of the README, row by row, in whole runs.

mod support;

use ptc::{Engine, Host};
use serde_json::{json, Value};
use support::*;

const TOOLS: &str = r#"[{"name":"echo","input_schema":{"type":"object","properties":{"value":{}},"required":["value"]}},
                        {"name":"raw","input_schema":{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}}]"#;

fn config(settings: &str) -> String {
    format!(r#"{{"tools":{TOOLS},"code_execution":{{"max_tool_calls":1000{settings}}}}}"#)
}

/// An engine whose `echo` returns its argument, letter by letter, and whose `raw` returns what `replies` has.
fn engine_of(settings: &str, replies: &'static [(&'static str, &'static str)]) -> Engine {
    let host = Host::new().dispatch(move |call| {
        let args = call.args();
        let answered = match call.tool() {
            "echo" => {
                // As text, so that nothing is lost on the way through a number type of ours.
                let value = args
                    .trim_start_matches("{\"value\":")
                    .trim_start()
                    .strip_suffix('}');
                call.reply(value.unwrap_or("null"))
            }
            _ => {
                let args: Value = serde_json::from_str(args).unwrap();
                let reply = replies.iter().find(|(name, _)| args["name"] == *name);
                reply.map_or_else(|| call.fail("no such reply"), |(_, json)| call.reply(json))
            }
        };
        answered.unwrap();
    });
    Engine::new(&config(settings), host).unwrap()
}

fn run_with(code: &str) -> Ran {
    execute(
        &engine_of("", &[]),
        "",
        format!("from hermes_tools import *\n{code}"),
    )
}

#[test]
fn what_json_can_say_arrives_as_it_was_sent() {
    let code = r#"
values = [
    "", "text", "123", "null", '{"a": 1}', "a\nb\t\"\\ \x00 \x1f \x7f \u2028 \u00e9 \u4e2d \U0001f389",
    0, -1, 2**53 + 1, 2**63, -2**64, 10**400, 0.1, 1e300, 5e-324, -0.0, 1.0, 3.141592653589793,
    True, False, None, [], {}, [[]], {"": {"": []}}, {"a b": [1, "1", 1.0, True, None]},
]
for value in values:
    back = echo(value)
    assert type(back) is type(value) and repr(back) == repr(value), (value, back)
print(len(values))"#;
    assert_eq!(run_with(code).printed(), "26\n");
}

#[test]
fn what_has_an_obvious_form_in_json_is_converted() {
    let code = r#"
import dataclasses, datetime, enum, pathlib, collections
@dataclasses.dataclass
class Point:
    x: int
    tags: tuple
class Colour(enum.Enum):
    RED = "red"
class Number(enum.IntEnum):
    ONE = 1
for value in [(1, (2,)), Point(1, ("a",)), Colour.RED, Number.ONE, pathlib.Path("/a/b"), datetime.date(2026, 1, 2),
              datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.timezone.utc), datetime.time(1, 2),
              {1: "int", True: "bool", None: "none", 1.5: "float"}, collections.OrderedDict(a=1), collections.Counter("aa")]:
    print(echo(value))"#;
    assert_eq!(
        run_with(code).printed(),
        "[1, [2]]\n{'x': 1, 'tags': ['a']}\nred\n1\n/a/b\n2026-01-02\n2026-01-02T03:04:05+00:00\n01:02:00\n\
         {'1': 'bool', 'null': 'none', '1.5': 'float'}\n{'a': 1}\n{'a': 2}\n"
    );
}

#[test]
fn what_json_cannot_say_is_refused_with_the_argument_and_what_to_pass() {
    let code = r#"
for value in [float("nan"), float("inf"), -float("inf"), {1, 2}, frozenset(), b"bytes", bytearray(), 1j, object(), print,
              {"deep": [0, {"er": b"x"}]}, {(1, 2): 3}]:
    try:
        print("sent", echo(value))
    except TypeError as error:
        assert "echo" in str(error) and "value" in str(error), error
        print("refused")
try:
    echo({"deep": [0, {"er": b"x"}]})
except TypeError as error:
    print(error)"#;
    let ran = run_with(code);
    let lines: Vec<&str> = ran.printed().lines().collect();
    assert_eq!(lines[..12], ["refused"; 12]);
    assert!(
        lines[12].contains("deep") && lines[12].contains("er") && lines[12].contains("decode"),
        "{}",
        lines[12]
    );
    assert_eq!(ran.json["tool_calls_made"], 0);
}

#[test]
fn lone_surrogates_come_to_the_host_and_back() {
    let code = r#"
back = echo("a\ud800b\udfff")
print(ascii(back), ascii(raw("lone")))"#;
    let engine = engine_of("", &[("lone", r#""x\ud83dy""#)]);
    let ran = execute(&engine, "", format!("from hermes_tools import *\n{code}"));
    assert_eq!(ran.printed(), "'a\\ud800b\\udfff' 'x\\ud83dy'\n");
}

#[test]
fn a_string_stays_a_string_and_a_number_keeps_its_digits() {
    let replies = &[
        ("string", r#""{\"a\": 1}""#),
        ("number", "123456789012345678901234567890"),
        ("float", "1E+2"),
        ("null", " null "),
        ("text", r#""\u0000\n\ud83c\udf89""#),
    ];
    let code = "for name in ('string', 'number', 'float', 'null', 'text'): print(repr(raw(name)))";
    let ran = execute(
        &engine_of("", replies),
        "",
        format!("from hermes_tools import *\n{code}"),
    );
    assert_eq!(
        ran.printed(),
        "'{\"a\": 1}'\n123456789012345678901234567890\n100.0\nNone\n'\\x00\\n🎉'\n"
    );
}

#[test]
fn nesting_of_any_depth_is_a_value_or_an_error() {
    let code = r#"
def nested(depth):
    value = 1
    for _ in range(depth): value = [value]
    return value
print(echo(nested(100)) == nested(100))
for depth in (10_000, 100_000):
    try:
        print("sent", len(str(type(echo(nested(depth))))) > 0)
    except (TypeError, ValueError, RecursionError, ToolError) as error:
        print("refused", len(str(error)) > 10)"#;
    let ran = run_with(code);
    let lines: Vec<&str> = ran.printed().lines().collect();
    assert_eq!(lines.len(), 3, "{:#}", ran.json);
    assert!(
        lines.iter().all(|line| line.ends_with("True")),
        "{:#}",
        ran.json
    );
}

#[test]
fn sixty_four_mebibytes_are_a_result_and_one_byte_more_an_error() {
    // The frame around a result: {"id": n, "result": "…"} and a line end.
    let code = r#"
size = 64 * 2**20
text = echo("x" * (size - 100))
print(len(text), text.count("x"))
try:
    print(echo("x" * (size + 1)))
except ValueError as error:
    print(f"{size:,}" in str(error), "less at a time" in str(error))"#;
    let ran = run_with(code);
    assert_eq!(ran.printed(), "67108764 67108764\nTrue True\n");
    let engine = engine_with(&config(r#","max_message_bytes":2000"#), |_, args| {
        Ok(json!("y".repeat(args["value"].as_u64().unwrap() as usize)))
    });
    let code = "from hermes_tools import *\nprint(len(echo(1900)))\nprint(echo(2000)['error'])";
    let ran = execute(&engine, "", code);
    let (fits, error) = ran.printed().split_once('\n').unwrap();
    assert_eq!(fits, "1900");
    assert!(
        error.contains("over the limit of 2000") && error.contains("max_message_bytes"),
        "{error}"
    );
}

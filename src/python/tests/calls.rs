//! Calls, the values that they carry, and the processes and threads that they come from.

use super::*;

#[test]
fn values_arrive_as_they_were_sent() {
    expect_everywhere(
        r#"
from hermes_tools import echo, reply
values = [None, True, False, 0, -1, 2**63, 10**100, 1.5, 0.1, 1e-7, 5e-324, -0.0, 1.7976931348623157e308, "", "a\x00b",
          "é\U0001f389", "\ud800 alone", '{"looks": "like JSON"}', "line\nline\u2028", [], {}, [[], {}], {"": 1, "ключ": [1]}]
for value in values:
    back = echo(value)
    assert back == value and type(back) is type(value), (value, back)
    assert repr(back) == repr(value)
assert repr(echo(values)) == repr(values)
big = 10**10000 + 7
assert echo(big) == big and echo(-big) == -big and echo([{"n": big}]) == [{"n": big}]
assert reply('"\\ud83d"') == "\ud83d" and reply("1e400") == float("inf")
assert len(echo("x" * 900000)) == 900000
assert reply("[1 , 2]") == [1, 2]
print("ok")
"#,
        "ok\n",
    );
}

#[test]
fn objects_with_an_obvious_json_form_are_converted() {
    expect_everywhere(
        r#"
import collections, dataclasses, datetime, enum, pathlib
from hermes_tools import echo
class Text(str): pass
class Number(int): pass
class Colour(enum.Enum): RED = "red"
class Level(enum.IntEnum): LOW = 1
@dataclasses.dataclass
class Point:
    x: int
    y: object = None
class Scalar:
    def __index__(self): return 10**30
Pair = collections.namedtuple("Pair", "a b")
cases = [
    ((1, (2,)), [1, [2]]), (Text("t"), "t"), (Number(5), 5), (Colour.RED, "red"), (Level.LOW, 1),
    (Point(1, [Point(2)]), {"x": 1, "y": [{"x": 2, "y": None}]}), (Pair(1, 2), [1, 2]), (Scalar(), 10**30),
    (datetime.date(2024, 2, 29), "2024-02-29"), (datetime.datetime(2024, 1, 2, 3, 4, 5), "2024-01-02T03:04:05"),
    (datetime.time(1, 2), "01:02:00"), (pathlib.PurePosixPath("/a/b"), "/a/b"),
    ({1: "a", None: 2, True: 3, 1.5: 4}, {"1": 3, "null": 2, "1.5": 4}), (collections.OrderedDict(a=1), {"a": 1}),
]
for value, expected in cases:
    assert echo(value) == expected, (value, echo(value))
    # The slow way, which an integer of many digits forces, gives the same.
    assert echo([value, 10**5000]) == [expected, 10**5000], value
print("ok")
"#,
        "ok\n",
    );
}

#[test]
fn what_json_cannot_carry_is_refused_by_name_and_not_sent() {
    let code = r#"
from hermes_tools import echo
class Own: pass
deep = []
for _ in range(100000): deep = [deep]
round_ = {}; round_["again"] = round_
cases = [
    (float("nan"), TypeError, "echo: argument 'value' is nan, which JSON cannot carry"),
    ([1, {"x y": {"k": float("-inf")}}], TypeError, "argument 'value[1]['x y'].k' is -inf"),
    ({1, 2}, TypeError, "argument 'value' is a set, which JSON cannot carry; pass a list"),
    ({"a": [0, b"x"]}, TypeError, "argument 'value.a[1]' is a bytes, which"),
    (Own(), TypeError, "argument 'value' is a Own, which"),
    (Own, TypeError, "call it first"),
    (range(3), TypeError, "pass list(...)"),
    ((x for x in "ab"), TypeError, "pass list(...)"),
    ({(1, 2): 3}, TypeError, "argument 'value' has a key of type tuple: (1, 2)"),
    (1j, TypeError, "is a complex"),
    (deep, ValueError, "echo: an argument is nested too deeply"),
    (round_, ValueError, "or contains itself"),
    ("x" * 1000000, ValueError, "the arguments are 1,000,0"),
]
for value, kind, text in cases:
    try:
        echo(value)
    except kind as error:
        assert text in str(error), str(error)
    else:
        raise AssertionError(text)
print(echo("still works"))
"#;
    for python in pythons() {
        let stage = Stage::new();
        assert_eq!(stage.run(python, code).clean(python), "still works\n");
        assert_eq!(stage.server.calls(), 1);
    }
}

#[test]
fn deep_nesting_is_an_error_or_an_answer_but_no_crash() {
    expect_everywhere(
        r#"
from hermes_tools import echo, reply, ToolError
for depth in (500, 10000, 200000):
    try:
        assert isinstance(reply("[" * depth + "]" * depth), list)
    except ToolError as error:
        assert "nested too deeply" in error.message
    value = []
    for _ in range(min(depth, 100000)): value = [value]
    try:
        echo(value)
    except (ToolError, ValueError) as error:
        assert "nested too deeply" in str(error), error
print(echo(1))
"#,
        "1\n",
    );
}

#[test]
fn a_failed_call_is_a_value_or_an_exception_as_configured() {
    let code = r#"
import pickle
from hermes_tools import fail, ToolError
try:
    print(fail("out of quota"))
except ToolError as error:
    print(repr(error.tool), repr(error.message), error)
    again = pickle.loads(pickle.dumps(error))
    assert (again.tool, again.message) == (error.tool, error.message)
"#;
    let python = pythons().last().unwrap();
    let mut stage = Stage::new();
    assert_eq!(
        stage.run(python, code).clean(python),
        "{'error': 'out of quota'}\n"
    );
    stage.on_error = "raise";
    assert_eq!(
        stage.run(python, code).clean(python),
        "'fail' 'out of quota' fail: out of quota\n"
    );
}

#[test]
fn a_lost_connection_is_a_clear_error_and_the_next_call_gets_a_new_one() {
    let code = r#"
from hermes_tools import hang_up, echo, ToolError
try:
    hang_up()
except ToolError as error:
    print(error)
print(echo(1))
"#;
    for python in pythons() {
        let stage = Stage::new();
        let stdout = stage.run(python, code).clean(python);
        assert!(
            stdout.starts_with("hang-up: the connection to the host was lost"),
            "{stdout}"
        );
        assert!(stdout.ends_with("\n1\n"));
        assert_eq!((stage.server.connections(), stage.server.calls()), (2, 2));
    }
}

#[test]
fn a_wrong_token_and_a_missing_host_are_told() {
    let python = pythons().last().unwrap();
    let code = "from hermes_tools import echo\ntry:\n    print(echo(1))\nexcept Exception as e:\n    print(type(e).__name__, e)\n";
    let mut stage = Stage::new();
    stage
        .environment
        .insert("PTC_RPC_TOKEN".into(), "wrong".into());
    assert_eq!(
        stage.run(python, code).clean(python),
        "{'error': 'Unauthorized'}\n"
    );
    assert_eq!(stage.server.calls(), 0);
    stage
        .environment
        .insert("PTC_RPC_SOCKET".into(), "/nonexistent/rpc".into());
    let told = stage.run(python, code).clean(python);
    assert!(
        told.starts_with("ToolError echo: no connection to the host"),
        "{told}"
    );
    stage.environment.insert("PTC_RPC_SOCKET".into(), "".into());
    let told = stage.run(python, code).clean(python);
    assert!(
        told.contains("only be called from a script that the host runs"),
        "{told}"
    );
}

#[cfg(target_os = "linux")]
#[test]
fn a_socket_in_a_directory_with_a_long_name_is_reached() {
    let long = Folder::new();
    let deep = long.0.join("d".repeat(100)).join("e".repeat(100));
    fs::create_dir_all(&deep).unwrap();
    for python in pythons() {
        let mut stage = Stage::new();
        let link = deep.join("rpc");
        let _ = fs::remove_file(&link);
        fs::hard_link(stage.staging.0.join("rpc"), &link).unwrap();
        stage
            .environment
            .insert("PTC_RPC_SOCKET".into(), link.into());
        let code = "from hermes_tools import echo\nprint(echo(1))\n";
        assert_eq!(stage.run(python, code).clean(python), "1\n");
    }
}

#[test]
fn calls_one_after_the_other_share_one_connection() {
    for python in pythons() {
        let stage = Stage::new();
        let code = "from hermes_tools import echo\nprint(sum(echo(i) for i in range(100)))\n";
        assert_eq!(stage.run(python, code).clean(python), "4950\n");
        assert_eq!(stage.server.connections(), 1);
    }
}

#[test]
fn threads_call_at_once_and_each_gets_its_own_answer() {
    expect_everywhere(
        r#"
import threading
from hermes_tools import echo, meet
wrong = []
def work(n):
    for i in range(200):
        if echo([n, i]) != [n, i]: wrong.append((n, i))
    meet(10)
threads = [threading.Thread(target=work, args=(n,)) for n in range(10)]
for t in threads: t.start()
for t in threads: t.join()
print(wrong)
"#,
        "[]\n",
    );
}

#[test]
fn forked_children_use_connections_of_their_own() {
    expect_everywhere(
        r#"
import os
from hermes_tools import echo, meet
echo("opens a connection before the fork")
children = []
for n in range(4):
    pid = os.fork()
    if pid == 0:
        meet(5)
        os._exit(0 if all(echo([n, i]) == [n, i] for i in range(50)) else 1)
    children.append(pid)
meet(5)
mine = all(echo(i) == i for i in range(50))
print(mine, [os.waitpid(pid, 0)[1] for pid in children])
"#,
        "True [0, 0, 0, 0]\n",
    );
}

#[test]
fn every_way_of_starting_workers_can_call() {
    expect_everywhere(
        r#"
import concurrent.futures, multiprocessing, subprocess, sys
from hermes_tools import echo
class Point:
    def __init__(self, n): self.n = n
def work(point):
    from hermes_tools import echo
    return Point(echo(point.n))
if __name__ == "__main__":
    for method in ("fork", "spawn", "forkserver"):
        context = multiprocessing.get_context(method)
        with context.Pool(2) as pool:
            print(method, [p.n for p in pool.map(work, [Point(n) for n in range(4)])], pool.map(echo, [1, 2]))
    with concurrent.futures.ProcessPoolExecutor(1) as executor:
        print([p.n for p in executor.map(work, [Point(7)])])
    code = "from hermes_tools import echo; print(echo('from a subprocess'))"
    print(subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE).stdout.decode(), end="")
"#,
        "fork [0, 1, 2, 3] [1, 2]\nspawn [0, 1, 2, 3] [1, 2]\nforkserver [0, 1, 2, 3] [1, 2]\n[7]\nfrom a subprocess\n",
    );
}

#[test]
fn an_interrupted_call_does_not_spoil_the_next_one() {
    for python in pythons() {
        let stage = Stage::new();
        let code = r#"
import os, signal
from hermes_tools import echo, meet
echo(0)
class Enough(Exception): pass
def handler(*_): raise Enough
signal.signal(signal.SIGUSR1, handler)
# These tests may run in the background of a shell, which ignores it there.
signal.signal(signal.SIGINT, signal.default_int_handler)
for kind, signum in ((Enough, signal.SIGUSR1), (KeyboardInterrupt, signal.SIGINT)):
    print("calling", flush=True)
    try:
        meet(2, str(signum.value))
    except kind:
        pass
    print(echo(kind.__name__))
"#;
        let child = stage.spawn(python, code);
        for (name, signal) in [("10", "USR1"), ("2", "INT")] {
            stage.server.shared.await_guests(name, 1);
            let kill = Command::new("kill")
                .args([&format!("-{signal}"), &child.id().to_string()])
                .status();
            assert!(kill.unwrap().success());
        }
        let stdout = stage.finish(child).clean(python);
        assert_eq!(stdout, "calling\nEnough\ncalling\nKeyboardInterrupt\n");
    }
}

#[test]
fn signal_handlers_that_return_do_not_disturb_a_call() {
    for python in pythons() {
        let stage = Stage::new();
        let code = r#"
import signal
from hermes_tools import echo, meet
seen = []
def handler(*_):
    seen.append(echo("from the handler"))
    meet(2, "b")
signal.signal(signal.SIGUSR1, handler)
print(meet(2, "a"), seen)
"#;
        let child = stage.spawn(python, code);
        stage.server.shared.await_guests("a", 1);
        assert!(Command::new("kill")
            .args(["-USR1", &child.id().to_string()])
            .status()
            .unwrap()
            .success());
        stage.server.shared.await_guests("b", 1);
        for guest in ["b", "a"] {
            let quoted = json::quote(guest);
            let args = HashMap::from([
                ("count".to_string(), "2"),
                ("name".to_string(), quoted.as_str()),
            ]);
            assert!(stage.server.shared.meet(&args).is_some());
        }
        assert_eq!(
            stage.finish(child).clean(python),
            "a ['from the handler']\n"
        );
    }
}

#[test]
fn a_default_socket_timeout_of_the_script_does_not_concern_calls() {
    expect_everywhere(
        "import socket\nsocket.setdefaulttimeout(0.000001)\nfrom hermes_tools import echo\nprint(echo('x' * 500000)[:1])\n",
        "x\n",
    );
}

"""A session with `ptc mcp` through the official client (package `mcp`, majors 1 and 2), checked step by step.

usage: session.py PTC
"""

import json
import logging
import os
import sys
import tempfile
import traceback
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import jsonschema
import mcp.client.stdio
import mcp.types as types
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

PTC = sys.argv[1]
# How long anything may take before it counts as hanging, on a machine that is busy with other things.
PATIENCE = 120
# So that the exit status seen is the server's own and not that of a client in a hurry.
mcp.client.stdio.PROCESS_TERMINATION_TIMEOUT = PATIENCE

CONFIG = {
    "tools": [
        {
            "name": "shout",
            "description": "The text in capitals.",
            "input_schema": {
                "type": "object",
                "properties": {"text": {"type": "string"}},
                "required": ["text"],
            },
        }
    ]
}

FOR_EVER = "while True:\n    time.sleep(60)\n"

complaints = []


class Complaints(logging.Handler):
    """What the client says of lines that it cannot read."""

    def emit(self, record):
        complaints.append(record.getMessage())


def field(model, name):
    """A field by its name in the protocol, whatever the client calls it."""
    return model.model_dump(by_alias=True).get(name)


def text(result):
    return result.content[0].text


def structured(result):
    return field(result, "structuredContent")


@asynccontextmanager
async def session(folder):
    """A session in `folder`; what the server ended with is in the file `status` afterwards."""
    (folder / "config.json").write_text(json.dumps(CONFIG))
    server = StdioServerParameters(
        command="/bin/sh",
        args=[
            "-c",
            '"$0" mcp "$@"; echo $? > status',
            PTC,
            "--config=config.json",
            "--builtin=all",
            "--tool=shout=tr a-z A-Z",
        ],
        cwd=str(folder),
    )
    with open(folder / "stderr", "w") as stderr:
        async with stdio_client(server, errlog=stderr) as (read, write):
            async with ClientSession(read, write) as client:
                yield client


async def gone(pid):
    """Waits until a process has ended."""
    while True:
        try:
            os.kill(int(pid), 0)
        except ProcessLookupError:
            return
        await anyio.sleep(0.05)


async def written(path):
    """Waits for a file that says something."""
    while not (path.exists() and path.read_text().endswith("\n")):
        await anyio.sleep(0.05)
    return path.read_text().strip()


def long_script(folder):
    """A script that says who it is and does not end, and the file in which it says so."""
    pid = folder / "pid"
    pid.unlink(missing_ok=True)
    code = f"import os, time\nwith open({str(pid)!r}, 'w') as f: print(os.getpid(), file=f)\n"
    return code + FOR_EVER, pid


async def initialize(client, folder):
    result = await client.initialize()
    assert field(result, "protocolVersion") == "2025-06-18", result
    assert field(result, "serverInfo")["name"] == "ptc", result
    assert "execute_code" in result.instructions
    await client.send_ping()


async def list_tools(client, folder):
    [tool] = (await client.list_tools()).tools
    assert tool.name == "execute_code"
    assert "shout(" in tool.description and "terminal(" in tool.description
    assert field(tool, "inputSchema")["required"] == ["code"]
    jsonschema.Draft202012Validator.check_schema(field(tool, "inputSchema"))
    jsonschema.Draft202012Validator.check_schema(field(tool, "outputSchema"))


async def execute(client, code, **more):
    """Calls the tool; the structured content has to be what the listing says, also of what did not succeed."""
    result = await client.call_tool("execute_code", {"code": code}, **more)
    [tool] = (await client.list_tools()).tools
    jsonschema.validate(structured(result), field(tool, "outputSchema"))
    assert field(result, "isError") == (structured(result)["status"] != "success")
    return result


async def success(client, folder):
    result = await execute(client, "print(6 * 7)")
    assert not field(result, "isError")
    assert text(result) == "42\n" == structured(result)["output"]


async def tool_calls(client, folder):
    (folder / "notes.txt").write_text("one\ntwo\n")
    code = (
        "from hermes_tools import read_file, shout, terminal\n"
        "print(read_file('notes.txt')['total_lines'], shout(text='hey'), terminal('echo hi')['output'])"
    )
    result = await execute(client, code)
    assert "2 {'TEXT': 'HEY'} hi" in text(result), text(result)
    called = [call["tool"] for call in structured(result)["tool_calls"]]
    assert called == ["read_file", "shout", "terminal"], called


async def script_error(client, folder):
    result = await execute(client, "print('before')\n{}['missing']")
    assert field(result, "isError")
    assert "before" in text(result) and "KeyError" in text(result)
    assert structured(result)["exit_code"] == 1


async def syntax_error(client, folder):
    result = await execute(client, "print('open")
    assert field(result, "isError")
    assert structured(result)["started"] is False


async def bad_arguments(client, folder):
    for name, arguments in [("execute", {"code": ""}), ("execute_code", {"code": 5})]:
        try:
            await client.call_tool(name, arguments)
        except Exception as error:
            assert error.error.code == -32602, error
        else:
            raise AssertionError(f"{name} {arguments} was taken")


async def progress(client, folder):
    told = []

    async def on_progress(progress, total, message):
        told.append((progress, message))

    code = (
        "from hermes_tools import shout\n"
        "print('first', flush=True)\n"
        "for i in range(3): shout(text=str(i))"
    )
    await execute(client, code, progress_callback=on_progress)
    numbers = [number for number, _ in told]
    assert numbers == sorted(set(numbers)), told
    # Output and calls come by different ways, so which of them is told first is open.
    messages = sorted(message for _, message in told)
    expected = ["first"] + [f'shout {{"text":"{i}"}}' for i in range(3)]
    assert messages == expected, told


async def at_once(client, folder):
    """Two scripts that meet at a pipe, which neither can pass alone."""
    pipe = str(folder / "pipe")
    os.mkfifo(pipe)
    results = {}

    async def call(name, code):
        results[name] = text(await execute(client, code))

    async with anyio.create_task_group() as group:
        group.start_soon(call, "reader", f"print(open({pipe!r}).read())")
        group.start_soon(call, "writer", f"print(open({pipe!r}, 'w').write('met'))")
    assert results == {"reader": "met\n", "writer": "3\n"}, results


async def cancellation(client, folder):
    code, pid_file = long_script(folder)
    answers = []

    async def call(scope):
        with scope:
            answers.append(await client.call_tool("execute_code", {"code": code}))

    async with anyio.create_task_group() as group:
        scope = anyio.CancelScope()
        # The first major counts its requests and leaves it to others to tell the server.
        number = getattr(client, "_request_id", None)
        group.start_soon(call, scope)
        pid = await written(pid_file)
        if number is not None:
            params = types.CancelledNotificationParams(requestId=number)
            notification = types.CancelledNotification(
                method="notifications/cancelled", params=params
            )
            await client.send_notification(types.ClientNotification(notification))
        else:
            scope.cancel()
        await gone(pid)
        await client.send_ping()
        scope.cancel()
    assert answers == [], answers


STEPS = [
    initialize,
    list_tools,
    success,
    tool_calls,
    script_error,
    syntax_error,
    bad_arguments,
    progress,
    at_once,
    cancellation,
]


async def step(name, body):
    """Runs one step; whether it went well."""
    try:
        with anyio.fail_after(PATIENCE):
            await body()
    except Exception:
        traceback.print_exc()
        print(f"    FAILED {name}", flush=True)
        return False
    print(f"    ok {name}", flush=True)
    return True


async def clean_end(folder):
    """The end of the session ends a script that runs, and the server by itself."""
    async with session(folder) as client:
        await client.initialize()
        code, pid_file = long_script(folder)
        async with anyio.create_task_group() as group:
            group.start_soon(client.call_tool, "execute_code", {"code": code})
            pid = await written(pid_file)
            group.cancel_scope.cancel()
    await gone(pid)
    assert await written(folder / "status") == "0"
    assert (folder / "stderr").read_text() == ""


async def ended(folder):
    assert await written(folder / "status") == "0"
    assert (folder / "stderr").read_text() == ""
    assert complaints == [], complaints


async def main():
    logging.getLogger().addHandler(Complaints(level=logging.WARNING))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        went = []
        async with session(folder) as client:
            for body in STEPS:
                went.append(
                    await step(body.__name__, lambda: body(client, folder))
                )
        went.append(await step("ended", lambda: ended(folder)))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        went.append(await step("clean_end", lambda: clean_end(folder)))
    return all(went)


sys.exit(0 if anyio.run(main) else 1)

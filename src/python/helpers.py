# ---- asyncio ----


async def _call_async(tool, args):
    """`_call` for an event loop: nothing blocks it, and a cancelled call hangs up on the host."""
    asyncio = _std("asyncio")
    loop = asyncio.get_running_loop()
    number = _next_number()
    request = _request(tool, number, args)
    async with _gate(asyncio, loop):
        idle = _connections.get(_getpid())
        if idle is None:
            idle = _idle_connections()
        try:
            connection = idle.pop()
        except IndexError:
            connection = _connect(tool)
            request = _greeting() + request
        try:
            connection.settimeout(0)
            try:
                await loop.sock_sendall(connection, request)
            except (BrokenPipeError, ConnectionResetError):
                pass
            parts = [await loop.sock_recv(connection, _RECEIVE)]
            while parts[-1] and parts[-1][-1:] != b"\n":
                parts.append(await loop.sock_recv(connection, _RECEIVE_MORE))
            connection.settimeout(None)
        except ConnectionError:
            parts = [b""]
        except BaseException:
            connection.close()
            raise
        reply = _reply(tool, number, b"".join(parts)) if parts[-1] else None
        if reply is None:
            connection.close()
            raise _lost(tool)
        _give_back(idle, connection)
    return _value(tool, reply)


def _gate(asyncio, loop):
    """Bounds how many calls of one loop are on their way, and with them the descriptors in use."""
    gate = _gates.get(loop)
    if gate is None:
        for other in [other for other in _gates if other.is_closed()]:
            del _gates[other]
        gate = _gates[loop] = asyncio.Semaphore(_ASYNC_CALLS)
    return gate


_gates = {}


class _Aio:
    """The tools as coroutine functions: `await aio.<tool>(...)`, also many at once with `asyncio.gather`."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        if name not in _published:
            raise AttributeError(_no_such(name))
        published = _published[name]

        async def call(*args, **named):
            return await _call_async(*published.bind(args, named))

        call.__name__ = call.__qualname__ = name
        call.__doc__, call.__wrapped__ = published.function.__doc__, published.function
        setattr(self, name, call)
        return call

    def __dir__(self):
        return sorted(_published)

    def __repr__(self):
        return f"<tools to await: {', '.join(_published)}>"


aio = _Aio()


# ---- helpers for scripts ----


def json_parse(text):
    """Parses JSON and is lenient with what tools and models produce around it: a byte order mark, a Markdown fence, raw
    control characters in strings, trailing commas. What is parsed already is returned as it is."""
    if isinstance(text, (bytes, bytearray)):
        text = text.decode("utf-8-sig", "replace")
    if not isinstance(text, str):
        return text
    text = _unfenced(text.lstrip("\ufeff").strip())
    json = _std("json")
    try:
        return _loads(json, text)
    except json.JSONDecodeError as error:
        problem = error
    try:
        return _loads(json, _without_trailing_commas(text))
    except json.JSONDecodeError:
        pass
    near = text[max(0, problem.pos - 20) : problem.pos + 20]
    raise json.JSONDecodeError(f"json_parse: {problem.msg} near {near!r}", problem.doc, problem.pos)


def _loads(json, text):
    try:
        return json.loads(text, strict=False)
    except json.JSONDecodeError:
        raise
    except RecursionError:
        raise ValueError("json_parse: the text is nested too deeply") from None
    except ValueError:
        return json.loads(text, strict=False, parse_int=_integer)


def _unfenced(text):
    if not (text.startswith("```") and text.endswith("```") and "\n" in text):
        return text
    return text[text.index("\n") : -3].strip()


def _without_trailing_commas(text):
    kept, in_string, at = [], False, 0
    while at < len(text):
        c = text[at]
        if in_string and c == "\\":
            kept.append(text[at : at + 2])
            at += 2
            continue
        if c == '"':
            in_string = not in_string
        if c != "," or in_string or text[at + 1 :].lstrip()[:1] not in ("}", "]"):
            kept.append(c)
        at += 1
    return "".join(kept)


_SHELL_SAFE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789@%+=:,./-_")


def shell_quote(text):
    """`text` as one word of a shell command."""
    text = text if isinstance(text, str) else _os.fsdecode(text) if hasattr(text, "__fspath__") else str(text)
    if text and _SHELL_SAFE.issuperset(text):
        return text
    return "'" + text.replace("'", "'\"'\"'") + "'"


def retry(function, attempts=3, delay=1.0, backoff=2.0, exceptions=Exception, max_attempts=None):
    """Calls `function()` until it succeeds, at most `attempts` times, and waits `delay` seconds between the first two
    attempts, each time `backoff` times as long. A tool's `{"error": ...}` counts as a failure, too. After the last attempt its exception is raised, or
    its `{"error": ...}` returned."""
    attempts = attempts if max_attempts is None else max_attempts
    if attempts < 1:
        raise ValueError(f"retry: attempts must be at least 1, not {attempts!r}")
    if not callable(function):
        raise TypeError("retry: pass a function that makes the call, e.g. retry(lambda: web_search('x'))")
    import time

    for attempt in range(1, attempts + 1):
        try:
            value = function()
        except exceptions:
            if attempt == attempts:
                raise
        else:
            failed = isinstance(value, dict) and len(value) == 1 and isinstance(value.get("error"), str)
            if not failed or attempt == attempts:
                return value
        time.sleep(delay)
        delay *= backoff


def parallel(calls, items=None, *, max_workers=16, return_exceptions=False):
    """Makes many calls at once, in threads, and returns their results in the order of `calls`.

    A call is a function without arguments, or `(function, argument, ...)`, where a last dict that names parameters of a
    tool gives keyword arguments. `parallel(function, items)` calls `function(item)` for each item. A tool may be given
    by its name. All calls are made in any case; then the first exception is raised, or with `return_exceptions=True`
    stands in its place among the results."""
    if items is not None:
        calls = [(calls, item) for item in items]
    elif callable(calls) or isinstance(calls, (str, dict)):
        raise TypeError("parallel: pass a list of calls, e.g. parallel([(web_search, 'a'), (web_search, 'b')])")
    todo = [_thunk(call, at) for at, call in enumerate(calls)]
    results, failures = [None] * len(todo), {}
    numbers = iter(range(len(todo)))

    def work():
        # A shared iterator: next() on it is atomic.
        for at in numbers:
            try:
                results[at] = todo[at]()
            except BaseException as error:
                results[at] = failures[at] = error

    try:
        _run_in_threads(work, min(len(todo), max_workers))
    except BaseException:
        # Interrupted: what has not begun does not begin.
        for _ in numbers:
            pass
        raise
    if failures and not return_exceptions:
        raise failures[min(failures)]
    return results


def _run_in_threads(work, count):
    threading = _std("threading")
    threads = [threading.Thread(target=work, daemon=True) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _thunk(call, at):
    args = ()
    if isinstance(call, (tuple, list)) and call:
        call, args = call[0], tuple(call[1:])
    elif isinstance(call, dict) and "tool" in call:
        call, args = call["tool"], (call.get("args", {}),)
    if isinstance(call, str):
        published = _published.get(call) or _by_tool.get(call)
        if published is None:
            raise TypeError(f"parallel: call {at}: {_no_such(call)}")
        call = published.function
    if not callable(call):
        advice = "; use asyncio.gather for coroutines" if hasattr(call, "__await__") else ""
        raise TypeError(
            f"parallel: call {at} is a {type(call).__name__}, "
            f"not a function or a (function, argument, ...) tuple{advice}"
        )
    named = {}
    published = _published_as(call) if args and isinstance(args[-1], dict) else None
    if published is not None and published.takes(args[-1]):
        args, named = args[:-1], args[-1]
    return lambda: call(*args, **named)


def _published_as(function):
    published = _published.get(getattr(function, "__name__", None))
    return published if published is not None and published.function is function else None


class _Tools:
    """What tools there are: `tools.names()`, `tools.search("words")`, `tools.describe("name")`."""

    def names(self):
        """The names of all tools that this script can call."""
        return list(_published)

    def search(self, text="", limit=10):
        """The tools that fit `text` best: a list of `{"name", "signature", "summary"}`."""
        words = [word for word in text.lower().replace("_", " ").split() if word]
        scored = []
        for at, (name, published) in enumerate(_published.items()):
            entry = _CONFIG["tools"][published.tool]
            title = f"{name} {published.tool}".lower()
            body = f"{entry.get('summary')} {entry.get('description')}".lower()
            score = sum(3 * (word in title) + (word in body) for word in words)
            if score or not words:
                scored.append((-score, at, name, entry))
        return [
            {"name": name, "signature": entry.get("signature", ""), "summary": entry.get("summary", "")}
            for _, _, name, entry in sorted(scored)[:limit]
        ]

    def describe(self, name):
        """One tool's signature and full description, as text."""
        published = _published_as(name) if callable(name) else _published.get(name) or _by_tool.get(name)
        if published is None:
            raise LookupError(_no_such(name))
        entry = _CONFIG["tools"][published.tool]
        return f"{entry.get('signature', '')}\n\n{entry.get('description', '')}".strip()

    def __iter__(self):
        return iter(self.names())

    def __len__(self):
        return len(_published)

    def __contains__(self, name):
        return name in _published or name in _by_tool

    def __getattr__(self, name):
        if name in _published:
            return _published[name].function
        raise AttributeError(name if name.startswith("__") else _no_such(name))

    def __repr__(self):
        return f"<tools: {', '.join(_published)}>"


tools = _Tools()

"""The host's tools as functions, and a few helpers. `tools.names()` lists them, `help(function)` explains one."""

# The fixed part of the generated module. A dict literal takes the place of the line `_CONFIG = {}`, one function per
# tool follows at the end, and `_finish()` then publishes tools and helpers in a module object of their own. The code
# here thus keeps its built-ins and helpers even where a tool is called `list` or `retry`, and `dir()` shows a script
# nothing else. Importing this costs as little as can be: C modules only, all others when they are first needed.
_CONFIG = {}

import _thread
import os as _os
import sys as _sys

_LIBRARY = _os.path.dirname(_os.__file__)
_ADDRESS = _os.environ.get("PTC_RPC_SOCKET")
_TOKEN = _os.environ.get("PTC_RPC_TOKEN", "")
_RECEIVE = 65536
_RECEIVE_MORE = 1048576
_IDLE_CONNECTIONS = 32
_ASYNC_CALLS = 64


# ---- the standard library, whatever a project's own files are called ----


def _is_of_library(module):
    file = getattr(module, "__file__", None)
    return file is None or _is_library_path(file)


def _is_library_path(path):
    if "site-packages" in path or "dist-packages" in path:
        return False
    head, tail = _os.path.split(path)
    zipped = tail.startswith("python") and tail.endswith(".zip")
    return zipped or path == _LIBRARY or path.startswith(_LIBRARY + "/") or "lib-dynload" in path


def _std(name, surely=False):
    """The standard library's module `name`. Files of such names in the project, imported already or not, stay out of
    it. The paths are only touched if there are any (or `surely`), since other threads import as well."""
    found = _loaded.get(name) or _sys.modules.get(name)
    if found is None or not _is_of_library(found):
        with _importing:
            found = _import_apart(name) if surely or _project_shadows() else __import__(name)
    _loaded[name] = found
    return found


def _library_names():
    names = getattr(_sys, "stdlib_module_names", None)
    return names or {entry.partition(".")[0] for entry in _os.listdir(_LIBRARY)}


def _project_shadows():
    """Whether a module of the script's, or a file on its path, has a name of the standard library."""
    names = _library_names()
    if any(n in names and not _is_of_library(m) for n, m in list(_sys.modules.items()) if n != "__main__"):
        return True
    for entry in _sys.path:
        if isinstance(entry, str) and _is_library_path(entry):
            break
        try:
            files = _os.listdir(entry or ".")
        except (OSError, TypeError, ValueError):
            continue
        if any(file.partition(".")[0] in names for file in files):
            return True
    return False


def _import_apart(name):
    names, path = _library_names(), _sys.path
    modules = list(_sys.modules.items())
    shadows = {n for n, m in modules if n in names and n != "__main__" and not _is_of_library(m)}
    aside = {n: m for n, m in modules if n.partition(".")[0] in shadows}
    _sys.path = [entry for entry in path if isinstance(entry, str) and _is_library_path(entry)]
    for n in aside:
        _sys.modules.pop(n, None)
    try:
        return __import__(name)
    finally:
        _sys.path = path
        _sys.modules.update(aside)


_importing = _thread.RLock()
_loaded = {}


# ---- values ----


class ToolError(Exception):
    """A tool call that failed: `tool` is its name, `message` what went wrong, `details` a dict of what may help."""

    def __init__(self, tool, message, details=None):
        super().__init__(tool, message, details)
        self.tool = tool
        self.message = message
        self.details = details or {}

    def __str__(self):
        return f"{self.tool}: {self.message}"


def _classes(module, *names):
    found = (getattr(_sys.modules.get(module), name, None) for name in names)
    return tuple(kind for kind in found if isinstance(kind, type))


class _NotJson(TypeError):
    """Why a value cannot be sent; `_exact` adds which one it was."""


_ADVICE = (
    ((set, frozenset), "pass a list, e.g. sorted(...)"),
    ((bytes, bytearray, memoryview), "pass text: .decode(), or base64 for binary data"),
    (complex, "pass its parts or a string"),
)


def _convert(value):
    """What is sent for an object that is no JSON value itself; for the encoder, which calls it for every such one."""
    kind = type(value)
    if isinstance(value, _classes("enum", "Enum")):
        return value.value
    if isinstance(value, _classes("datetime", "date", "time")):
        return value.isoformat()
    if hasattr(kind, "__dataclass_fields__"):
        return {name: getattr(value, name) for name in kind.__dataclass_fields__ if hasattr(value, name)}
    if hasattr(kind, "__fspath__"):
        path = _os.fspath(value)
        if isinstance(path, str):
            return path
    if hasattr(value, "dtype") and getattr(value, "ndim", None) == 0:
        return value.item()
    if hasattr(kind, "__index__"):
        return kind.__index__(value)
    for kinds, advice in _ADVICE:
        if isinstance(value, kinds):
            break
    else:
        if hasattr(kind, "__await__"):
            advice = "await it first"
        elif callable(value):
            advice = "call it first"
        elif hasattr(kind, "tolist"):
            advice = "pass .tolist()"
        elif hasattr(kind, "keys") and hasattr(kind, "__getitem__"):
            advice = "pass dict(...)"
        elif hasattr(kind, "__iter__"):
            advice = "pass list(...)"
        else:
            advice = "convert it first, e.g. with str(...) or into a dict"
    raise _NotJson(f"is a {kind.__name__}, which JSON cannot carry; {advice}")


def _exact(tool, value, where):
    """The JSON text of `value`, the slow way: integers of any size, and errors that name the argument."""
    if value is None or value is True or value is False:
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, str):
        return _quote(value)
    if isinstance(value, int):
        return _digits(int(value))
    if isinstance(value, float):
        if value - value != 0:
            raise TypeError(f"{tool}: argument '{where}' is {value!r}, which JSON cannot carry; pass None or a string")
        return float.__repr__(value)
    if isinstance(value, dict):
        items = [f"{_key(tool, key, where)}:{_exact(tool, item, _member(where, key))}" for key, item in value.items()]
        return "{" + ",".join(items) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join([_exact(tool, item, f"{where}[{at}]") for at, item in enumerate(value)]) + "]"
    try:
        plain = _convert(value)
    except _NotJson as no:
        reason = str(no)
    else:
        return _exact(tool, plain, where)
    raise TypeError(f"{tool}: argument '{where}' {reason}")


def _member(where, key):
    if not where:
        return str(key)
    return f"{where}.{key}" if isinstance(key, str) and key.isidentifier() else f"{where}[{key!r}]"


def _key(tool, key, where):
    if isinstance(key, str):
        return _quote(key)
    if key is None or isinstance(key, (bool, int, float)):
        return _quote(_exact(tool, key, _member(where, key)))
    raise TypeError(
        f"{tool}: argument '{where}' has a key of type {type(key).__name__}: {key!r:.80}; JSON's keys are strings"
    )


def _digits(number):
    """Decimal digits without the interpreter's limit on their count."""
    try:
        return int.__repr__(number)
    except ValueError:
        pass
    if number < 0:
        return "-" + _digits(-number)
    low = number.bit_length() * 30103 // 200000
    high, rest = divmod(number, 10**low)
    return _digits(high) + _digits(rest).rjust(low, "0")


def _integer(text):
    """int() without the interpreter's limit on the count of digits."""
    if len(text) < 4000:
        return int(text)
    if text[0] == "-":
        return -_integer(text[1:])
    low = len(text) // 2
    return _integer(text[:-low]) * 10**low + _integer(text[-low:])


class _Decoding:
    """What the C scanner wants to know."""

    strict = False
    object_hook = object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = float
    memo = None


class _DecodingExactly(_Decoding):
    parse_int = staticmethod(_integer)


def _first_number():
    """The number of the first call, which loads what all of them need: the two C modules cost a script more than all else
    that importing this module does."""
    global _socket, _quote, _encode, _scan, _scan_exactly, _next_number
    with _importing:
        if _next_number is _first_number:
            try:
                _socket = _std("_socket", True)
            except ImportError:
                _socket = _std("socket")
            try:
                accelerator = _std("_json", True)
                _quote = accelerator.encode_basestring_ascii
                _encode = accelerator.make_encoder(None, _convert, _quote, None, ":", ",", False, False, False)
                _scan = accelerator.make_scanner(_Decoding)
                _scan_exactly = accelerator.make_scanner(_DecodingExactly)
            except (ImportError, AttributeError):
                json = _std("json")
                _quote = json.encoder.encode_basestring_ascii
                _encode = _encode_slowly
                _scan = json.JSONDecoder(strict=False).scan_once
                _scan_exactly = json.JSONDecoder(strict=False, parse_int=_integer).scan_once
            # Last, since it tells other threads that all of this is there.
            _next_number = _std("itertools", True).count(1).__next__
    return _next_number()


def _encode_slowly(value, _level):
    return _std("json").JSONEncoder(separators=(",", ":"), allow_nan=False, default=_convert).iterencode(value)


_next_number = _first_number


def _request(tool, number, args):
    try:
        text = "".join(_encode(args, 0))
    except (TypeError, ValueError, RecursionError):
        text = None
    if text is None:
        try:
            text = _exact(tool, args, "")
        except RecursionError:
            problem = "an argument is nested too deeply, or contains itself; pass flatter data"
            raise ValueError(f"{tool}: {problem}") from None
    request = b'{"id":%d,"tool":%b,"args":%b}\n' % (number, _quote(tool).encode(), text.encode())
    limit = _CONFIG.get("max_message_bytes")
    if limit is not None and len(request) > limit:
        raise ValueError(
            f"{tool}: the arguments are {len(request):,} bytes of JSON, more than the {limit:,} that one call may "
            "carry; pass less at a time, or write the data to a file and pass its path"
        )
    return request


def _reply(tool, number, data):
    """The reply of the host to request `number`, as a dict; None if it cannot be one."""
    text = str(data, "utf-8", "replace")
    try:
        try:
            reply = _scan(text, 0)[0]
        except ValueError:
            reply = _scan_exactly(text, 0)[0]
    except RecursionError:
        raise ToolError(tool, "the result is nested too deeply for Python") from None
    except (ValueError, StopIteration):
        return None
    # What the host could not read it answers without a number.
    return reply if isinstance(reply, dict) and reply.get("id") in (number, None) else None


def _value(tool, reply):
    if "result" in reply:
        return reply["result"]
    message = reply.get("error")
    details = reply.get("details") or {}
    if _CONFIG.get("on_tool_error") == "raise":
        raise ToolError(tool, message, details)
    return {**details, "error": message}


# ---- connections: one for each call at a time, kept for the next, and never shared with a forked process ----

_connections = {}
_getpid = _os.getpid


def _idle_connections():
    """This process's list of idle connections; those that a fork brought along are closed."""
    pid = _getpid()
    for owner in list(_connections):
        if owner != pid:
            for connection in _connections.pop(owner, ()):
                connection.close()
    return _connections.setdefault(pid, [])


def _connect(tool):
    if not _ADDRESS:
        raise ToolError(tool, "tools can only be called from a script that the host runs (PTC_RPC_SOCKET is not set)")
    connection = None
    try:
        connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
        connection.settimeout(None)
        try:
            connection.connect(_ADDRESS)
        except OSError as error:
            # Without a number it is Python's own "AF_UNIX path too long".
            if error.errno is not None:
                raise
            _connect_by_directory(connection)
    except OSError as error:
        if connection is not None:
            connection.close()
        raise ToolError(tool, f"no connection to the host: {error}") from None
    return connection


def _connect_by_directory(connection):
    folder, name = _os.path.split(_ADDRESS)
    fd = _os.open(folder, _os.O_RDONLY | _os.O_DIRECTORY)
    try:
        connection.connect(f"/proc/self/fd/{fd}/{name}")
    finally:
        _os.close(fd)


def _greeting():
    return b'{"token":%b}\n' % _quote(_TOKEN).encode()


def _lost(tool):
    problem = "the connection to the host was lost before the answer came; the call may or may not have run"
    return ToolError(tool, problem)


def _call(tool, args):
    """Calls `tool` and waits for its answer. A request is sent at most once, and a connection on which anything went
    wrong is given up, so that no answer can meet the wrong question."""
    number = _next_number()
    request = _request(tool, number, args)
    idle = _connections.get(_getpid())
    if idle is None:
        idle = _idle_connections()
    try:
        connection = idle.pop()
    except IndexError:
        connection = _connect(tool)
        request = _greeting() + request
    try:
        try:
            connection.sendall(request)
        except (BrokenPipeError, ConnectionResetError):
            pass  # The host may have said why before it hung up.
        data = connection.recv(_RECEIVE)
        if data[-1:] != b"\n":
            data = _receive_rest(connection, data)
    except ConnectionError:
        data = None
    except BaseException:
        connection.close()
        raise
    reply = _reply(tool, number, data) if data else None
    if reply is None:
        connection.close()
        raise _lost(tool)
    _give_back(idle, connection)
    return _value(tool, reply)


def _receive_rest(connection, data):
    parts = [data]
    while data and data[-1:] != b"\n":
        data = connection.recv(_RECEIVE_MORE)
        parts.append(data)
    return b"".join(parts) if data else None


def _give_back(idle, connection):
    if len(idle) < _IDLE_CONNECTIONS:
        idle.append(connection)
    else:
        connection.close()

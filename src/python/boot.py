# The boot hook: Python's `site` imports it, as `sitecustomize`, from the staging directory at the front of PYTHONPATH.
#
# With PTC_BOOT in the environment it prepares the run's own interpreter, the leader. Without, in whatever Python the
# script starts, it only makes way for the user's own sitecustomize. It must parse in every Python since 2.7, import
# nothing that a bare interpreter has not loaded, and cost next to nothing.
import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))
_SCRIPT = os.path.join(_HERE, "script.py")
_LEADER = os.getpid()

# The file that says how the leader ends, where the engine wants one.
_SAYS = []

# A recursion's traceback keeps its first frame and this many of its last.
_LAST_FRAMES = 20

# compile()'s flag for `await` outside of functions, and the mark of code that needs an event loop.
_ALLOW_TOP_LEVEL_AWAIT = 0x2000
_CO_COROUTINE = 0x80


def _start():
    order = os.environ.pop("PTC_BOOT", None)
    leash = os.environ.pop("PTC_LEASH_FD", None)
    if order is None:
        _chain(_HERE)
        return
    flags, _, rest = order.partition(":")
    module, _, import_dir = rest.partition(":")
    if "l" in flags and leash:
        _hold_leash(int(leash))
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.reconfigure(encoding="utf-8", errors="surrogatepass", line_buffering=True)
    if "e" in flags:
        _leave_word_of_the_end()
    _flush_on_sigterm()
    if "n" in flags:
        _only_check(module)
    _OURS.append(os.path.join(_HERE, module + ".py"))
    sys.excepthook = _excepthook
    # The interpreter puts the script's directory, which is this one, in front of sys.path by itself.
    instead = [_HERE] if getattr(sys.flags, "safe_path", False) else []
    _chain(*(instead + [import_dir] if import_dir else instead))
    if "c" in flags:
        _check(module)


def _chain(*instead):
    """Imports the sitecustomize that would have been found without this one; `instead` takes this directory's place
    on sys.path afterwards. Whatever goes wrong in it is left to `site`, which reports it as ever."""
    at = sys.path.index(_HERE) if _HERE in sys.path else 0
    sys.path[:] = [entry for entry in sys.path if entry != _HERE]
    # Kept alive here: Python 2 empties a module that nobody refers to.
    ours = sys.modules.pop("sitecustomize", None)
    try:
        __import__("sitecustomize")
    except ImportError as error:
        name = getattr(error, "name", None) or str(error).split(" ")[-1]
        if name != "sitecustomize":
            raise
        sys.modules["sitecustomize"] = ours
    finally:
        sys.path[at:at] = instead


def _flush_on_sigterm():
    """SIGTERM ends the leader as by default, but not before what it printed is on its way. A script's own handler
    replaces this one, and forked children start with the default again."""
    import _signal
    import _thread

    def flush_and_die(signum, frame):
        for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
            try:
                stream.flush()
            except BaseException:
                pass
        _say_how_it_ends(-signum)
        _signal.signal(signum, _signal.SIG_DFL)
        os.kill(os.getpid(), signum)

    # What comes between the fork and the default is lost, since Python forgets signals that it has seen and not handled by
    # then: a child that is ended as soon as it is made would go on for ever. So it waits until the default is back.
    holding = set()

    def hold():
        mine = _signal.getsignal(_signal.SIGTERM) is flush_and_die
        if mine and _signal.SIGTERM not in _signal.pthread_sigmask(_signal.SIG_BLOCK, (_signal.SIGTERM,)):
            holding.add(_thread.get_ident())

    def let_go():
        if _thread.get_ident() in holding:
            holding.discard(_thread.get_ident())
            _signal.pthread_sigmask(_signal.SIG_UNBLOCK, (_signal.SIGTERM,))

    def forget():
        try:
            if _signal.getsignal(_signal.SIGTERM) is flush_and_die:
                _signal.signal(_signal.SIGTERM, _signal.SIG_DFL)
        except ValueError:
            pass
        let_go()

    _signal.signal(_signal.SIGTERM, flush_and_die)
    os.register_at_fork(before=hold, after_in_parent=let_go, after_in_child=forget)


def _leave_word_of_the_end():
    """Makes the leader say how it ends, for an engine whose host may take the exit status away: what sys.exit and
    os._exit were given, or what is to be seen of the end when the interpreter closes down. A `raise SystemExit` by hand,
    exec and what kills the process from outside leave no word."""
    import atexit

    main, asked = sys.modules["__main__"].__dict__, []
    sys_exit, os_exit = sys.exit, os._exit

    def exit(status=None):
        asked[:] = [0 if status is None else status & 255 if isinstance(status, int) else 1]
        sys_exit(status)

    def _exit(status):
        if isinstance(status, int):
            _say_how_it_ends(status & 255)
        os_exit(status)

    def close_down():
        # The interpreter takes `__file__` out of the script's names when it has run it, but not on its way out by
        # SystemExit; what nobody has caught is the last value.
        if "__file__" in main:
            if asked:
                _say_how_it_ends(asked[0])
            return
        error = getattr(sys, "last_value", None)
        _say_how_it_ends(0 if error is None else -2 if isinstance(error, KeyboardInterrupt) else 1)

    for theirs, ours in ((sys_exit, exit), (os_exit, _exit)):
        ours.__doc__, ours.__module__, ours.__qualname__ = theirs.__doc__, theirs.__module__, theirs.__name__
    sys.exit, os._exit = exit, _exit
    # The first to be registered is the last to be called.
    atexit.register(close_down)
    _SAYS.append("status")


def _say_how_it_ends(status):
    """Writes down the exit code, or the signal as a negative number, if the engine wants to know."""
    if not _SAYS or os.getpid() != _LEADER:
        return
    try:
        fd = os.open(os.path.join(_HERE, _SAYS[0]), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            os.write(fd, str(status).encode("ascii"))
        finally:
            os.close(fd)
    except OSError:
        pass


def _hold_leash(fd):
    """Kills the process group as soon as the host, which holds the other end of the pipe `fd`, is gone."""
    import _thread
    import _warnings

    def watch(read=os.read, killpg=os.killpg):
        try:
            while read(fd, 64):
                pass
        except OSError:
            return
        killpg(0, 9)

    class OnlyTheLeash(object):
        def match(self, text):
            return text.startswith("This process (pid=") and _thread._count() <= 1

    os.set_inheritable(fd, False)
    _thread.start_new_thread(watch, ())
    if sys.version_info >= (3, 12):
        # os.fork warns of other threads; this one holds no lock that a child could miss.
        _warnings.filters.insert(0, ("ignore", OnlyTheLeash(), DeprecationWarning, None, 0))


def _excepthook(kind, value, trace):
    if trace is None and _called_by_the_interpreter():
        _did_not_start(value)
        return
    try:
        left_out = _tidy(value, _OURS)
        trace = value.__traceback__ or trace
    except Exception:
        left_out = 0
    if left_out:
        sys.stderr.write("[a recursion: %d frames are left out of this traceback]\n" % left_out)
    _say_that_it_raised()
    sys.__excepthook__(kind, value, trace)


def _say_that_it_raised():
    """Tells the engine that the script ended by an exception, so that it knows what its last lines are. What SystemExit
    prints looks much the same behind a traceback that was only logged."""
    if os.getpid() == _LEADER:
        try:
            os.close(os.open(os.path.join(_HERE, "raised"), os.O_WRONLY | os.O_CREAT, 0o600))
        except OSError:
            pass


def _called_by_the_interpreter():
    try:
        sys._getframe(2)
    except ValueError:
        return True
    return False


def _tidy(value, ours):
    """Takes our own frames out of the tracebacks of `value` and of all exceptions behind it, and the middle out of
    recursions. Returns how many frames of recursions were left out."""
    left_out, seen, todo = 0, set(), [value]
    while todo:
        error = todo.pop()
        if error is None or id(error) in seen:
            continue
        seen.add(id(error))
        todo += [error.__cause__, error.__context__]
        todo += getattr(error, "exceptions", None) or ()
        frames = _frames(error.__traceback__)
        kept = [f for f in frames if f.tb_frame.f_code.co_filename not in ours] or frames
        if len(kept) > _LAST_FRAMES + 1 and len(set(f.tb_frame.f_code for f in kept)) * 2 < len(kept):
            left_out += len(kept) - _LAST_FRAMES - 1
            kept = kept[:1] + kept[-_LAST_FRAMES:]
        if len(kept) < len(frames):
            error.__traceback__ = _link(kept)
    return left_out


def _frames(trace):
    frames = []
    while trace is not None:
        frames.append(trace)
        trace = trace.tb_next
    return frames


def _link(frames):
    for this, following in zip(frames, frames[1:] + [None]):
        this.tb_next = following
    return frames[0]


def _did_not_start(value):
    """The interpreter could not compile the script: because of `await` outside of functions, which is welcome here,
    or for a reason that is reported."""
    if isinstance(value, SyntaxError):
        code, value = _allowing_await(value)
        if code is not None:
            _run_with_loop(code)
            return
    _refuse(value)


def _refuse(value):
    line, offset = getattr(value, "lineno", None), getattr(value, "offset", None)
    message = getattr(value, "msg", None) or str(value)
    _report(type(value).__name__, message, line, offset, getattr(value, "text", None))
    sys.__excepthook__(type(value), value, None)


def _allowing_await(problem):
    """The script's code, if it runs in a loop; and what is wrong with it otherwise, apart from any `await`."""
    try:
        with open(_SCRIPT, "rb") as script:
            code = compile(script.read(), _SCRIPT, "exec", _ALLOW_TOP_LEVEL_AWAIT, True)
    except SyntaxError as error:
        return None, error.with_traceback(None)
    except Exception:
        return None, problem
    return (code if code.co_flags & _CO_COROUTINE else None), problem


def _run_with_loop(code):
    """Runs the script as one coroutine, and ends as the interpreter ends a script: by SystemExit, or by returning to
    it after an exception was printed."""
    asyncio = _from_library("asyncio")
    main = sys.modules["__main__"]
    try:
        asyncio.run(eval(code, main.__dict__))
    except SystemExit:
        raise
    except BaseException as error:
        _print_uncaught(error)
        if isinstance(error, KeyboardInterrupt):
            _end_by_sigint()
        return
    _say_how_it_ends(0)
    raise SystemExit(0)


def _print_uncaught(error):
    frames = _frames(error.__traceback__)
    while len(frames) > 1 and frames[0].tb_frame.f_code.co_filename != _SCRIPT:
        del frames[0]
    error.__traceback__ = frames[0]
    sys.last_type, sys.last_value, sys.last_traceback = type(error), error, frames[0]
    sys.last_exc = error
    sys.excepthook(type(error), error, frames[0])


def _end_by_sigint():
    # An interrupt that escapes from exec() is what makes the interpreter die by SIGINT after its clean-up.
    try:
        exec("raise KeyboardInterrupt")
    except KeyboardInterrupt:
        pass


def _from_library(name):
    """Imports `name` from the standard library, whatever lies in the working directory."""
    path, library = sys.path, os.path.dirname(os.__file__)
    sys.path = [
        entry
        for entry in path
        if entry.endswith((".zip", "lib-dynload")) or (entry.startswith(library) and "-packages" not in entry)
    ]
    try:
        return __import__(name)
    finally:
        sys.path = path


def _check(module):
    """Ends the leader before the script runs when the script is certain to fail at a tool that there is not."""
    sys.path.insert(0, _HERE)
    try:
        finding = __import__(module).__check__(_SCRIPT)
    finally:
        sys.path.remove(_HERE)
    if finding is None:
        return
    kind, message, line, offset, text = finding
    _report(kind, message, line, offset, text)
    sys.stderr.write('  File "%s", line %d\n    %s\n%s: %s\n' % (_SCRIPT, line, text.strip(), kind, message))
    sys.stderr.flush()
    os._exit(1)


def _only_check(module):
    """Looks at the script as it is looked at before it runs, and ends the leader here in any case."""
    status = 0
    try:
        with open(_SCRIPT, "rb") as script:
            compile(script.read(), _SCRIPT, "exec", 0, True)
    except Exception as error:
        code, problem = _allowing_await(error) if isinstance(error, SyntaxError) else (None, error)
        if code is None:
            _refuse(problem)
            status = 1
    if not status:
        _check(module)
    sys.stderr.flush()
    os._exit(status)


def _report(kind, message, line, offset, text):
    """Leaves word for the engine that the script never ran."""
    members = [("type", kind), ("message", message), ("line", line), ("offset", offset), ("text", text)]
    json = ",".join('"%s":%s' % (key, _json(value)) for key, value in members if value is not None)
    target = os.path.join(_HERE, "report.json")
    try:
        fd = os.open(target + ".new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            os.write(fd, ('{"started":false,%s}\n' % json).encode("ascii"))
        finally:
            os.close(fd)
        os.rename(target + ".new", target)
    except OSError:
        pass


def _json(value):
    if isinstance(value, int):
        return str(value)
    units = value[:1000].encode("utf-16-le", "surrogatepass")
    codes = [units[i] + 256 * units[i + 1] for i in range(0, len(units), 2)]
    return '"%s"' % "".join(chr(c) if 32 <= c < 127 and c not in (34, 92) else "\\u%04x" % c for c in codes)


_OURS = [_start.__code__.co_filename]
_start()

# ---- what the module shows of itself ----


_HELPERS = ("ToolError", "aio", "json_parse", "parallel", "retry", "shell_quote", "tools")
# The tools of this run by the name of their function, and by their own name.
_published, _by_tool = {}, {}


class _Published:
    """A tool as scripts see it. `function` is the generated one, `bind` gives what a call of it would send."""

    def __init__(self, tool, function, packing):
        self.tool, self.function, self.name = tool, function, function.__name__
        inner = getattr(function, "__wrapped__", function)
        self._twin = type(inner)(inner.__code__, packing, inner.__name__, inner.__defaults__, inner.__closure__)
        self._twin.__kwdefaults__ = inner.__kwdefaults__
        code = inner.__code__
        self.parameters = frozenset(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])
        # CO_VARKEYWORDS: any other name is an argument, too.
        self.is_open = bool(code.co_flags & 8)

    def takes(self, names):
        return all(isinstance(n, str) for n in names) if self.is_open else self.parameters.issuperset(names)

    def bind(self, args, named):
        try:
            return self._twin(*args, **named)
        except TypeError as error:
            if error.__traceback__.tb_next is not None:
                raise
        # The arguments do not fit; the function itself says it best, and sends nothing.
        self.function(*args, **named)
        raise TypeError(f"{self.tool}: these arguments do not fit")


def _pack(tool, args):
    return tool, args


def _nearest(name, names):
    matches = _std("difflib").get_close_matches(str(name), list(names), 1, 0.6)
    return matches[0] if matches else None


def _no_such(name):
    near = _nearest(name, [*_published, *_HELPERS])
    hint = f" Did you mean '{near}'?" if near else ""
    listed = ", ".join(list(_published)[:40]) or "none"
    more = f" and {len(_published) - 40} more, see tools.search(...)" if len(_published) > 40 else ""
    return f"there is no tool or helper '{name}'.{hint} Tools: {listed}{more}. Helpers: {', '.join(_HELPERS)}"


def _missing(name):
    """The module's `__getattr__`."""
    if name.startswith("__"):
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    # `from module import name` would replace the text of an AttributeError by its own.
    if _is_importing(_sys._getframe(1)):
        problem = f"cannot import name '{name}' from '{__name__}': {_no_such(name)}"
        raise ImportError(problem, name=__name__, path=__file__)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}': {_no_such(name)}")


def _is_importing(frame):
    code, at = frame.f_code.co_code, frame.f_lasti
    return 0 <= at < len(code) and code[at] == _std("opcode").opmap.get("IMPORT_FROM")


def _finish():
    """Called at the end of the generated module: publishes what scripts are meant to see."""
    private = globals()
    public = type(_sys)(__name__, __doc__)
    for name in ("__file__", "__cached__", "__loader__", "__package__", "__spec__"):
        if name in private:
            setattr(public, name, private[name])
    public.__getattr__ = _missing
    public.__check__ = _check
    for name in _HELPERS:
        setattr(public, name, private[name])
    functions = {tool: private.pop(entry["function"]) for tool, entry in _CONFIG["tools"].items()}
    packing = dict(private, _call=_pack)
    narrowed = _os.environ.get("PTC_TOOLS")
    allowed = functions if narrowed is None else narrowed.split(",")
    for tool, function in functions.items():
        if tool in allowed:
            published = _Published(tool, function, packing)
            _published[published.name] = _by_tool[tool] = published
            setattr(public, published.name, function)
    public.__all__ = sorted({*_HELPERS, *_published})
    _sys.modules[__name__] = public

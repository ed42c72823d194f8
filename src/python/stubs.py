
# ---- The tools. Below stands one function for each, made from its JSON Schema. ----


class _Default:
    """Stands for an optional argument that was left out, and shows the default that the tool then uses."""

    __slots__ = ("_text",)

    def __init__(self, text):
        self._text = text

    def __repr__(self):
        return self._text


def _given(always, unless_none, unless_absent=None):
    """The arguments to send: all of the first, and of the others those that the script gave."""
    for name, value in unless_none.items():
        if value is not None and value.__class__ is not _Default:
            always[name] = value
    if unless_absent:
        for name, value in unless_absent.items():
            if value.__class__ is not _Default:
                always[name] = value
    return always


def _tool(name, refused=None):
    """Makes a generated function the tool `name`: wrong arguments are explained."""

    def decorate(function):
        def tool(*args, **kwargs):
            try:
                return function(*args, **kwargs)
            except TypeError as error:
                # With a frame below this one the arguments did fit, and the error is about something else.
                if error.__traceback__.tb_next is not None:
                    raise
            raise _misuse(name, function, refused or {}, args, kwargs)

        tool.__name__ = tool.__qualname__ = function.__name__
        tool.__doc__ = function.__doc__
        tool.__wrapped__ = function
        return tool

    return decorate


def _misuse(name, function, refused, args, kwargs):
    """The TypeError that says what is wrong with the arguments, and how the tool is called."""
    code = function.__code__
    positional = code.co_varnames[: code.co_argcount]
    known = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    placed = positional[: len(args)]
    defaults = function.__defaults__ or ()
    needed = positional[: len(positional) - len(defaults)]
    needed += tuple(n for n in known[len(positional) :] if n not in (function.__kwdefaults__ or {}))
    missing = [n for n in needed if n not in placed and n not in kwargs]
    unknown = [n for n in kwargs if n not in known and not code.co_flags & 8]
    twice = [n for n in placed if n in kwargs]
    if unknown and unknown[0] in refused:
        problem = "has no argument %r: %s" % (unknown[0], refused[unknown[0]])
    elif unknown:
        problem = "has no argument %r" % unknown[0]
        free = [n for n in known if n not in placed and n not in kwargs]
        near = _nearest_argument(unknown[0], free) or (missing[0] if len(missing) == 1 else None)
        problem += "; did you mean %r?" % near if near else "; it has %s" % (", ".join(known) or "none")
    elif len(args) > len(positional):
        problem = "was given %d arguments by position and takes %d that way" % (len(args), len(positional))
        if len(positional) < len(known):
            problem += "; give the others by name: %s" % ", ".join(n + "=…" for n in known[len(positional) :])
    elif twice:
        problem = "was given the argument %r twice, by position and by name" % twice[0]
    else:
        listed = ", ".join(repr(n) for n in missing)
        problem = "is missing the argument%s %s" % ("s" if len(missing) > 1 else "", listed)
    called = function.__name__ if function.__name__ == name else "%s (%s)" % (function.__name__, name)
    return TypeError("%s %s. Call it as %s" % (called, problem, _CONFIG["tools"][name]["signature"]))


def _nearest_argument(wrong, known):
    """The one of `known` that is spelt most like `wrong`, if any is like it."""

    def fold(name):
        return "".join(c for c in name.lower() if c.isalnum())[:60]

    def distance(a, b):
        last = list(range(len(b) + 1))
        for i, x in enumerate(a, 1):
            row = [i]
            for j, y in enumerate(b, 1):
                row.append(min(last[j] + 1, row[-1] + 1, last[j - 1] + (x != y)))
            last = row
        return last[-1]

    wanted = fold(wrong)
    best = None
    for name in known:
        folded = fold(name)
        far = distance(wanted, folded)
        inside = min(len(wanted), len(folded)) >= 3 and (wanted in folded or folded in wanted)
        if far <= max(1, len(wanted) // 3) or inside:
            best = min(best or (far, name), (far, name))
    return best and best[1]


# ---- before the run: calls of tools that there are not ----

# A script that names one of these may end early, or bind names that its text does not show: it is left alone.
_UNFORESEEABLE = frozenset(
    "exit quit SystemExit _exit abort kill execv execve execvp execl exec eval globals locals vars setattr builtins "
    "__builtins__ __import__ import_module __getattr__ modules".split()
)
_LAZY = frozenset("Lambda ListComp SetComp DictComp GeneratorExp BoolOp IfExp".split())
_SIMPLE = frozenset("Expr Assign AugAssign AnnAssign Import ImportFrom Assert Delete Return".split())


def _check(script):
    """The first thing in the script's text that is certain to be reached and to fail because a tool does not exist: its
    exception's name and message, line, offset and text. None when there is none, or when that is not certain."""
    with open(script, "rb") as file:
        source = file.read()
    try:
        # PyCF_ONLY_AST | PyCF_ALLOW_TOP_LEVEL_AWAIT
        tree = compile(source, script, "exec", 0x2400, True)
        found = _Names(tree).first_mistake(tree.body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    if found is None:
        return None
    node, kind, message = found
    lines = source.decode("utf-8", "replace").splitlines()
    text = lines[node.lineno - 1] if node.lineno <= len(lines) else ""
    before = text.encode("utf-8", "surrogatepass")[: node.col_offset]
    return kind, message, node.lineno, len(before.decode("utf-8", "replace")) + 1, text


def _kind(node):
    return type(node).__name__


def _children(node):
    for field in node._fields:
        value = getattr(node, field, None)
        for item in value if isinstance(value, list) else (value,):
            if hasattr(item, "_fields"):
                yield item


def _walk(node, skip=frozenset()):
    todo = [node]
    while todo:
        node = todo.pop()
        yield node
        todo += [child for child in reversed(list(_children(node))) if _kind(child) not in skip]


class _Names:
    """What names a script binds, and which of its statements are reached in any case."""

    def __init__(self, tree):
        self.bound, self.functions, self.stars, self.unforeseeable = {}, {}, False, False
        for node in _walk(tree):
            kind = _kind(node)
            for name in self._names_of(node, kind):
                self.unforeseeable = self.unforeseeable or name in _UNFORESEEABLE
            if kind == "ImportFrom" and any(alias.name == "*" for alias in node.names):
                self.stars = self.stars or node.module != __name__
                self._bind(*_sys.modules[__name__].__all__)
            elif kind in ("Import", "ImportFrom"):
                self._bind(*(alias.asname or alias.name.partition(".")[0] for alias in node.names))
            elif kind == "Name" and _kind(node.ctx) != "Load":
                self._bind(node.id)
            elif kind in ("FunctionDef", "AsyncFunctionDef", "ClassDef"):
                self._bind(node.name)
            elif kind == "arg":
                self._bind(node.arg)
            elif kind in ("ExceptHandler", "MatchAs", "MatchStar", "TypeVar") and node.name:
                self._bind(node.name)
            elif kind == "MatchMapping" and node.rest:
                self._bind(node.rest)
            elif kind == "Attribute" and _kind(node.ctx) != "Load" and _kind(node.value) == "Name":
                self._bind(node.value.id)
        self.functions = {node.name: node for node in tree.body if _kind(node) == "FunctionDef"}
        self.module_aliases = set()

    @staticmethod
    def _names_of(node, kind):
        if kind == "Name":
            return (node.id,)
        if kind == "Attribute":
            return (node.attr,)
        if kind == "alias":
            return (node.name, node.name.rpartition(".")[2])
        return ()

    def _bind(self, *names):
        for name in names:
            self.bound[name] = self.bound.get(name, 0) + 1

    def first_mistake(self, body):
        if self.unforeseeable:
            return None
        for statement in self._certain(body, 0):
            found = self._mistake(statement)
            if found is not None:
                return found
        return None

    def _certain(self, body, depth):
        """The simple statements that are reached if no exception ends the script before them."""
        for statement in body:
            kind = _kind(statement)
            if kind in _SIMPLE:
                yield statement
                if kind == "Return":
                    return
                called = self._plain_call(statement)
                if called is not None and depth < 5:
                    yield from self._certain(called.body, depth + 1)
            elif kind == "If" and self._is_main_guard(statement.test):
                yield from self._certain(statement.body, depth)
            elif kind in ("FunctionDef", "AsyncFunctionDef", "ClassDef", "Pass", "Global"):
                continue
            elif kind == "While" or any(_kind(inner) in ("Return", "Break", "Continue") for inner in _walk(statement)):
                return

    def _plain_call(self, statement):
        """The script's own function that a statement like `main()` runs."""
        call = statement.value if _kind(statement) == "Expr" else None
        if _kind(call) != "Call" or _kind(call.func) != "Name" or self.bound.get(call.func.id) != 1:
            return None
        function = self.functions.get(call.func.id)
        if function is None or function.decorator_list:
            return None
        if any(_kind(node) in ("Yield", "YieldFrom") for node in _walk(function)):
            return None
        return function

    @staticmethod
    def _is_main_guard(test):
        return (
            _kind(test) == "Compare"
            and _kind(test.left) == "Name"
            and test.left.id == "__name__"
            and [_kind(op) for op in test.ops] == ["Eq"]
        )

    def _mistake(self, statement):
        kind, public = _kind(statement), _sys.modules[__name__]
        if kind == "ImportFrom" and statement.module == __name__ and not statement.level:
            for alias in statement.names:
                if alias.name != "*" and not hasattr(public, alias.name):
                    message = f"cannot import name '{alias.name}' from '{__name__}': {_no_such(alias.name)}"
                    return statement, "ImportError", message
        elif kind == "Import":
            self.module_aliases.update(a.asname or a.name for a in statement.names if a.name == __name__)
        for node in _walk(statement, _LAZY) if kind not in ("Import", "ImportFrom") else ():
            if _kind(node) == "Attribute" and _kind(node.value) == "Name" and node.value.id in self.module_aliases:
                if self.bound[node.value.id] == 1 and not hasattr(public, node.attr):
                    message = f"module '{__name__}' has no attribute '{node.attr}': {_no_such(node.attr)}"
                    return node, "AttributeError", message
            if _kind(node) == "Call" and _kind(node.func) == "Name" and self._is_unbound(node.func.id):
                return node, "NameError", self._unbound(node.func.id)
        return None

    def _is_unbound(self, name):
        if name in self.bound or self.stars or hasattr(_std("builtins"), name):
            return False
        return name in _published or _nearest(name, _published) is not None

    def _unbound(self, name):
        if name in _published or name in _HELPERS:
            return f"name '{name}' is not defined. Add: from {__name__} import {name}"
        return f"name '{name}' is not defined: {_no_such(name)}"

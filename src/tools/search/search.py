"""Searches a tree like ripgrep, for hosts that have none: the same files, the same order, the same records.

Reads its request as JSON, works in the current directory and writes `PATH NUL LINE : TEXT LF` for each match. What
Python's `re` understands in another way than ripgrep does is refused: an error is better than a wrong answer.
"""
import json
import os
import re
import stat
import sys
import warnings


class Refused(Exception):
    pass


# What stands for something else in the other language, or for nothing: escapes, then constructs that are looked for in
# the pattern with an "e" for each escape and a "c" for each class.
FOREIGN_ESCAPES = {
    "A": "an anchor of the whole text; use ^",
    "z": "an anchor of the whole text; use $",
    "Z": "an anchor of the whole text; use $",
    "<": "\\<; use \\b",
    ">": "\\>; use \\b",
    "0": "an octal escape; use \\x00",
    "n": "a line end: the search goes line by line",
    "\n": "a line end: the search goes line by line",
}
FOREIGN = [
    (r"(?:[*+?]|\{\d*,?\d*\})\+", "a possessive quantifier; leave out the second +"),
    (r"\{,", "a repetition without a lower bound; write {0,n}"),
    (r"\(\?>", "an atomic group; use (?:...)"),
    (r"\(\?\(", "a conditional"),
    (r"\(\?[a-zA-Z]*[aLuUR]", "a flag that the other does not know"),
    (r"\n", FOREIGN_ESCAPES["n"]),
]


def bare(pattern):
    """`pattern` without what is escaped and what is in classes; refuses escapes that are foreign."""
    out, at = "", 0
    while at < len(pattern):
        char = pattern[at]
        if char == "\\":
            refuse_escape(pattern, at, False)
            out += "e"
            at += 2
        elif char == "[":
            at = end_of_class(pattern, at)
            out += "c"
        else:
            out += char
            at += 1
    return out


def end_of_class(pattern, start):
    at = start + 1
    at += pattern[at : at + 1] == "^"
    first = at
    while at < len(pattern):
        if pattern[at] == "\\":
            refuse_escape(pattern, at, True)
            at += 1
        elif pattern[at] == "]" and at > first:
            return at + 1
        at += 1
    # Compiling it says what is wrong.
    return at


def refuse_escape(pattern, at, in_class):
    escaped = pattern[at + 1 : at + 2]
    what = FOREIGN_ESCAPES.get(escaped)
    if escaped in ("b", "B") and pattern[at + 2 : at + 3] == "{":
        what = "\\b{...}; use \\b"
    if escaped == "b" and in_class:
        what = "\\b in a class"
    if what and not (in_class and escaped in ("<", ">")):
        refuse(pattern, what)


def refuse(pattern, what):
    raise Refused(f"{pattern!r} contains {what}; or install ripgrep, which may understand it")


def expression(pattern):
    stripped = bare(pattern)
    for foreign, what in FOREIGN:
        if re.search(foreign, stripped):
            refuse(pattern, what)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise Refused(f"{pattern!r}: {error}")
    except Warning as warning:
        refuse(pattern, f"what is ambiguous ({warning})")


# ---- .gitignore ----


class Ignore:
    """The rules of one `.gitignore`."""

    def __init__(self, folder, lines):
        self.folder = folder
        self.rules = [rule for rule in map(self.rule, lines) if rule]

    @staticmethod
    def rule(line):
        line = line.rstrip("\r\n")
        # Trailing spaces do not count unless they are escaped.
        while line.endswith(" ") and not line.endswith("\\ "):
            line = line[:-1]
        if not line or line.startswith("#"):
            return None
        keeps = line.startswith("!")
        if keeps:
            line = line[1:]
        folders_only = line.endswith("/")
        line = line.rstrip("/") if folders_only else line
        anchored = "/" in line
        line = line[1:] if line.startswith("/") else line
        if not line:
            return None
        try:
            return re.compile(translated(line, anchored)), keeps, folders_only
        except re.error:
            return None

    def verdict(self, path, is_folder):
        """True: ignored; False: kept; None: nothing is said of it."""
        for rule, keeps, folders_only in reversed(self.rules):
            if (is_folder or not folders_only) and rule.fullmatch(path):
                return not keeps
        return None


def translated(glob, anchored):
    out = "" if anchored else "(?:.*/)?"
    at = 0
    while at < len(glob):
        char = glob[at]
        if glob.startswith("**/", at) and (at == 0 or glob[at - 1] == "/"):
            out += "(?:.*/)?"
            at += 3
            continue
        if glob[at:] == "**" and at > 0 and glob[at - 1] == "/":
            return out + ".*"
        if char == "*":
            out += "[^/]*"
        elif char == "?":
            out += "[^/]"
        elif char == "[":
            end = glob.find("]", at + 2 if glob[at + 1 : at + 2] not in ("!", "^") else at + 3)
            if end < 0:
                out += re.escape(char)
            else:
                inside = glob[at + 1 : end]
                negated = inside[:1] in ("!", "^")
                inside = (inside[1:] if negated else inside).replace("\\", "\\\\").replace("[", "\\[")
                out += "(?!/)[" + ("^" if negated else "") + inside + "]"
                at = end
        elif char == "\\" and at + 1 < len(glob):
            at += 1
            out += re.escape(glob[at])
        else:
            out += re.escape(char)
        at += 1
    return out


def ignore_file(folder):
    try:
        with open(os.path.join(folder, ".gitignore"), encoding="utf-8", errors="surrogateescape") as file:
            return file.read().split("\n")
    except OSError:
        # There is none, or none that counts.
        return []


def outer_rules(root):
    """The rules of the folders above, up to the top of the repository, the outermost first."""
    rules = []
    folder = root
    while not os.path.lexists(os.path.join(folder, ".git")):
        above = os.path.dirname(folder)
        if above == folder:
            break
        folder = above
        rules.append(Ignore(folder, ignore_file(folder)))
    return rules[::-1]


def is_ignored(path, is_folder, rules):
    for ignore in reversed(rules):
        below = os.path.relpath(path, ignore.folder).replace(os.sep, "/")
        verdict = ignore.verdict(below, is_folder)
        if verdict is not None:
            return verdict
    return False


# ---- the walk ----


def complain(path, error):
    sys.stderr.write(f"{path}: {error.strerror} (os error {error.errno})\n")
    complain.count += 1


complain.count = 0


def files(version_control):
    """The files below the current directory, as `./path`."""
    root = os.getcwd()
    stack = [("./", outer_rules(root))]
    while stack:
        here, rules = stack.pop()
        if rules is None:
            yield here
            continue
        folder = os.path.join(root, here[2:])
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: os.fsencode(entry.name))
        except OSError as error:
            complain(here, error)
            continue
        rules = rules + [Ignore(folder, ignore_file(folder))]
        for entry in reversed(entries):
            if entry.name in version_control or entry.is_symlink():
                continue
            is_folder = entry.is_dir(follow_symlinks=False)
            if not is_folder and not entry.is_file(follow_symlinks=False):
                continue
            if not is_ignored(os.path.join(folder, entry.name), is_folder, rules):
                stack.append((here + entry.name + "/", rules) if is_folder else (here + entry.name, None))


# ---- the records ----


class Writer:
    def __init__(self):
        self.out = sys.stdout.buffer

    def path(self, path):
        self.out.write(os.fsencode(path) + b"\0")

    def line(self, path, number, mark, text):
        self.out.write(b"%s\0%d%s%s\n" % (os.fsencode(path), number, mark, text))


def is_binary(file):
    return any(b"\0" in chunk for chunk in iter(lambda: file.read(1 << 16), b""))


def search(path, shown, finds, context, writer):
    # A named file is a way to a descriptor, which is a link; what the walk has found must not become one.
    flags = os.O_RDONLY | os.O_NONBLOCK | (os.O_NOFOLLOW if path == shown else 0)
    try:
        with os.fdopen(os.open(path, flags), "rb") as file:
            if stat.S_ISREG(os.fstat(file.fileno()).st_mode) and not is_binary(file):
                file.seek(0)
                search_lines(file, shown, finds, context, writer)
    except OSError as error:
        complain(shown, error)


def search_lines(file, shown, finds, context, writer):
    recent, last_match = [], None
    for number, line in enumerate(file, 1):
        line = line[:-1] if line.endswith(b"\n") else line
        text = line[:-1] if line.endswith(b"\r") else line
        if finds(text.decode("utf-8", "surrogateescape")):
            for before in recent:
                writer.line(shown, before[0], b"-", before[1])
            recent = []
            writer.line(shown, number, b":", line)
            last_match = number
        elif last_match is not None and number - last_match <= context:
            writer.line(shown, number, b"-", line)
        elif context:
            recent.append((number, line))
            del recent[:-context]


def main():
    request = json.load(sys.stdin)
    writer = Writer()
    finds = None if request["pattern"] is None else expression(request["pattern"]).search
    if "file" in request:
        found = [(request["file"], request["name"])]
    else:
        found = ((path, path) for path in files(set(request["version_control"])))
    for path, shown in found:
        if finds is None:
            writer.path(shown)
        else:
            search(path, shown, finds, request["context"], writer)
    writer.out.flush()
    return 2 if complain.count else 0


try:
    sys.exit(main())
except Refused as refused:
    sys.stderr.write(f"{refused}\n")
    sys.exit(2)

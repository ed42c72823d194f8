//! Names on their way into Python: what is an identifier, what is taken, and how any other name is mapped.

/// Python's keywords, the same from 3.8 on.
const KEYWORDS: &str = " False None True and as assert async await break class continue def del elif else except finally for from \
     global if import in is lambda nonlocal not or pass raise return try while with yield ";

/// The names of Python's built-ins that scripts use, and the generated module itself too: a function of such a name
/// would take its place in both.
const BUILTINS: &str = " ArithmeticError AssertionError AttributeError BaseException BlockingIOError BrokenPipeError \
     BufferError ChildProcessError ConnectionError EOFError Ellipsis EnvironmentError Exception ExceptionGroup \
     FileExistsError FileNotFoundError FloatingPointError GeneratorExit IOError ImportError IndexError \
     InterruptedError IsADirectoryError KeyError KeyboardInterrupt LookupError MemoryError ModuleNotFoundError \
     NameError NotADirectoryError NotImplemented NotImplementedError OSError OverflowError PermissionError \
     ProcessLookupError RecursionError ReferenceError RuntimeError StopAsyncIteration StopIteration SyntaxError \
     SystemError SystemExit TimeoutError TypeError UnboundLocalError UnicodeDecodeError UnicodeEncodeError \
     UnicodeError ValueError Warning ZeroDivisionError abs aiter all anext any ascii bin bool breakpoint bytearray \
     bytes callable chr classmethod compile complex copyright credits delattr dict dir divmod enumerate eval exec \
     exit filter float format frozenset getattr globals hasattr hash help hex id input int isinstance issubclass \
     iter len license list locals map max memoryview min next object oct open ord pow print property quit range \
     repr reversed round set setattr slice sorted staticmethod str sum super tuple type vars zip ";

/// What the generated module offers besides the tools.
pub(crate) const HELPERS: [&str; 7] = [
    "json_parse",
    "shell_quote",
    "retry",
    "parallel",
    "tools",
    "ToolError",
    "aio",
];

/// The names that the body of a generated function looks up, and one that Python reserves.
const TAKEN_ARGUMENTS: [&str; 4] = ["_call", "_given", "_more", "__debug__"];

/// The modules of the standard library (3.8 to 3.13) that a module of ours would hide from the script, and the names
/// under which the interpreter and the engine start a script.
const MODULES: &str = " abc aifc antigravity argparse array ast asynchat asyncio asyncore atexit audioop base64 bdb binascii binhex \
     bisect builtins bz2 cProfile calendar cgi cgitb chunk cmath cmd code codecs codeop collections colorsys \
     compileall concurrent configparser contextlib contextvars copy copyreg crypt csv ctypes curses dataclasses \
     datetime dbm decimal difflib dis distutils doctest email encodings ensurepip enum errno faulthandler fcntl \
     filecmp fileinput fnmatch formatter fractions ftplib functools gc genericpath getopt getpass gettext glob \
     graphlib grp gzip hashlib heapq hmac html http idlelib imaplib imghdr imp importlib inspect io ipaddress \
     itertools json keyword lib2to3 linecache locale logging lzma mailbox mailcap marshal math mimetypes mmap \
     modulefinder msilib msvcrt multiprocessing netrc nis nntplib nt ntpath nturl2path numbers opcode operator \
     optparse os ossaudiodev parser pathlib pdb pickle pickletools pipes pkgutil platform plistlib poplib posix \
     posixpath pprint profile pstats pty pwd py_compile pyclbr pydoc pydoc_data pyexpat queue quopri random re \
     readline reprlib resource rlcompleter runpy sched secrets select selectors shelve shlex shutil signal site \
     smtpd smtplib sndhdr socket socketserver spwd sqlite3 sre_compile sre_constants sre_parse ssl stat statistics \
     string stringprep struct subprocess sunau symbol symtable sys sysconfig syslog tabnanny tarfile telnetlib \
     tempfile termios textwrap this threading time timeit tkinter token tokenize tomllib trace traceback \
     tracemalloc tty turtle turtledemo types typing unicodedata unittest urllib uu uuid venv warnings wave weakref \
     webbrowser winreg winsound wsgiref xdrlib xml xmlrpc zipapp zipfile zipimport zlib zoneinfo compression \
     annotationlib pip setuptools script sitecustomize usercustomize ";

fn listed(list: &str, name: &str) -> bool {
    list.split_ascii_whitespace().any(|word| word == name)
}

/// Whether `name` is an ASCII identifier of Python and no keyword.
pub(crate) fn is_identifier(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let starts = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    starts && name.chars().all(plain) && !listed(KEYWORDS, name)
}

/// Whether `name` can stand in an import statement, packages included.
pub(crate) fn is_dotted_name(name: &str) -> bool {
    name.split('.').all(is_identifier)
}

/// Why scripts could not import a module of ours called `name`; `None` when they can.
pub(crate) fn module_name_problem(name: &str) -> Option<&'static str> {
    if !is_identifier(name) {
        Some("letters, digits and underscores, no keyword, no dots")
    } else if name.starts_with('_') {
        Some("no underscore in front: those are the interpreter's")
    } else if listed(MODULES, name) {
        Some("none that the standard library or the interpreter uses")
    } else if name.len() > 100 {
        Some("at most 100 characters")
    } else {
        None
    }
}

/// The name of the Python function for the tool `name`. It never begins with an underscore: those names are the
/// generated module's own.
pub(crate) fn function_name(name: &str) -> String {
    let mut mapped = identifier(name);
    if listed(BUILTINS, &mapped) {
        mapped.push('_');
    }
    if mapped.starts_with('_') {
        mapped.insert_str(0, "tool");
    }
    mapped
}

/// The name of the Python parameter for the argument `name`.
pub(crate) fn argument_name(name: &str) -> String {
    let mut mapped = identifier(name);
    if TAKEN_ARGUMENTS.contains(&mapped.as_str()) {
        mapped.push('_');
    }
    mapped
}

/// `name` as an identifier: what cannot stand in one becomes an underscore, a digit in front gets one before it, a
/// keyword one behind it.
fn identifier(name: &str) -> String {
    let mut mapped = String::with_capacity(name.len() + 1);
    for c in name.chars() {
        match c {
            _ if c.is_ascii_alphanumeric() || is_plain_letter(c) => mapped.push(c),
            // Telling such names apart matters more than their looks.
            _ if c.is_alphanumeric() => mapped.push_str(&format!("u{:x}", u32::from(c))),
            _ => mapped.push('_'),
        }
    }
    if mapped.is_empty() || mapped.starts_with(|c: char| c.is_ascii_digit()) {
        mapped.insert(0, '_');
    }
    if listed(KEYWORDS, &mapped) {
        mapped.push('_');
    }
    mapped
}

/// Letters outside ASCII that are letters to Python too and that its normalisation (NFKC) leaves as they are: so the
/// name that we write is the name that it knows.
fn is_plain_letter(c: char) -> bool {
    let latin = ('\u{c0}'..='\u{ff}').contains(&c) && !matches!(c, '×' | '÷');
    let greek = ('\u{391}'..='\u{3c9}').contains(&c) && c != '\u{3a2}';
    let cyrillic = ('\u{410}'..='\u{44f}').contains(&c) || matches!(c, 'ё' | 'Ё');
    let kana = ('\u{3041}'..='\u{3096}').contains(&c)
        || ('\u{30a1}'..='\u{30fa}').contains(&c)
        || c == 'ー';
    let ideograph = ('\u{4e00}'..='\u{9fff}').contains(&c);
    let hangul = ('\u{ac00}'..='\u{d7a3}').contains(&c);
    latin || greek || cyrillic || kana || ideograph || hangul
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_mapped() {
        for (name, expected) in [
            ("web_search", "web_search"),
            ("web-search", "web_search"),
            ("github.search issues", "github_search_issues"),
            ("3d_render", "tool_3d_render"),
            ("__call__", "tool__call__"),
            ("_call", "tool_call"),
            ("class", "class_"),
            ("list", "list_"),
            ("open", "open_"),
            ("print", "print_"),
            ("match", "match"),
            ("größe", "größe"),
            ("検索", "検索"),
            ("Ⓐ²", "tool_"),
            ("ﬁnd", "ufb01nd"),
            ("🚀", "tool_"),
        ] {
            if name == "Ⓐ²" {
                assert_eq!(function_name(name), "u24b6ub2");
                continue;
            }
            assert_eq!(function_name(name), expected, "{name}");
        }
    }

    #[test]
    fn arguments_are_mapped() {
        for (name, expected) in [
            ("from", "from_"),
            ("mode", "mode"),
            ("id", "id"),
            ("type", "type"),
            ("2fa", "_2fa"),
            ("$filter", "_filter"),
            ("x.y", "x_y"),
            ("", "_"),
            ("_call", "_call_"),
            ("_given", "_given_"),
            ("_more", "_more_"),
            ("__debug__", "__debug___"),
        ] {
            assert_eq!(argument_name(name), expected, "{name}");
        }
    }

    #[test]
    fn module_names() {
        for good in ["hermes_tools", "tools", "my2"] {
            assert_eq!(module_name_problem(good), None, "{good}");
        }
        for bad in [
            "",
            "a.b",
            "a-b",
            "2a",
            "class",
            "json",
            "sitecustomize",
            "_socket",
            "größe",
            "a b",
        ] {
            assert!(module_name_problem(bad).is_some(), "{bad}");
        }
        assert!(module_name_problem(&"x".repeat(101)).is_some());
        assert!(
            is_dotted_name("xml.etree")
                && !is_dotted_name("xml..etree")
                && !is_dotted_name("a.class")
        );
    }
}

//! Everything about Python: interpreters, the child's environment, and the code of ours that runs in the child.
//!
//! Two pieces of Python lie beside a script in its staging directory: the boot hook `sitecustomize.py`, which prepares
//! the interpreter, and the generated module, through which the script reaches the host's tools. Both are compiled
//! once per interpreter, when it is probed.

mod environ;
mod interpreter;
pub(crate) mod stubs;
#[cfg(test)]
mod tests;

pub(crate) use environ::Environ;
pub(crate) use interpreter::{Interpreter, Interpreters};

use crate::config::Config;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::Path;

/// The source of `sitecustomize.py`.
pub(crate) const BOOT: &str = include_str!("boot.py");

/// The fixed part of the generated module. The functions of the tools follow it, and [`FINISH`] follows them.
const RUNTIME: &str = concat!(
    include_str!("runtime.py"),
    "\n\n",
    include_str!("helpers.py"),
    "\n\n",
    include_str!("check.py"),
    "\n\n",
    include_str!("publish.py"),
);

/// The last statement of the generated module.
const FINISH: &str = "\n\n_finish()\n";

/// The text of the module that scripts import, for the tools of `config`.
pub(crate) fn module_source(config: &Config) -> String {
    stubs::module_source(RUNTIME, config) + FINISH
}

/// What the boot hook is asked to do.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Boot<'a> {
    /// The name of the generated module.
    pub(crate) module: &'a str,
    /// The directory that takes its place on `sys.path` after the staging directory; none in strict mode.
    pub(crate) import_dir: Option<&'a Path>,
    /// A thread of the interpreter watches the leash, whose descriptor `PTC_LEASH_FD` names.
    pub(crate) watch_leash: bool,
    /// The script's text is searched for calls of tools that there are not: see [`worth_checking`].
    pub(crate) check: bool,
    /// The leader leaves word of its exit status in the file `status`, since the host may take the system's away.
    pub(crate) tell_status: bool,
    /// The interpreter ends after that search, which is made in any case: nothing of the script runs.
    pub(crate) only_check: bool,
}

/// The value of `PTC_BOOT`: `<flags>:<module>:<import directory>`, where the directory comes last since its name may
/// hold any byte.
pub(crate) fn boot_value(boot: Boot) -> OsString {
    let mut value = Vec::new();
    value.extend(boot.watch_leash.then_some(b'l'));
    value.extend(boot.check.then_some(b'c'));
    value.extend(boot.tell_status.then_some(b'e'));
    value.extend(boot.only_check.then_some(b'n'));
    value.push(b':');
    value.extend_from_slice(boot.module.as_bytes());
    value.push(b':');
    if let Some(dir) = boot.import_dir {
        value.extend_from_slice(dir.as_os_str().as_encoded_bytes());
    }
    OsString::from_vec(value)
}

/// Whether the syntax tree of `code` deserves a look, which costs the interpreter two milliseconds: it may use a tool
/// that is not among `functions`, the names that the generated module `module` offers besides `helpers`.
///
/// Only words are compared here, so comments and strings can raise a false alarm; the tree then decides.
pub(crate) fn worth_checking(
    code: &str,
    module: &str,
    functions: &[&str],
    helpers: &[&str],
) -> bool {
    let offered = |name: &str| functions.contains(&name) || helpers.contains(&name);
    let mentions_module = words(code).any(|word| word.text == module);
    let mut aliases = vec![module];
    let mut imported: Vec<&str> = Vec::new();
    for statement in code.lines().map(str::trim_start) {
        if let Some(names) = imported_names(statement, module) {
            imported.extend(words(names).map(|word| word.text));
        } else if let Some(alias) = statement
            .strip_prefix("import ")
            .and_then(|rest| alias_of(rest, module))
        {
            aliases.push(alias);
        }
    }
    let mut before = "";
    words(code).any(|word| {
        let owner = std::mem::replace(&mut before, word.text);
        if word.after_dot {
            return aliases.contains(&owner) && !offered(word.text);
        }
        let is_import = imported.contains(&word.text) && word.text != "as";
        let forgotten = word.is_called && offered(word.text) && !mentions_module;
        forgotten
            || (word.is_called || is_import)
                && !offered(word.text)
                && resembles(word.text, functions)
    })
}

/// What stands behind `from <module> import`.
fn imported_names<'a>(statement: &'a str, module: &str) -> Option<&'a str> {
    let rest = statement
        .strip_prefix("from ")?
        .trim_start()
        .strip_prefix(module)?;
    rest.trim_start().strip_prefix("import")
}

/// `t` of `hermes_tools as t`.
fn alias_of<'a>(rest: &'a str, module: &str) -> Option<&'a str> {
    let rest = rest
        .trim_start()
        .strip_prefix(module)?
        .trim_start()
        .strip_prefix("as ")?;
    words(rest).next().map(|word| word.text)
}

/// Whether `name` could be meant to be one of `functions`: most of its letters stand there in the same order.
fn resembles(name: &str, functions: &[&str]) -> bool {
    name.len() > 3
        && functions.iter().any(|function| {
            let common = common_subsequence(name.as_bytes(), function.as_bytes());
            common * 10 >= name.len().max(function.len()) * 6
        })
}

/// The length of the longest common subsequence of two short names.
fn common_subsequence(a: &[u8], b: &[u8]) -> usize {
    let (a, b) = (&a[..a.len().min(64)], &b[..b.len().min(64)]);
    let mut row = vec![0; b.len() + 1];
    for x in a {
        let mut diagonal = 0;
        for (j, y) in b.iter().enumerate() {
            let above = std::mem::replace(&mut diagonal, row[j + 1]);
            row[j + 1] = if x == y {
                above + 1
            } else {
                row[j + 1].max(row[j])
            };
        }
    }
    row[b.len()]
}

struct Word<'a> {
    text: &'a str,
    after_dot: bool,
    is_called: bool,
}

/// The identifiers of a text.
fn words(text: &str) -> impl Iterator<Item = Word<'_>> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let mut at = 0;
    std::iter::from_fn(move || {
        let start = at + text[at..].find(is_part)?;
        let end = start
            + text[start..]
                .find(|c| !is_part(c))
                .unwrap_or(text.len() - start);
        at = end;
        Some(Word {
            text: &text[start..end],
            after_dot: text[..start].ends_with('.'),
            is_called: text[end..].starts_with('('),
        })
    })
}

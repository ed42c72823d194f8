//! Checked reading of a tree that a person wrote: every complaint names the JSON path, what was expected and what was
//! there. `null` counts as absent everywhere, so a host can pass its own unset settings on.

use super::{quote, Value};
use crate::error::{Error, Result};
use crate::suggest::did_you_mean;
use std::fmt;
use std::ops::RangeInclusive;
use std::path::PathBuf;

/// How much of a bad value a message repeats.
const SHOWN: usize = 60;

/// A JSON object with the path at which it stands.
#[derive(Clone)]
pub(crate) struct Section<'a> {
    path: String,
    members: &'a [(String, Value)],
}

impl<'a> Section<'a> {
    /// `path` is empty for the document itself, whose members are then named without a prefix.
    pub(crate) fn new(path: &str, value: &'a Value) -> Result<Self> {
        let members = value
            .as_object()
            .ok_or_else(|| mismatch(path, "an object", value))?;
        Ok(Section {
            path: path.to_string(),
            members,
        })
    }

    /// An object without members, which stands in for an absent one.
    pub(crate) fn empty(path: &str) -> Self {
        Section {
            path: path.to_string(),
            members: &[],
        }
    }

    /// Refuses the members that are neither in `known` nor `foreign`.
    pub(crate) fn only(&self, known: &[&str], foreign: impl Fn(&str) -> bool) -> Result<()> {
        let unknown = |name: &str| !known.contains(&name) && !foreign(name);
        match self.members.iter().find(|(name, _)| unknown(name)) {
            None => Ok(()),
            Some((name, _)) => Err(Error::config(
                &self.at(&shorten(name)),
                format_args!(
                    "unknown key{}; known here: {}",
                    did_you_mean(name, known.iter().copied()),
                    known.join(", ")
                ),
            )),
        }
    }

    /// The path of the member `key`.
    pub(crate) fn at(&self, key: &str) -> String {
        match (self.path.as_str(), is_plain(key)) {
            ("", true) => key.to_string(),
            (path, true) => format!("{path}.{key}"),
            (path, false) => format!("{path}[{}]", quote(key)),
        }
    }

    /// The member `key`, unless it is missing or null; the last one where it is written twice.
    pub(crate) fn get(&self, key: &str) -> Option<&'a Value> {
        let last = self.members.iter().rev().find(|(name, _)| name == key);
        last.map(|(_, value)| value)
            .filter(|value| **value != Value::Null)
    }

    /// Its members without the null ones.
    pub(crate) fn members(&self) -> impl Iterator<Item = (&'a str, &'a Value)> {
        let present = |(name, value): &'a (String, Value)| match value {
            Value::Null => None,
            _ => Some((name.as_str(), value)),
        };
        self.members.iter().filter_map(present)
    }

    /// The object `key`; one without members where it is absent.
    pub(crate) fn section(&self, key: &str) -> Result<Section<'a>> {
        match self.get(key) {
            Some(value) => Section::new(&self.at(key), value),
            None => Ok(Section::empty(&self.at(key))),
        }
    }

    pub(crate) fn boolean(&self, key: &str) -> Result<Option<bool>> {
        self.typed(key, "true or false", Value::as_bool)
    }

    pub(crate) fn string(&self, key: &str) -> Result<Option<&'a str>> {
        self.typed(key, "a string", Value::as_str)
    }

    pub(crate) fn array(&self, key: &str, expected: &str) -> Result<&'a [Value]> {
        Ok(self.typed(key, expected, Value::as_array)?.unwrap_or(&[]))
    }

    /// A whole number; `50.0` and `5e1` are whole as well.
    pub(crate) fn integer(&self, key: &str, range: RangeInclusive<u64>) -> Result<Option<u64>> {
        let expected = format!("a whole number from {} to {}", range.start(), range.end());
        self.typed(key, &expected, |value| {
            whole(value).filter(|number| range.contains(number))
        })
    }

    /// One of `choices`, whatever its case and the space around it.
    pub(crate) fn choice<T: Copy>(&self, key: &str, choices: &[(&str, T)]) -> Result<Option<T>> {
        let Some(value) = self.get(key) else {
            return Ok(None);
        };
        let found = value.as_str().and_then(|text| choose(text, choices));
        found
            .map(Some)
            .ok_or_else(|| self.no_choice(key, choices, value))
    }

    /// The error that `value` is none of `choices`.
    pub(crate) fn no_choice<T>(&self, key: &str, choices: &[(&str, T)], value: &Value) -> Error {
        let names = || choices.iter().map(|(name, _)| *name);
        let quoted: Vec<String> = names().map(quote).collect();
        let hint = value
            .as_str()
            .map_or(String::new(), |text| did_you_mean(text, names()));
        let got = shown(value);
        Error::config(
            &self.at(key),
            format_args!("expected {}, got {got}{hint}", any_of(&quoted)),
        )
    }

    /// A file name; `~` and `~/…` are resolved, a relative one is taken from the current directory.
    pub(crate) fn path(&self, key: &str) -> Result<Option<PathBuf>> {
        self.get(key)
            .map(|value| path(&self.at(key), value))
            .transpose()
    }

    /// A list of file names.
    pub(crate) fn paths(&self, key: &str) -> Result<Vec<PathBuf>> {
        let items = self.array(key, "a list of paths")?.iter().enumerate();
        items
            .map(|(i, item)| path(&self.item(key, i), item))
            .collect()
    }

    /// A list of strings that `check` accepts.
    pub(crate) fn strings(
        &self,
        key: &str,
        what: &str,
        check: impl Fn(&str) -> bool,
    ) -> Result<Vec<String>> {
        let items = self
            .array(key, &format!("a list of {what}s"))?
            .iter()
            .enumerate();
        items
            .map(|(i, item)| match item.as_str().filter(|text| check(text)) {
                Some(text) => Ok(text.to_string()),
                None => Err(mismatch(&self.item(key, i), with_article(what), item)),
            })
            .collect()
    }

    /// The path of the `i`th item of the list `key`.
    pub(crate) fn item(&self, key: &str, i: usize) -> String {
        format!("{}[{i}]", self.at(key))
    }

    /// The error that the member `key` has the wrong value.
    pub(crate) fn mismatch(&self, key: &str, expected: impl fmt::Display) -> Error {
        mismatch(
            &self.at(key),
            expected,
            self.get(key).unwrap_or(&Value::Null),
        )
    }

    fn typed<T>(
        &self,
        key: &str,
        expected: &str,
        read: impl Fn(&'a Value) -> Option<T>,
    ) -> Result<Option<T>> {
        let Some(value) = self.get(key) else {
            return Ok(None);
        };
        read(value)
            .map(Some)
            .ok_or_else(|| mismatch(&self.at(key), expected, value))
    }
}

/// The error "expected …, got …" at `path`.
pub(crate) fn mismatch(path: &str, expected: impl fmt::Display, got: &Value) -> Error {
    let path = if path.is_empty() {
        "configuration"
    } else {
        path
    };
    Error::config(
        path,
        format_args!("expected {expected}, got {}", shown(got)),
    )
}

/// `value` as a message shows it.
pub(crate) fn shown(value: &Value) -> String {
    shorten(&value.to_string())
}

/// The entry of `choices` that `text` names.
pub(crate) fn choose<T: Copy>(text: &str, choices: &[(&str, T)]) -> Option<T> {
    let text = text.trim();
    let found = choices
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(text));
    found.map(|(_, value)| *value)
}

fn shorten(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text.to_string(),
    }
}

fn any_of(items: &[String]) -> String {
    match items {
        [rest @ .., last] if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => items.concat(),
    }
}

fn with_article(what: &str) -> String {
    let article = if what.starts_with(['a', 'e', 'i', 'o', 'u']) {
        "an"
    } else {
        "a"
    };
    format!("{article} {what}")
}

/// Whether `key` can stand behind a dot in a path.
fn is_plain(key: &str) -> bool {
    !key.is_empty()
        && key
            .chars()
            .all(|c| c.is_alphanumeric() || "_-…".contains(c))
}

/// `value` as a whole number that is exact.
fn whole(value: &Value) -> Option<u64> {
    let Value::Number(text) = value else {
        return None;
    };
    text.parse().ok().or_else(|| {
        let number: f64 = text.parse().ok()?;
        // Below 2^53 every whole f64 is the number that was meant.
        (number.fract() == 0.0 && (0.0..9007199254740992.0).contains(&number))
            .then_some(number as u64)
    })
}

fn path(at: &str, value: &Value) -> Result<PathBuf> {
    let text = value
        .as_str()
        .filter(|text| !text.is_empty() && !text.contains('\0'));
    let text = text.ok_or_else(|| mismatch(at, "a path", value))?;
    let expanded = expand_home(at, text)?;
    std::path::absolute(&expanded).map_err(|e| {
        Error::config(
            at,
            format_args!("{} cannot be made absolute: {e}", shown(value)),
        )
    })
}

/// `text` with a leading `~` or `~/` replaced by HOME.
pub(crate) fn expand_home(at: &str, text: &str) -> Result<PathBuf> {
    let Some(rest) = text
        .strip_prefix('~')
        .filter(|rest| rest.is_empty() || rest.starts_with('/'))
    else {
        return Ok(PathBuf::from(text));
    };
    match std::env::var_os("HOME").filter(|home| !home.is_empty()) {
        Some(home) => Ok(PathBuf::from(home).join(rest.trim_start_matches('/'))),
        None => Err(Error::config(
            at,
            format_args!("{} needs HOME, which is not set", quote(text)),
        )),
    }
}

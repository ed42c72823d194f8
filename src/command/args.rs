//! Options in the manner of every other command: `--name value` and `--name=value`, in any order.

use super::Refusal::{self, Usage};
use crate::suggest::did_you_mean;
use std::ffi::OsString;

/// An option that a command knows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Known {
    pub(super) name: &'static str,
    /// What stands for its value in messages; `None`: it has none.
    pub(super) value: Option<&'static str>,
}

/// What was given.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Given {
    pub(super) operands: Vec<String>,
    options: Vec<(&'static str, String)>,
}

impl Given {
    /// The value of an option that counts once.
    pub(super) fn one<'a>(&'a self, name: &'a str) -> Option<&'a str> {
        self.all(name).next_back()
    }

    /// The values of an option that may be given several times, in order.
    pub(super) fn all<'a>(&'a self, name: &'a str) -> impl DoubleEndedIterator<Item = &'a str> {
        let of_name =
            move |(known, value): &'a (&str, String)| (*known == name).then_some(value.as_str());
        self.options.iter().filter_map(of_name)
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.one(name).is_some()
    }
}

/// The arguments as text.
pub(super) fn texts(arguments: Vec<OsString>) -> Result<Vec<String>, Refusal> {
    let text = |argument: OsString| {
        argument
            .into_string()
            .map_err(|bad| Usage(format!("the argument {bad:?} is not UTF-8")))
    };
    arguments.into_iter().map(text).collect()
}

/// Sorts `arguments` into options and operands; all that follows `--` are operands.
pub(super) fn parse(arguments: Vec<String>, known: &[Known]) -> Result<Given, Refusal> {
    let mut given = Given::default();
    let mut arguments = arguments.into_iter();
    while let Some(argument) = arguments.next() {
        if argument == "--" {
            given.operands.extend(arguments.by_ref());
        } else if argument == "-" || !argument.starts_with('-') {
            given.operands.push(argument);
        } else {
            let (name, value) = match argument.split_once('=') {
                Some((name, value)) => (name, Some(value.to_string())),
                None => (argument.as_str(), None),
            };
            let option = find(name, known)?;
            let value = value_of(option, value, &mut arguments)?;
            given.options.push((option.name, value));
        }
    }
    Ok(given)
}

fn find(name: &str, known: &[Known]) -> Result<Known, Refusal> {
    let found = known.iter().find(|option| option.name == name);
    found.copied().ok_or_else(|| {
        let hint = did_you_mean(name, known.iter().map(|option| option.name));
        Usage(format!("unknown option {name}{hint}"))
    })
}

fn value_of(
    option: Known,
    attached: Option<String>,
    rest: &mut impl Iterator<Item = String>,
) -> Result<String, Refusal> {
    let name = option.name;
    match (option.value, attached) {
        (None, None) => Ok(String::new()),
        (None, Some(value)) => Err(Usage(format!("{name} takes no value, but got {value:?}"))),
        (Some(_), Some(value)) => Ok(value),
        (Some(what), None) => rest
            .next()
            .ok_or_else(|| Usage(format!("{name} needs a value: {name} {what}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: [Known; 2] = [
        Known {
            name: "--tool",
            value: Some("NAME=COMMAND"),
        },
        Known {
            name: "--json",
            value: None,
        },
    ];

    fn given(words: &[&str]) -> Result<Given, Refusal> {
        parse(words.iter().map(|w| w.to_string()).collect(), &KNOWN)
    }

    #[test]
    fn options_and_operands_come_in_any_order() {
        let given = given(&[
            "--tool",
            "a=b",
            "x.py",
            "--json",
            "--tool=c=d",
            "-",
            "--",
            "--json",
        ])
        .unwrap();
        assert_eq!(given.operands, ["x.py", "-", "--json"]);
        assert_eq!(given.all("--tool").collect::<Vec<_>>(), ["a=b", "c=d"]);
        assert!(given.has("--json"));
        assert_eq!(given.one("--tool"), Some("c=d"));
    }

    #[test]
    fn mistakes_are_named() {
        for (words, expected) in [
            (
                &["--tol", "a"][..],
                "unknown option --tol; did you mean \"--tool\"?",
            ),
            (&["--tool"], "--tool needs a value: --tool NAME=COMMAND"),
            (&["--json=1"], "--json takes no value, but got \"1\""),
        ] {
            assert_eq!(given(words).unwrap_err(), Usage(expected.into()));
        }
    }
}

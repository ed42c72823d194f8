//! The environment that a script gets: what it needs to work, and no secrets.
//!
//! The host's environment is copied once, since a C host may change it in another thread at any time. Of this copy the
//! names that look like secrets are dropped, then only names that are known to be harmless pass. A host that wants more
//! names it (`env_passthrough`), by exact name, which overrides both rules.

use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};

/// A name that contains one of these, in any case, is a secret's.
const SECRET: [&str; 11] = [
    "KEY",
    "TOKEN",
    "SECRET",
    "PASSWORD",
    "PASSWD",
    "CREDENTIAL",
    "CREDS",
    "AUTH",
    "DSN",
    "WEBHOOK",
    "BEARER",
];

const SAFE: [&str; 14] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "TERM",
    "TZ",
    "TMPDIR",
    "TMP",
    "TEMP",
    "PYTHONPATH",
    "VIRTUAL_ENV",
];

const SAFE_PREFIXES: [&str; 3] = ["LC_", "XDG_", "CONDA"];

/// The shortest value, in characters, that is taken for a secret: shorter ones turn up in any text by chance.
const SHORTEST_SECRET: usize = 8;

/// A snapshot of the host's environment.
#[derive(Debug, Clone, Default)]
pub(crate) struct Environ {
    variables: Vec<(OsString, OsString)>,
}

impl Environ {
    /// The environment of this process, now.
    pub(crate) fn capture() -> Self {
        Self::from_pairs(std::env::vars_os())
    }

    /// An environment of these variables; the first of two with one name counts, as `getenv` has it.
    pub(crate) fn from_pairs(pairs: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        let mut seen = HashSet::new();
        let variables = pairs
            .into_iter()
            .filter(|(name, _)| seen.insert(name.clone()))
            .collect();
        Environ { variables }
    }

    /// All of it, secrets included.
    pub(crate) fn all(&self) -> &[(OsString, OsString)] {
        &self.variables
    }

    /// The value of a variable, unless it is empty.
    pub(crate) fn get(&self, name: &str) -> Option<&OsStr> {
        let (_, value) = self.variables.iter().find(|(n, _)| n == name)?;
        (!value.is_empty()).then_some(value)
    }

    /// The environment of a child: what passes of the host's, with `extra` (a run's option `env`) over it and `own` (the
    /// engine's variables) over everything. Each name once, in a stable order.
    pub(crate) fn child_env(
        &self,
        passthrough: &[String],
        extra: &[(String, String)],
        own: &[(&str, OsString)],
    ) -> Vec<(OsString, OsString)> {
        let passing = self
            .variables
            .iter()
            .filter(|(name, _)| passes(name, passthrough))
            .cloned();
        let extra = extra.iter().map(|(n, v)| (n.into(), v.into()));
        let own = own.iter().map(|(n, v)| (n.into(), v.clone()));
        let mut places: HashMap<OsString, usize> = HashMap::new();
        let mut child: Vec<(OsString, OsString)> = Vec::new();
        for (name, value) in passing.chain(extra).chain(own) {
            match places.get(&name) {
                Some(&at) => child[at].1 = value,
                None => {
                    places.insert(name.clone(), child.len());
                    child.push((name, value));
                }
            }
        }
        child
    }

    /// The values of the variables that were kept from the child because of their names, for redaction; the longest
    /// first, so that a secret within a secret does not spare the rest of it. A value that the child has anyway, under
    /// another name, is none of them.
    pub(crate) fn scrubbed_secrets(&self, passthrough: &[String]) -> Vec<Vec<u8>> {
        let (passing, dropped): (Vec<_>, Vec<_>) = self
            .variables
            .iter()
            .partition(|(name, _)| passes(name, passthrough));
        let known: HashSet<&OsString> = passing.into_iter().map(|(_, value)| value).collect();
        let mut secrets: Vec<Vec<u8>> = dropped
            .into_iter()
            .filter(|(name, value)| looks_secret(name) && !known.contains(value))
            .filter(|(_, value)| value.to_string_lossy().chars().count() >= SHORTEST_SECRET)
            .map(|(_, value)| value.as_encoded_bytes().to_vec())
            .collect();
        secrets.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        secrets.dedup();
        secrets
    }
}

fn passes(name: &OsStr, passthrough: &[String]) -> bool {
    passthrough.iter().any(|n| OsStr::new(n) == name) || (!looks_secret(name) && is_safe(name))
}

fn looks_secret(name: &OsStr) -> bool {
    let name = name.to_string_lossy().to_ascii_uppercase();
    SECRET.iter().any(|word| name.contains(word))
}

fn is_safe(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else {
        return false;
    };
    SAFE.contains(&name) || SAFE_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environ(pairs: &[(&str, &str)]) -> Environ {
        Environ::from_pairs(pairs.iter().map(|(n, v)| (n.into(), v.into())))
    }

    fn names(child: &[(OsString, OsString)]) -> Vec<&str> {
        child.iter().map(|(n, _)| n.to_str().unwrap()).collect()
    }

    fn strings(list: &[&str]) -> Vec<String> {
        list.iter().map(|s| s.to_string()).collect()
    }

    #[test]
    fn secrets_and_unknown_names_stay_outside() {
        let host = environ(&[
            ("PATH", "/bin"),
            ("HOME", "/h"),
            ("LC_ALL", "C"),
            ("XDG_CACHE_HOME", "/c"),
            ("CONDA_PREFIX", "/conda"),
            ("VIRTUAL_ENV", "/v"),
            ("CONDA_TOKEN", "t"),
            ("LC_SECRET", "s"),
            ("OPENAI_API_KEY", "k"),
            ("db_password", "p"),
            ("MY_PASSWD", "p"),
            ("AUTH_CREDENTIAL", "c"),
            ("SENTRY_DSN", "d"),
            ("SLACK_WEBHOOK", "w"),
            ("GH_BEARER", "b"),
            ("AWS_CREDS", "c"),
            ("EDITOR", "vi"),
            ("LD_PRELOAD", "x"),
            ("Path", "/other"),
        ]);
        let child = host.child_env(&[], &[], &[]);
        assert_eq!(
            names(&child),
            [
                "PATH",
                "HOME",
                "LC_ALL",
                "XDG_CACHE_HOME",
                "CONDA_PREFIX",
                "VIRTUAL_ENV"
            ]
        );
    }

    #[test]
    fn every_name_of_the_contract_passes() {
        for name in [
            "USER",
            "LOGNAME",
            "SHELL",
            "LANG",
            "LANGUAGE",
            "TERM",
            "TZ",
            "TMPDIR",
            "TMP",
            "TEMP",
            "PYTHONPATH",
        ] {
            assert_eq!(
                names(&environ(&[(name, "x")]).child_env(&[], &[], &[])),
                [name]
            );
        }
    }

    #[test]
    fn a_declared_name_overrides_both_rules_and_only_itself() {
        let host = environ(&[("MY_API_KEY", "1"), ("MY_API_KEY2", "2"), ("EDITOR", "vi")]);
        let child = host.child_env(&strings(&["MY_API_KEY", "EDITOR", "ABSENT"]), &[], &[]);
        assert_eq!(names(&child), ["MY_API_KEY", "EDITOR"]);
    }

    #[test]
    fn the_engines_own_beats_the_runs_which_beats_the_hosts() {
        let host = environ(&[("HOME", "host"), ("TZ", "host"), ("LANG", "host")]);
        let extra =
            [("TZ", "run"), ("LANG", "run"), ("API_KEY", "run")].map(|(n, v)| (n.into(), v.into()));
        let child = host.child_env(
            &[],
            &extra,
            &[("LANG", "own".into()), ("PTC_BOOT", "own".into())],
        );
        let shown: Vec<_> = child
            .iter()
            .map(|(n, v)| format!("{}={}", n.to_str().unwrap(), v.to_str().unwrap()))
            .collect();
        assert_eq!(
            shown,
            [
                "HOME=host",
                "TZ=run",
                "LANG=own",
                "API_KEY=run",
                "PTC_BOOT=own"
            ]
        );
    }

    #[test]
    fn secrets_are_long_values_of_secret_names_longest_first() {
        let host = environ(&[
            ("A_KEY", "12345678"),
            ("B_TOKEN", "1234567"),
            ("C_SECRET", "1234567890"),
            ("D_SECRET", "1234567890"),
            ("EDITOR", "a very long editor"),
            ("SSH_AUTH_SOCK", "/home/somebody"),
            ("HOME", "/home/somebody"),
            ("E_KEY", "passed through"),
            ("F_KEY", "äöüäöüä"),
        ]);
        assert_eq!(
            host.scrubbed_secrets(&strings(&["E_KEY"])),
            [b"1234567890".to_vec(), b"12345678".to_vec()]
        );
    }

    #[test]
    fn an_empty_variable_counts_as_unset_and_the_first_of_two_counts() {
        let host = environ(&[("VIRTUAL_ENV", ""), ("HOME", "1"), ("HOME", "2")]);
        assert_eq!(host.get("VIRTUAL_ENV"), None);
        assert_eq!(host.get("HOME"), Some(OsStr::new("1")));
    }
}

//! The environment that a script gets: what is safe and known, nothing that looks like a secret.
//!
//! The host's environment is copied once, when the engine is made: other threads of a C host may change it at any time
//! without the lock that Rust's own accessors take.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

/// A name that contains one of these, in any case, is taken for a secret's.
const SECRET_PARTS: [&str; 11] = [
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

const SAFE_NAMES: [&str; 14] = [
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

/// Shorter values would be found, and replaced, in any text.
const MIN_SECRET_CHARS: usize = 8;

/// The host's environment as it was when the engine was made.
#[derive(Debug, Default)]
pub(crate) struct Environ {
    variables: BTreeMap<OsString, OsString>,
}

impl Environ {
    pub(crate) fn capture() -> Self {
        Environ {
            variables: std::env::vars_os().collect(),
        }
    }

    pub(crate) fn get(&self, name: &str) -> Option<&OsStr> {
        self.variables
            .get(OsStr::new(name))
            .map(OsString::as_os_str)
    }

    /// The child's environment: the safe part of the host's and `passthrough`, then the run's `extra` pairs, then our
    /// `own`; later ones win.
    pub(crate) fn child_env(
        &self,
        passthrough: &[String],
        extra: &[(String, String)],
        own: &[(&str, OsString)],
    ) -> Vec<(OsString, OsString)> {
        let mut env: BTreeMap<OsString, OsString> = self
            .variables
            .iter()
            .filter(|(name, _)| passes(name, passthrough))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        for (name, value) in extra {
            env.insert(name.into(), value.into());
        }
        for (name, value) in own {
            env.insert(name.into(), value.clone());
        }
        env.into_iter().collect()
    }

    /// The values that must not turn up in any output: those of variables that were dropped because their name looks
    /// like a secret's. A value that a variable which passes has as well is no secret from the script.
    pub(crate) fn scrubbed_secrets(&self, passthrough: &[String]) -> Vec<String> {
        let passed: Vec<&OsString> = self
            .variables
            .iter()
            .filter(|(name, _)| passes(name, passthrough))
            .map(|(_, value)| value)
            .collect();
        self.variables
            .iter()
            .filter(|(name, value)| {
                looks_secret(name) && !passes(name, passthrough) && !passed.contains(value)
            })
            .filter_map(|(_, value)| value.to_str())
            .filter(|value| value.chars().count() >= MIN_SECRET_CHARS)
            .map(str::to_string)
            .collect()
    }
}

fn passes(name: &OsStr, passthrough: &[String]) -> bool {
    if passthrough.iter().any(|p| OsStr::new(p) == name) {
        return true;
    }
    let Some(name) = name.to_str() else {
        return false;
    };
    !looks_secret(OsStr::new(name))
        && (SAFE_NAMES.contains(&name)
            || SAFE_PREFIXES.iter().any(|prefix| name.starts_with(prefix)))
}

fn looks_secret(name: &OsStr) -> bool {
    let upper = String::from_utf8_lossy(name.as_bytes()).to_ascii_uppercase();
    SECRET_PARTS.iter().any(|part| upper.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environ(pairs: &[(&str, &str)]) -> Environ {
        Environ {
            variables: pairs.iter().map(|(k, v)| (k.into(), v.into())).collect(),
        }
    }

    #[test]
    fn only_safe_names_pass_and_secrets_never() {
        let cases = [
            ("PATH", true),
            ("HOME", true),
            ("VIRTUAL_ENV", true),
            ("PYTHONPATH", true),
            ("LC_ALL", true),
            ("XDG_RUNTIME_DIR", true),
            ("CONDA_PREFIX", true),
            ("CONDA", true),
            ("path", false),
            ("PATHEXT", false),
            ("EDITOR", false),
            ("LD_PRELOAD", false),
            ("PYTHONSTARTUP", false),
            ("XDG_SESSION_SECRET", false),
            ("CONDA_TOKEN", false),
            ("LC_KEYMAP", false),
            ("openai_api_key", false),
            ("GITHUB_TOKEN", false),
            ("DB_PASSWORD", false),
            ("MY_PASSWD", false),
            ("AUTH_CREDENTIAL", false),
            ("AWS_CREDS", false),
            ("SENTRY_DSN", false),
            ("SLACK_WEBHOOK", false),
            ("X_BEARER", false),
        ];
        for (name, passes) in cases {
            let env = environ(&[(name, "v")]).child_env(&[], &[], &[]);
            assert_eq!(!env.is_empty(), passes, "{name}");
            let env = environ(&[(name, "v")]).child_env(&[name.to_string()], &[], &[]);
            assert_eq!(env.len(), 1, "{name} by passthrough");
        }
    }

    #[test]
    fn extra_pairs_and_ours_win() {
        let extra = [
            ("HOME".to_string(), "/b".to_string()),
            ("PTC_RUN".into(), "theirs".into()),
        ];
        let env = environ(&[("HOME", "/a")]).child_env(&[], &extra, &[("PTC_RUN", "ours".into())]);
        let pairs: Vec<(&str, &str)> = env
            .iter()
            .map(|(k, v)| (k.to_str().unwrap(), v.to_str().unwrap()))
            .collect();
        assert_eq!(pairs, [("HOME", "/b"), ("PTC_RUN", "ours")]);
    }

    #[test]
    fn secrets_are_long_values_of_secret_names_that_do_not_pass() {
        let environ = environ(&[
            ("A_TOKEN", "12345678"),
            ("B_TOKEN", "1234567"),
            ("C_TOKEN", "passed-through"),
            ("AUTH_SOCK_DIR", "/home/someone"),
            ("HOME", "/home/someone"),
            ("EDITOR", "not-a-secret"),
            ("D_KEY", "ключключ"),
        ]);
        let secrets = environ.scrubbed_secrets(&["C_TOKEN".to_string()]);
        assert_eq!(secrets, ["12345678", "ключключ"]);
    }
}

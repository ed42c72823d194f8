//! The key `isolation`: how far a script is kept from the rest of the machine. Only read here; what a kernel can do
//! of it is found out where it is applied.

use crate::error::{Error, Result};
use crate::json::reader::{choose, Section};
use crate::json::Value;
use std::path::PathBuf;

const LEVELS: [(&str, IsolationLevel); 3] = [
    ("none", IsolationLevel::None),
    ("guard", IsolationLevel::Guard),
    ("sandbox", IsolationLevel::Sandbox),
];
/// The keys that say something about a sandbox and nothing about the other levels.
const SANDBOX_KEYS: [&str; 10] = [
    "memory_mb",
    "cpu_seconds",
    "processes",
    "file_mb",
    "open_files",
    "write",
    "read",
    "write_cwd",
    "network",
    "unix_sockets",
];

/// The three levels, each containing the ones before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum IsolationLevel {
    /// A scrubbed environment and nothing else.
    None,
    /// The host's process is out of reach.
    Guard,
    /// Files, network and resources are bounded as well.
    Sandbox,
}

impl IsolationLevel {
    pub(crate) fn name(self) -> &'static str {
        super::name_of(self, &LEVELS)
    }
}

/// Resource limits of a sandbox; `None`: not limited.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Limits {
    pub(crate) memory_mb: Option<u64>,
    pub(crate) cpu_seconds: Option<u64>,
    pub(crate) processes: Option<u64>,
    pub(crate) file_mb: Option<u64>,
    pub(crate) open_files: Option<u64>,
}

/// What the configuration asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Isolation {
    pub(crate) level: IsolationLevel,
    pub(crate) limits: Limits,
    /// Absolute paths that a sandbox may write besides the staging and the working directory.
    pub(crate) write: Vec<PathBuf>,
    /// Absolute paths that a sandbox may read; `None`: everything.
    pub(crate) read: Option<Vec<PathBuf>>,
    /// Whether a sandbox may write the working directory.
    pub(crate) write_cwd: bool,
    /// Whether a sandbox may use the network.
    pub(crate) network: bool,
    /// Whether a sandbox without network may connect to every socket in the file system that its user may connect to.
    pub(crate) unix_sockets: bool,
    /// Whether a run fails where the kernel lacks a part of what was asked for.
    pub(crate) require: bool,
}

impl Default for Isolation {
    fn default() -> Self {
        Isolation {
            level: IsolationLevel::Guard,
            limits: Limits::default(),
            write: Vec::new(),
            read: None,
            write_cwd: true,
            network: false,
            unix_sockets: false,
            require: false,
        }
    }
}

impl Isolation {
    /// Reads the member `key` of `parent`: a level's name or an object.
    pub(super) fn parse(parent: &Section, key: &str) -> Result<Isolation> {
        match parent.get(key) {
            None => Ok(Isolation::default()),
            Some(Value::Object(_)) => Isolation::from_section(&parent.section(key)?),
            Some(value @ Value::String(name)) => {
                let level =
                    choose(name, &LEVELS).ok_or_else(|| parent.no_choice(key, &LEVELS, value))?;
                Ok(Isolation {
                    level,
                    ..Isolation::default()
                })
            }
            Some(_) => Err(parent.mismatch(key, "the name of a level or an object with `level`")),
        }
    }

    fn from_section(section: &Section) -> Result<Isolation> {
        let known = [&["level", "require"], SANDBOX_KEYS.as_slice()].concat();
        section.only(&known, |_| false)?;
        let level = section
            .choice("level", &LEVELS)?
            .unwrap_or(IsolationLevel::Guard);
        refuse_idle_keys(section, level)?;
        Ok(Isolation {
            level,
            limits: Limits {
                memory_mb: section.integer("memory_mb", 32..=1 << 24)?,
                cpu_seconds: section.integer("cpu_seconds", 1..=31_536_000)?,
                processes: section.integer("processes", 1..=1 << 22)?,
                file_mb: section.integer("file_mb", 1..=1 << 24)?,
                open_files: section.integer("open_files", 16..=1 << 20)?,
            },
            write: section.paths("write")?,
            read: section
                .get("read")
                .map(|_| section.paths("read"))
                .transpose()?,
            write_cwd: section.boolean("write_cwd")?.unwrap_or(true),
            network: section.boolean("network")?.unwrap_or(false),
            unix_sockets: section.boolean("unix_sockets")?.unwrap_or(false),
            require: section.boolean("require")?.unwrap_or(false),
        })
    }
}

/// A limit that nothing would enforce must not look as if it held.
fn refuse_idle_keys(section: &Section, level: IsolationLevel) -> Result<()> {
    let idle = SANDBOX_KEYS.iter().find(|key| section.get(key).is_some());
    match idle {
        Some(key) if level != IsolationLevel::Sandbox => Err(Error::config(
            &section.at(key),
            format_args!(
                "works with \"level\": \"sandbox\" only, the level is {:?}",
                level.name()
            ),
        )),
        _ => Ok(()),
    }
}

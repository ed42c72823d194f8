//! From the text of a path to a place in the file system.
//!
//! Promises: with `roots` configured, no tool opens, makes or removes anything outside of them, whatever links lead
//! where and whatever is exchanged between the look and the use; the place that was looked at is the place that is used.

use super::{Context, Failure};
use crate::json;
use crate::json::reader::expand_home;
use crate::suggest;
use crate::sys::walk::{self, Kind, Spot};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// How many names are compared to find the one that was meant.
const MOST_NEIGHBOURS: usize = 10_000;

/// A place with the path as the script wrote it.
pub(super) struct Place<'a> {
    pub(super) given: &'a str,
    pub(super) spot: Spot,
}

/// Finds the place that `given` leads to, from the session's directory on.
pub(super) fn find<'a>(context: &Context<'_>, given: &'a str) -> Result<Place<'a>, Failure> {
    if given.is_empty() || given.contains('\0') {
        return Err(format!("{given:?} is no path").into());
    }
    let expanded = expand_home("path", given)?;
    let path = context.cwd.join(expanded);
    let roots = Roots(&context.config.roots);
    match walk::walk(&path) {
        Ok(spot) if roots.hold(spot.path()) => Ok(Place { given, spot }),
        Ok(_) => Err(roots.refusal(given)),
        // What is outside is not even told from what does not exist.
        Err(stuck) if !roots.hold(&stuck.at) => Err(roots.refusal(given)),
        Err(stuck) => Err(explain(given, &stuck.error)),
    }
}

struct Roots<'a>(&'a [PathBuf]);

impl Roots<'_> {
    fn hold(&self, path: &Path) -> bool {
        // A root that does not exist holds nothing; it may be made at any time.
        let true_roots = self.0.iter().filter_map(|root| root.canonicalize().ok());
        self.0.is_empty() || true_roots.into_iter().any(|root| path.starts_with(root))
    }

    fn refusal(&self, given: &str) -> Failure {
        let roots: Vec<_> = self.0.iter().map(|root| root.to_string_lossy()).collect();
        let roots = roots.join(", ");
        format!("{given}: outside of the folders that tools may use (roots): {roots}").into()
    }
}

/// An error of the system about `given`.
pub(super) fn explain(given: &str, error: &io::Error) -> Failure {
    format!("{given}: {error}").into()
}

impl Place<'_> {
    /// Absolute and without links, as text.
    pub(super) fn resolved(&self) -> String {
        self.spot.path().to_string_lossy().into_owned()
    }

    /// Opens an existing file to read it.
    pub(super) fn open_file(&self) -> Result<File, Failure> {
        match self.spot.kind().map_err(|e| self.explain(&e))? {
            Some(Kind::File) => self.spot.open().map_err(|e| self.explain(&e)),
            Some(Kind::Folder) => {
                let given = self.given;
                Err(format!("{given}: a folder; search_files(\"*\", target=\"files\", path={given:?}) lists it").into())
            }
            Some(Kind::Special) => Err(self.no_file()),
            None => Err(self.missing()),
        }
    }

    pub(super) fn explain(&self, error: &io::Error) -> Failure {
        explain(self.given, error)
    }

    /// It is a device or the like.
    pub(super) fn no_file(&self) -> Failure {
        format!("{}: not a regular file", self.given).into()
    }

    /// It does not exist; the names around it that come near.
    pub(super) fn missing(&self) -> Failure {
        let similar = self.similar();
        let hint = match similar.first() {
            Some(name) => format!("; did you mean {name:?}?"),
            None => String::new(),
        };
        Failure {
            message: format!("{}: no such file{hint}", self.given),
            details: Some(format!(
                "{{\"similar_files\":{}}}",
                json::string_array(&similar)
            )),
        }
    }

    /// Paths like the given one that exist, the nearest first.
    fn similar(&self) -> Vec<String> {
        // Only where the file itself is what is missing do its neighbours say something.
        let wanted = match (
            self.spot.folder_is_missing(),
            Path::new(self.given).file_name(),
        ) {
            (false, Some(name)) => name.to_string_lossy().into_owned(),
            _ => return Vec::new(),
        };
        let neighbours = self.spot.neighbours(MOST_NEIGHBOURS).unwrap_or_default();
        let mut names: Vec<String> = neighbours
            .into_iter()
            .filter_map(|name| name.into_string().ok())
            .collect();
        names.sort();
        let folder = Path::new(self.given).parent().unwrap_or(Path::new(""));
        let mut similar = Vec::new();
        while let Some(name) = suggest::nearest(&wanted, names.iter().map(String::as_str)) {
            let name = name.to_string();
            names.retain(|other| *other != name);
            similar.push(folder.join(name).to_string_lossy().into_owned());
            if similar.len() == 5 {
                break;
            }
        }
        similar
    }
}

//! The files of a patch: read once, changed in memory, put in place together.

use super::diff;
use crate::sys::walk::{Kind, Spot};
use crate::tools::place::{self, Place};
use crate::tools::{Context, Failure};
use std::io::{self, Read};

/// Larger files are not edited: they would be in memory several times.
const MOST_BYTES: u64 = 64 << 20;

/// See the module.
pub(super) struct Files<'a> {
    context: &'a Context<'a>,
    files: Vec<File>,
}

struct File {
    /// As the script wrote it.
    path: String,
    spot: Spot,
    before: Option<Vec<u8>>,
    now: Option<Vec<u8>>,
    /// Where what is here was moved from: its index.
    from: Option<usize>,
    /// Where what was here was moved to.
    moved: bool,
}

/// What a patch has done.
#[derive(Debug, Default)]
pub(super) struct Changes {
    pub(super) diff: String,
    pub(super) modified: Vec<String>,
    pub(super) created: Vec<String>,
    pub(super) deleted: Vec<String>,
}

impl<'a> Files<'a> {
    pub(super) fn new(context: &'a Context<'a>) -> Self {
        Files {
            context,
            files: Vec::new(),
        }
    }

    /// The text of a file that is there.
    pub(super) fn read(&mut self, path: &str) -> Result<Vec<u8>, Failure> {
        let at = self.open(path)?;
        match &self.files[at].now {
            Some(text) => Ok(text.clone()),
            None if self.files[at].before.is_some() => {
                Err(format!("{path}: the patch has deleted or moved it before").into())
            }
            None => Err(place::find(self.context, path)?.missing()),
        }
    }

    pub(super) fn write(&mut self, path: &str, text: Vec<u8>) -> Result<(), Failure> {
        let at = self.open(path)?;
        self.files[at].now = Some(text);
        Ok(())
    }

    pub(super) fn create(&mut self, path: &str, text: Vec<u8>) -> Result<(), Failure> {
        self.refuse_existing(path)?;
        self.write(path, text)
    }

    fn refuse_existing(&mut self, path: &str) -> Result<(), Failure> {
        let at = self.open(path)?;
        match self.files[at].now {
            Some(_) => {
                Err(format!("{path}: exists already; use *** Update File: to change it").into())
            }
            None => Ok(()),
        }
    }

    pub(super) fn delete(&mut self, path: &str) -> Result<(), Failure> {
        self.read(path)?;
        let at = self.open(path)?;
        self.files[at].now = None;
        Ok(())
    }

    /// Moves a file, whose text is `text` by now.
    pub(super) fn rename(&mut self, path: &str, to: &str, text: Vec<u8>) -> Result<(), Failure> {
        self.read(path)?;
        let (from, target) = (self.open(path)?, self.open(to)?);
        if from == target {
            return self.write(path, text);
        }
        self.refuse_existing(to)?;
        self.files[from].now = None;
        self.files[from].moved = true;
        self.files[target].now = Some(text);
        self.files[target].from = Some(from);
        Ok(())
    }

    /// The index of the file that `path` leads to, read if it was not yet.
    fn open(&mut self, path: &str) -> Result<usize, Failure> {
        let place = place::find(self.context, path)?;
        let known = |file: &File| file.spot.path() == place.spot.path();
        if let Some(at) = self.files.iter().position(known) {
            return Ok(at);
        }
        let before = content(&place)?;
        self.files.push(File {
            path: path.to_string(),
            spot: place.spot,
            now: before.clone(),
            before,
            from: None,
            moved: false,
        });
        Ok(self.files.len() - 1)
    }

    pub(super) fn changes(&self) -> Changes {
        let mut changes = Changes::default();
        for file in &self.files {
            if file.before == file.now {
                continue;
            }
            let list = match (&file.before, &file.now) {
                (Some(_), Some(_)) => &mut changes.modified,
                (None, _) => &mut changes.created,
                (_, None) => &mut changes.deleted,
            };
            list.push(file.path.clone());
            // A file that was moved is shown once, under both of its names.
            if file.moved && file.now.is_none() {
                continue;
            }
            let source = file.from.map_or(file, |from| &self.files[from]);
            changes.diff.push_str(&diff::unified(
                (&source.path, source.before.as_deref()),
                (&file.path, file.now.as_deref()),
            ));
        }
        changes
    }

    /// Puts everything in place. What cannot be finished is undone.
    pub(super) fn commit(mut self) -> Result<(), Failure> {
        let changed = |file: &File| file.before != file.now;
        for file in self
            .files
            .iter_mut()
            .filter(|file| changed(file) && file.now.is_some())
        {
            let made = file.spot.make_folders();
            made.map_err(|e| place::explain(&file.path, &e))?;
        }
        let mut staged = Vec::new();
        for file in self.files.iter().filter(|file| changed(file)) {
            let Some(text) = &file.now else { continue };
            let model = file.from.map_or(file, |from| &self.files[from]);
            let new = file.spot.stage_like(&model.spot, text);
            staged.push((file, new.map_err(|e| place::explain(&file.path, &e))?));
        }
        let mut done = Vec::new();
        for (file, new) in staged {
            if let Err(error) = new.commit() {
                return Err(undo(file, &error, &done));
            }
            done.push(file);
        }
        for file in self
            .files
            .iter()
            .filter(|file| changed(file) && file.now.is_none())
        {
            if let Err(error) = file.spot.remove() {
                return Err(undo(file, &error, &done));
            }
            done.push(file);
        }
        Ok(())
    }
}

/// Gives the files that are `done` back what they had before; why that was necessary.
fn undo(failed: &File, error: &io::Error, done: &[&File]) -> Failure {
    let restore = |file: &&&File| match &file.before {
        Some(before) => file.spot.stage(before).and_then(|staged| staged.commit()),
        None => file.spot.remove(),
    };
    let lost: Vec<&str> = done
        .iter()
        .rev()
        .filter(|file| restore(file).is_err())
        .map(|file| file.path.as_str())
        .collect();
    let outcome = match lost.is_empty() {
        true => "nothing was changed".to_string(),
        false => format!(
            "and what was done before could not be undone in {}",
            lost.join(", ")
        ),
    };
    format!("{}: {error}; {outcome}", failed.path).into()
}

/// What is in a file; `None` where there is none.
fn content(place: &Place<'_>) -> Result<Option<Vec<u8>>, Failure> {
    if place.spot.kind().map_err(|e| place.explain(&e))?.is_none() {
        return Ok(None);
    }
    if place.spot.kind().map_err(|e| place.explain(&e))? == Some(Kind::Folder) {
        return Err(format!("{}: a folder, not a file", place.given).into());
    }
    let file = place.open_file()?;
    let mut text = Vec::new();
    let read = file.take(MOST_BYTES + 1).read_to_end(&mut text);
    read.map_err(|e| place.explain(&e))?;
    if text.len() as u64 > MOST_BYTES {
        let given = place.given;
        return Err(format!(
            "{given}: larger than {MOST_BYTES} bytes, which patch does not edit; use terminal"
        )
        .into());
    }
    match text.contains(&0) {
        true => Err(format!("{}: binary, not text", place.given).into()),
        false => Ok(Some(text)),
    }
}

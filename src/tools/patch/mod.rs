//! `patch`: one edit of a file, or a V4A patch over several files, as a whole or not at all.
//!
//! | file | what it is for |
//! |---|---|
//! | `replace.rs` | one text for another in a file |
//! | `v4a.rs`, `hunks.rs` | reading a V4A patch, and applying its hunks to a file |
//! | `files.rs` | the files of a patch in memory, and putting them in place |
//! | `lines.rs` | finding lines, also those that are nearly right |
//! | `diff.rs` | what was changed, as a unified diff |
//!
//! Promises: nothing is written unless everything can be; bytes outside of what was asked for stay as they are, line
//! ends, byte order mark and a missing final line end included; what was only nearly right is said in `note`.

mod diff;
mod files;
mod hunks;
mod lines;
mod replace;
mod v4a;

use super::{required, Answer, Context};
use crate::json::reader::Section;
use crate::json::{self, ObjectWriter};
use files::Files;

const MODES: [(&str, Mode); 2] = [("replace", Mode::Replace), ("patch", Mode::Patch)];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Replace,
    Patch,
}

pub(super) fn patch(context: &Context<'_>, arguments: &Section<'_>) -> Answer {
    const KNOWN: [&str; 6] = [
        "path",
        "old_string",
        "new_string",
        "replace_all",
        "mode",
        "patch",
    ];
    arguments.only(&KNOWN, |_| false)?;
    let mode = match arguments.choice("mode", &MODES)? {
        Some(mode) => mode,
        None if arguments.get("patch").is_some() => Mode::Patch,
        None => Mode::Replace,
    };
    let mut files = Files::new(context);
    let mut notes = Vec::new();
    match mode {
        Mode::Replace => {
            let edit = replace::Edit {
                old: required(arguments, "old_string")?,
                new: required(arguments, "new_string")?,
                all: arguments.boolean("replace_all")?.unwrap_or(false),
            };
            let path = required(arguments, "path")?;
            let text = files.read(path)?;
            let (text, note) = edit.apply(path, &text)?;
            notes.extend(note);
            files.write(path, text)?;
        }
        Mode::Patch => {
            for section in v4a::parse(required(arguments, "patch")?)? {
                hunks::apply(&mut files, &section, &mut notes)?;
            }
        }
    }
    let report = report(&files, &notes);
    files.commit()?;
    Ok(report)
}

fn report(files: &Files<'_>, notes: &[String]) -> String {
    let changed = files.changes();
    let list = |paths: &[String]| json::string_array(paths);
    let mut result = ObjectWriter::default();
    result
        .string("status", "ok")
        .raw("success", true)
        .string("diff", &changed.diff)
        .raw("files_modified", list(&changed.modified))
        .raw("files_created", list(&changed.created))
        .raw("files_deleted", list(&changed.deleted));
    if !notes.is_empty() {
        result.string("note", &notes.join(" "));
    }
    result.finish()
}

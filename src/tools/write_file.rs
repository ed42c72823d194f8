//! `write_file`: a whole file, at once or not at all.

use super::place::{self, Place};
use super::{required, Answer, Context, Failure};
use crate::json::reader::Section;
use crate::json::ObjectWriter;
use crate::sys::walk::Kind;
use std::borrow::Cow;
use std::io::Read;

const BOM: &str = "\u{feff}";
/// As much of a file as tells how its lines end.
const SAMPLE: u64 = 64 * 1024;

pub(super) fn write_file(context: &Context<'_>, arguments: &Section<'_>) -> Answer {
    arguments.only(&["path", "content"], |_| false)?;
    let mut place = place::find(context, required(arguments, "path")?)?;
    let (text, note) = in_manner_of(&Manner::of(&place)?, required(arguments, "content")?);
    let made = place.spot.make_folders();
    let dirs_created = made.map_err(|e| place.explain(&e))?;
    let staged = place.spot.stage(text.as_bytes());
    let written = staged.and_then(|staged| staged.commit());
    written.map_err(|e| place.explain(&e))?;
    let mut result = ObjectWriter::default();
    result
        .string("status", "ok")
        .raw("bytes_written", text.len())
        .raw("dirs_created", dirs_created)
        .string("resolved_path", &place.resolved());
    if !note.is_empty() {
        result.string("note", &note);
    }
    Ok(result.finish())
}

/// How a file is written beyond its text.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Manner {
    /// It begins with a byte order mark.
    bom: bool,
    /// Its lines end with CR and LF.
    pub(super) crlf: bool,
}

impl Manner {
    /// That of the file which is there; the plain one where there is none.
    fn of(place: &Place<'_>) -> Result<Manner, Failure> {
        match place.spot.kind().map_err(|e| place.explain(&e))? {
            None => return Ok(Manner::default()),
            Some(Kind::File) => {}
            Some(Kind::Folder) => return Err(format!("{}: a folder", place.given).into()),
            Some(Kind::Special) => return Err(place.no_file()),
        }
        // A file that may be replaced and not read has no manner that anybody could miss.
        let Ok(file) = place.spot.open() else {
            return Ok(Manner::default());
        };
        let mut sample = Vec::new();
        let read = file.take(SAMPLE).read_to_end(&mut sample);
        read.map_err(|e| place.explain(&e))?;
        Ok(Manner::of_text(&sample))
    }

    pub(super) fn of_text(text: &[u8]) -> Manner {
        let ends = text.iter().filter(|byte| **byte == b'\n').count();
        let crlf = text.windows(2).filter(|pair| pair == b"\r\n").count();
        Manner {
            bom: text.starts_with(BOM.as_bytes()),
            // All of them: what has both kinds is nobody's manner.
            crlf: ends > 0 && crlf == ends,
        }
    }
}

/// `text` in the manner of the file that it replaces, and what was done to it.
fn in_manner_of<'a>(manner: &Manner, text: &'a str) -> (Cow<'a, str>, String) {
    let mut out = Cow::Borrowed(text);
    let mut kept = Vec::new();
    if manner.crlf && out.contains('\n') && !out.contains('\r') {
        out = out.replace('\n', "\r\n").into();
        kept.push("CRLF line ends");
    }
    if manner.bom && !out.starts_with(BOM) {
        out = format!("{BOM}{out}").into();
        kept.push("byte order mark");
    }
    let note = match kept.is_empty() {
        true => String::new(),
        false => format!("The file's {} were kept.", kept.join(" and ")),
    };
    (out, note)
}

//! What a script writes: always drained, bounded in memory, and where that is wanted written to a file as a whole.

use crate::capture::Capture;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

/// The file that takes a stream's full text once it is more than is kept.
#[derive(Debug)]
pub(crate) struct Spill {
    dir: PathBuf,
    name: String,
    limit: u64,
    state: SpillState,
}

#[derive(Debug)]
enum SpillState {
    /// All is still in the capture.
    NotNeeded,
    Writing {
        file: File,
        written: u64,
    },
    Full,
    Failed(io::Error),
}

impl Spill {
    /// `name` must be new in `dir`; nothing is created before something is cut.
    pub(crate) fn new(dir: PathBuf, name: String, limit: u64) -> Self {
        Spill {
            dir,
            name,
            limit,
            state: SpillState::NotNeeded,
        }
    }

    /// To be called after `capture` was given `bytes`, with what it held `before` them.
    pub(crate) fn push(&mut self, before: Option<[Vec<u8>; 2]>, bytes: &[u8]) {
        if let (SpillState::NotNeeded, Some(before)) = (&self.state, before) {
            self.state = match self.create() {
                Ok(file) => SpillState::Writing { file, written: 0 },
                Err(e) => SpillState::Failed(e),
            };
            for part in before {
                self.write(&part);
            }
        }
        self.write(bytes);
    }

    fn create(&self) -> io::Result<File> {
        std::fs::create_dir_all(&self.dir)?;
        OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(self.path())
    }

    fn path(&self) -> PathBuf {
        self.dir.join(&self.name)
    }

    fn write(&mut self, bytes: &[u8]) {
        let SpillState::Writing { file, written } = &mut self.state else {
            return;
        };
        let room = usize::try_from(self.limit - *written).unwrap_or(usize::MAX);
        let part = &bytes[..bytes.len().min(room)];
        let mut result = file.write_all(part);
        *written += part.len() as u64;
        let full = part.len() < bytes.len();
        if full && result.is_ok() {
            result = writeln!(file, "\n[spill capped at {} bytes]", self.limit);
        }
        match result {
            Err(e) => self.state = SpillState::Failed(e),
            Ok(()) if full => self.state = SpillState::Full,
            Ok(()) => {}
        }
    }

    /// Where the stream's text is, if any was written; or why it could not be.
    pub(crate) fn finish(self) -> Result<Option<PathBuf>, String> {
        match &self.state {
            SpillState::NotNeeded => Ok(None),
            SpillState::Writing { .. } | SpillState::Full => Ok(Some(self.path())),
            SpillState::Failed(e) => Err(format!(
                "the full output could not be written to {} (code_execution.spill_dir): {e}",
                self.path().display()
            )),
        }
    }
}

/// A capture together with the file that takes what it cannot keep.
#[derive(Debug)]
pub(crate) struct Recorder {
    pub capture: Capture,
    pub spill: Option<Spill>,
}

impl Recorder {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let Some(spill) = &mut self.spill else {
            return self.capture.push(bytes);
        };
        let goes_over = !self.capture.is_over() && !self.capture.has_room_for(bytes.len());
        let before = if goes_over {
            self.capture
                .everything()
                .map(|parts| parts.map(<[u8]>::to_vec))
        } else {
            None
        };
        self.capture.push(bytes);
        if goes_over || self.capture.is_over() {
            spill.push(before, bytes);
        }
    }
}

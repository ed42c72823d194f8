//! The script's two output pipes and all that happens to their bytes on the way: secrets go out, head and tail are kept,
//! the whole is spilled, listeners are told.
//!
//! The supervisor reads them. Whoever shows a call to the host reads what is there first, so that listeners hear of what
//! a script wrote before it called and of the call in that order: pipe and socket know nothing of each other.

use super::output::{Recorder, Spill};
use super::remains::Stream as StreamText;
use super::Inner;
use crate::capture::Capture;
use crate::event::{Event, EventKind};
use crate::sys::poll::PollFd;
use crate::sys::{fd, random};
use crate::text::{RedactingStream, Redactor};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What one stream may take of a wake-up before the deadline and the other stream get their turn.
const READ_BUDGET: usize = 256 * 1024;

/// Both streams of a run.
#[derive(Debug)]
pub(super) struct Streams {
    redactor: Arc<Redactor>,
    stdout: Slot,
    stderr: Slot,
}

/// What is left of the streams.
#[derive(Debug)]
pub(super) struct Written {
    pub stdout: StreamText,
    pub stderr: StreamText,
    /// The file that holds all of stdout, where it was too much to keep.
    pub stdout_path: Option<PathBuf>,
}

impl Streams {
    /// Takes over the reading ends, which must not block.
    pub(super) fn new(
        run: &Inner,
        redactor: Arc<Redactor>,
        stdout: Option<OwnedFd>,
        stderr: Option<OwnedFd>,
    ) -> Self {
        let config = &run.plan.config;
        let spill = config.spill_dir.as_ref().map(|dir| {
            // Without randomness the number alone must do: a file that exists is never opened.
            let name = format!(
                "ptc-stdout-{}-{:016x}.txt",
                run.id,
                random::u64().unwrap_or_default()
            );
            Spill::new(dir.clone(), name, config.max_spill_bytes)
        });
        let recorder = |limit, spill| Recorder {
            capture: Capture::new(limit),
            spill,
        };
        Streams {
            redactor,
            stdout: Slot::new(Stream::new(
                EventKind::Stdout,
                stdout,
                recorder(config.max_stdout_bytes, spill),
            )),
            stderr: Slot::new(Stream::new(
                EventKind::Stderr,
                stderr,
                recorder(config.max_stderr_bytes, None),
            )),
        }
    }

    /// What to poll; a stream that has ended is never ready.
    pub(super) fn poll_fds(&self) -> [PollFd; 2] {
        [&self.stdout, &self.stderr].map(|slot| PollFd::readable(slot.raw_fd()))
    }

    pub(super) fn is_open(&self) -> bool {
        self.stdout.raw_fd() >= 0 || self.stderr.raw_fd() >= 0
    }

    /// Reads those that are ready, each up to its budget. For the thread that polls: a pipe that has ended is closed.
    pub(super) fn read(&self, run: &Inner, ready: &[PollFd]) {
        for (slot, polled) in [&self.stdout, &self.stderr].into_iter().zip(ready) {
            if polled.is_ready() {
                slot.with(|stream| {
                    if stream.read_some(run, &self.redactor) == Reading::Ended {
                        stream.pipe = None;
                    }
                });
            }
        }
    }

    /// Reads what is there, on any thread. The end of a pipe is left to be found by whoever polls it: a descriptor must
    /// not be closed under a poll.
    pub(super) fn catch_up(&self, run: &Inner) {
        for slot in [&self.stdout, &self.stderr] {
            slot.with(|stream| stream.read_some(run, &self.redactor));
        }
    }

    /// Closes the pipes and says what came out of them; what went wrong is added to `notes`.
    pub(super) fn finish(&self, run: &Inner, notes: &mut Vec<String>) -> Written {
        let (stdout, stdout_path) = self.stdout.finish(run, &self.redactor, notes);
        let (stderr, _) = self.stderr.finish(run, &self.redactor, notes);
        Written {
            stdout,
            stderr,
            stdout_path,
        }
    }

    /// Closes the pipes and forgets what came out of them.
    pub(super) fn discard(&self) {
        self.stdout.take();
        self.stderr.take();
    }
}

/// The place of a stream, empty once it is finished.
#[derive(Debug)]
struct Slot(Mutex<Option<Stream>>);

impl Slot {
    fn new(stream: Stream) -> Self {
        Slot(Mutex::new(Some(stream)))
    }

    fn raw_fd(&self) -> RawFd {
        self.with(|stream| stream.pipe.as_ref().map_or(-1, AsRawFd::as_raw_fd))
            .unwrap_or(-1)
    }

    fn with<T>(&self, act: impl FnOnce(&mut Stream) -> T) -> Option<T> {
        self.lock().as_mut().map(act)
    }

    fn take(&self) -> Option<Stream> {
        self.lock().take()
    }

    fn finish(
        &self,
        run: &Inner,
        redactor: &Redactor,
        notes: &mut Vec<String>,
    ) -> (StreamText, Option<PathBuf>) {
        let stream = self.take();
        stream.map_or_else(Default::default, |s| s.finish(run, redactor, notes))
    }

    fn lock(&self) -> MutexGuard<'_, Option<Stream>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How a read of what is there has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reading {
    /// There is no more, or the budget is used up.
    Paused,
    /// Nobody holds the other end any more, or it cannot be read.
    Ended,
}

#[derive(Debug)]
struct Stream {
    kind: EventKind,
    /// `None` after its end or an error: polling it on would return at once, again and again.
    pipe: Option<OwnedFd>,
    redacting: RedactingStream,
    recorder: Recorder,
    /// Bytes as the script wrote them.
    bytes: u64,
    buffer: Vec<u8>,
}

impl Stream {
    fn new(kind: EventKind, pipe: Option<OwnedFd>, recorder: Recorder) -> Self {
        Stream {
            kind,
            pipe,
            redacting: RedactingStream::default(),
            recorder,
            bytes: 0,
            buffer: vec![0; 64 * 1024],
        }
    }

    /// Reads what is there, up to the budget.
    fn read_some(&mut self, run: &Inner, redactor: &Redactor) -> Reading {
        let mut budget = READ_BUDGET;
        while let (Some(pipe), true) = (&self.pipe, budget > 0) {
            match fd::read(pipe.as_raw_fd(), &mut self.buffer) {
                Ok(0) => return Reading::Ended,
                Ok(n) => {
                    self.bytes += n as u64;
                    budget = budget.saturating_sub(n);
                    let clean = self.redacting.push(redactor, &self.buffer[..n]);
                    record(&mut self.recorder, run, self.kind, &clean);
                    // A short read has emptied the pipe.
                    if n < self.buffer.len() {
                        break;
                    }
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
                Err(_) => return Reading::Ended,
            }
        }
        Reading::Paused
    }

    fn finish(
        mut self,
        run: &Inner,
        redactor: &Redactor,
        notes: &mut Vec<String>,
    ) -> (StreamText, Option<PathBuf>) {
        let rest = self.redacting.finish(redactor);
        if !rest.is_empty() {
            record(&mut self.recorder, run, self.kind, &rest);
        }
        let path = match self.recorder.spill.map(Spill::finish) {
            None | Some(Ok(None)) => None,
            Some(Ok(path)) => path,
            Some(Err(problem)) => {
                notes.push(format!("Note: {problem}."));
                None
            }
        };
        let captured = self.recorder.capture.finish(path.as_deref());
        let text = StreamText {
            // Removing escape sequences can bring a secret together that was written in pieces.
            text: redactor.redact(&captured.text),
            bytes: self.bytes,
            truncated: captured.truncated,
        };
        (text, path)
    }
}

fn record(recorder: &mut Recorder, run: &Inner, kind: EventKind, bytes: &[u8]) {
    recorder.push(bytes);
    if run.is_listened_to() && !bytes.is_empty() {
        run.tell(Event::new(kind, bytes));
    }
}

//! `--trace FILE`: a run's timeline as Chrome trace events, which Perfetto and `chrome://tracing` show.
//!
//! The script is a span on the first lane; each tool call is one on a lane that no other call has meanwhile, so that
//! spans of one lane never overlap; chunks of output are instants. The file is complete JSON after every event: each
//! one is written over the end of the document, together with a new end, in one write. Whatever kills the command,
//! what is there can be read.

use crate::json::{self, ObjectWriter};
use crate::Outcome;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::fs::FileExt as _;
use std::time::Instant;

const OPENING: &str = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
const CLOSING: &str = "\n]}\n";
/// There is one process to show, and its number does not matter.
const PROCESS: u32 = 1;
const SCRIPT_LANE: usize = 1;
/// How much of a chunk of output is shown, in characters.
const PREVIEW: usize = 120;

/// A timeline that is being written.
#[derive(Debug)]
pub(super) struct Trace {
    file: File,
    /// A pipe or a device takes things in order only, and gets its end last.
    can_rewrite: bool,
    /// Where the next event goes.
    end: u64,
    is_empty: bool,
    zero: Instant,
    /// When the script began, and what was said of it.
    script: Option<(u64, String)>,
    /// The call that each lane has now, by number, and since when.
    lanes: Vec<Option<(u64, u64)>>,
    problem: Option<io::Error>,
}

/// What a call's end tells.
#[derive(Debug)]
pub(super) struct CallEnd<'a> {
    pub(super) id: u64,
    pub(super) tool: &'a str,
    pub(super) state: &'a str,
    pub(super) seconds: f64,
    /// The whole entry, as JSON.
    pub(super) entry: &'a str,
}

impl Trace {
    /// Replaces what `path` holds.
    pub(super) fn create(path: &str, script: &str) -> io::Result<Trace> {
        let file = File::create(path)?;
        let can_rewrite = file.metadata()?.is_file();
        let mut trace = Trace {
            file,
            can_rewrite,
            end: 0,
            is_empty: true,
            zero: Instant::now(),
            script: None,
            lanes: Vec::new(),
            problem: None,
        };
        trace.append(OPENING);
        trace.name("process_name", SCRIPT_LANE, &format!("ptc run {script}"));
        trace.name("thread_name", SCRIPT_LANE, "script");
        match trace.problem.take() {
            Some(e) => Err(e),
            None => Ok(trace),
        }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.zero.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    /// The script runs; `about` is a JSON object.
    pub(super) fn started(&mut self, about: &str) {
        let now = self.now();
        let mut event = span("start", "ptc", 0, now, SCRIPT_LANE);
        self.event(event.raw("args", "{}"));
        self.script = Some((now, about.to_string()));
    }

    pub(super) fn output(&mut self, stream: &str, bytes: &[u8]) {
        let text = String::from_utf8_lossy(bytes);
        let shown: String = text.chars().take(PREVIEW).collect();
        let mut args = ObjectWriter::default();
        args.raw("bytes", bytes.len()).string("text", &shown);
        let mut event = ObjectWriter::default();
        event
            .string("name", stream)
            .string("cat", "output")
            .string("ph", "i")
            .string("s", "t")
            .raw("ts", self.now())
            .raw("pid", PROCESS)
            .raw("tid", SCRIPT_LANE)
            .raw("args", args.finish());
        self.event(&mut event);
    }

    pub(super) fn call_began(&mut self, id: u64) {
        let now = self.now();
        let lane = self.free_lane();
        self.lanes[lane] = Some((id, now));
    }

    pub(super) fn call_ended(&mut self, call: &CallEnd) {
        let now = self.now();
        let took = (call.seconds * 1e6) as u64;
        let its_own = |lane: &Option<(u64, u64)>| lane.is_some_and(|(id, _)| id == call.id);
        let Some(lane) = self.lanes.iter().position(its_own) else {
            return;
        };
        let Some((_, began)) = self.lanes[lane].take() else {
            return;
        };
        // Events are taken a little late, and what comes next on this lane begins now at the earliest.
        let ended = (began + took).min(now);
        let tid = SCRIPT_LANE + 1 + lane;
        let mut event = span(call.tool, "call", began, ended, tid);
        if call.state != "answered" {
            event.string("cname", "terrible");
        }
        self.event(event.raw("args", call.entry));
    }

    /// The first lane without a call.
    fn free_lane(&mut self) -> usize {
        if let Some(lane) = self.lanes.iter().position(Option::is_none) {
            return lane;
        }
        self.lanes.push(None);
        let lane = self.lanes.len() - 1;
        let tid = SCRIPT_LANE + 1 + lane;
        self.name("thread_name", tid, &format!("calls {}", lane + 1));
        lane
    }

    /// The end of the run and of the file; why some of it could not be written.
    pub(super) fn finish(mut self, outcome: &Outcome) -> io::Result<()> {
        let now = self.now();
        let (began, about) = self.script.take().unwrap_or((now, "{}".into()));
        let mut args = ObjectWriter::default();
        args.string("status", outcome.status().name());
        for (key, value) in json::members(&about).unwrap_or_default() {
            args.raw(&key, value);
        }
        if let Some(error) = outcome.error() {
            args.string("error", error);
        }
        let mut event = span("script", "script", began, now, SCRIPT_LANE);
        self.event(event.raw("args", args.finish()));
        if !self.can_rewrite {
            self.append(CLOSING);
        }
        self.problem.map_or(Ok(()), Err)
    }

    /// Names a lane, or the process.
    fn name(&mut self, what: &str, tid: usize, name: &str) {
        let mut args = ObjectWriter::default();
        args.string("name", name);
        let mut event = ObjectWriter::default();
        event
            .string("name", what)
            .string("ph", "M")
            .raw("pid", PROCESS)
            .raw("tid", tid)
            .raw("args", args.finish());
        self.event(&mut event);
    }

    fn event(&mut self, event: &mut ObjectWriter) {
        let separator = if self.is_empty { "" } else { ",\n" };
        let event = std::mem::take(event).finish();
        self.is_empty = false;
        self.append(&format!("{separator}{event}"));
    }

    /// The first problem is the last thing that is written.
    fn append(&mut self, text: &str) {
        if self.problem.is_some() {
            return;
        }
        let written = match self.can_rewrite {
            true => {
                let whole = format!("{text}{CLOSING}");
                self.file.write_all_at(whole.as_bytes(), self.end)
            }
            false => self.file.write_all(text.as_bytes()),
        };
        match written {
            Ok(()) => self.end += text.len() as u64,
            Err(e) => self.give_up(e),
        }
    }

    /// A full disk has room for what was there before.
    fn give_up(&mut self, problem: io::Error) {
        if self.can_rewrite {
            let restored = self.file.set_len(self.end);
            let _ = restored.and_then(|()| self.file.write_all_at(CLOSING.as_bytes(), self.end));
        }
        self.problem = Some(problem);
    }
}

fn span(name: &str, category: &str, from: u64, to: u64, tid: usize) -> ObjectWriter {
    let mut event = ObjectWriter::default();
    event
        .string("name", name)
        .string("cat", category)
        .string("ph", "X")
        .raw("ts", from)
        .raw("dur", to.saturating_sub(from))
        .raw("pid", PROCESS)
        .raw("tid", tid);
    event
}

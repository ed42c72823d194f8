//! What goes to the client: whole lines in the order in which they were given, written by one thread.
//!
//! A client that reads slowly makes those wait who have something to say; one that does not read at all cannot keep the
//! server from ending: once the end has begun nobody waits any more. A client that has closed its end hears nothing.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How much may wait to be written before senders have to.
const ROOM: usize = 1 << 20;
/// What is written at once.
const PIECE: usize = 64 << 10;

#[derive(Debug, Default)]
pub(super) struct Outbox {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    phase: Phase,
    lines: VecDeque<String>,
    /// Of the lines, that which is being written included.
    bytes: usize,
}

/// In the order in which they follow each other; any of them may be left out.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    #[default]
    Open,
    /// Takes everything at once: not much will follow.
    Ending,
    /// Nothing follows: the writer ends when it has written what there is.
    Closed,
    /// Nobody reads.
    Gone,
}

impl Outbox {
    /// Queues `line`, which has no line break in it.
    pub(super) fn send(&self, mut line: String) {
        line.push('\n');
        let mut state = self.state();
        while state.phase == Phase::Open && state.bytes >= ROOM {
            state = self.wait(state);
        }
        if matches!(state.phase, Phase::Open | Phase::Ending) {
            state.bytes += line.len();
            state.lines.push_back(line);
            self.changed.notify_all();
        }
    }

    /// Writes until the outbox is closed and empty, or until that fails.
    pub(super) fn write_to(&self, stream: &mut impl Write) -> io::Result<()> {
        while let Some(line) = self.next() {
            for piece in line.as_bytes().chunks(PIECE) {
                let written = stream.write_all(piece).and_then(|()| stream.flush());
                let mut state = self.state();
                state.bytes -= piece.len();
                if written.is_err() {
                    *state = State {
                        phase: Phase::Gone,
                        ..State::default()
                    };
                }
                self.changed.notify_all();
                drop(state);
                written?;
            }
        }
        Ok(())
    }

    fn next(&self) -> Option<String> {
        let mut state = self.state();
        loop {
            if let Some(line) = state.lines.pop_front() {
                return Some(line);
            }
            if matches!(state.phase, Phase::Closed | Phase::Gone) {
                return None;
            }
            state = self.wait(state);
        }
    }

    /// From here on nobody waits for a slow client.
    pub(super) fn begin_end(&self) {
        self.advance(Phase::Ending);
    }

    pub(super) fn is_ending(&self) -> bool {
        self.state().phase != Phase::Open
    }

    /// Waits until everything is written, as long as there are not `patience` in which nothing is taken.
    pub(super) fn finish(&self, patience: Duration) {
        self.advance(Phase::Closed);
        let mut state = self.state();
        while state.bytes > 0 {
            let before = state.bytes;
            let waited = self.changed.wait_timeout(state, patience);
            let (now, waited) = waited.unwrap_or_else(PoisonError::into_inner);
            state = now;
            if waited.timed_out() && state.bytes == before {
                return;
            }
        }
    }

    fn advance(&self, phase: Phase) {
        let mut state = self.state();
        state.phase = state.phase.max(phase);
        self.changed.notify_all();
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        let waited = self.changed.wait(state);
        waited.unwrap_or_else(PoisonError::into_inner)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

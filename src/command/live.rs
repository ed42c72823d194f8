//! The line on a terminal that tells how a run is getting on. It stands on standard error, at the bottom, and is gone
//! before anything else is written there and when the run has ended.
//!
//! There is none where standard error is no terminal, or one that cannot erase (`TERM=dumb` or none).

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// From one look at the clock to the next.
const TICK: Duration = Duration::from_millis(200);

/// Whether the line stands on the terminal now. There is one terminal, and one line on it.
static IS_SHOWN: AtomicBool = AtomicBool::new(false);

/// Removes the line, if it is there.
pub(super) fn erase() {
    if IS_SHOWN.swap(false, Ordering::SeqCst) {
        put("\r\x1b[K");
    }
}

fn put(text: &str) {
    let mut stderr = io::stderr().lock();
    // A terminal that is gone needs no line.
    let _ = stderr
        .write_all(text.as_bytes())
        .and_then(|()| stderr.flush());
}

/// What the line tells.
#[derive(Debug)]
pub(super) struct Live {
    began: Instant,
    drawn: Instant,
    is_wanted: bool,
    is_dim: bool,
    /// Whether what is written to standard output shows on a terminal, presumably the same one.
    shows_stdout: bool,
    /// Whether the output has left the cursor inside a line, which is not ours to write over.
    is_inside_line: bool,
    answered: u64,
    in_flight: Vec<(u64, String)>,
}

impl Live {
    pub(super) fn new() -> Live {
        let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let can_erase = variable("TERM").is_some_and(|term| term != "dumb");
        Live {
            began: Instant::now(),
            drawn: Instant::now(),
            is_wanted: can_erase && io::stderr().is_terminal(),
            is_dim: variable("NO_COLOR").is_none(),
            shows_stdout: io::stdout().is_terminal(),
            is_inside_line: false,
            answered: 0,
            in_flight: Vec::new(),
        }
    }

    /// How long to wait for an event before [`Live::refresh`] is due; `None`: for ever.
    pub(super) fn tick(&self) -> Option<Duration> {
        self.is_wanted.then(|| {
            TICK.saturating_sub(self.drawn.elapsed())
                .max(Duration::from_millis(1))
        })
    }

    pub(super) fn call_began(&mut self, id: u64, tool: &str) {
        self.in_flight.push((id, tool.to_string()));
    }

    pub(super) fn call_ended(&mut self, id: u64, is_answered: bool) {
        self.in_flight.retain(|(known, _)| *known != id);
        self.answered += u64::from(is_answered);
    }

    /// `bytes` were written to standard output, or else to standard error.
    pub(super) fn wrote(&mut self, to_stdout: bool, bytes: &[u8]) {
        if self.shows_stdout || !to_stdout {
            self.is_inside_line = bytes.last().is_some_and(|last| *last != b'\n');
        }
    }

    /// Draws the line anew if it is time.
    pub(super) fn refresh(&mut self) {
        if !self.is_wanted || self.drawn.elapsed() < TICK {
            return;
        }
        self.drawn = Instant::now();
        if self.is_inside_line {
            return;
        }
        let (dim, plain) = match self.is_dim {
            true => ("\x1b[2m", "\x1b[0m"),
            false => ("", ""),
        };
        IS_SHOWN.store(true, Ordering::SeqCst);
        // Without wrapping at the margin it stays one line, however narrow the terminal is.
        put(&format!(
            "\r\x1b[?7l{dim}{}{plain}\x1b[K\x1b[?7h",
            self.line()
        ));
    }

    fn line(&self) -> String {
        let seconds = self.began.elapsed().as_secs_f64();
        let calls = match self.answered {
            1 => "1 call".to_string(),
            n => format!("{n} calls"),
        };
        let mut line = format!("ptc: {seconds:.1} s, {calls} answered");
        if let Some((_, oldest)) = self.in_flight.first() {
            line += &format!(", {oldest} in flight");
        }
        match self.in_flight.len() {
            0 | 1 => line,
            n => line + &format!(" and {} more", n - 1),
        }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        erase();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_tells_the_oldest_call_and_how_many_others() {
        let mut live = Live::new();
        let told = |live: &Live| live.line().split_once(" s, ").unwrap().1.to_string();
        assert_eq!(told(&live), "0 calls answered");
        for (id, tool) in [(1, "a"), (2, "b"), (3, "c")] {
            live.call_began(id, tool);
        }
        assert_eq!(told(&live), "0 calls answered, a in flight and 2 more");
        live.call_ended(1, true);
        live.call_ended(3, false);
        live.call_ended(7, false);
        assert_eq!(told(&live), "1 call answered, b in flight");
    }
}

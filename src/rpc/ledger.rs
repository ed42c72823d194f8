//! What became of each call: one record a call, the first and last hundred kept, the rest counted.

use crate::json::ObjectWriter;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How many records are kept at each end of a run.
const KEPT: usize = 100;

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallState {
    /// Still waiting for its answer.
    Open,
    /// The host gave a result.
    Answered,
    /// The host, or ptc for it, gave an error.
    Failed,
    /// Never dispatched: not allowed, over the limit, or malformed.
    Refused,
    /// The run or the caller ended first.
    Unanswered,
}

impl CallState {
    pub(crate) fn name(self) -> &'static str {
        match self {
            // An open call can only be looked at while its run ends.
            CallState::Open | CallState::Unanswered => "unanswered",
            CallState::Answered => "answered",
            CallState::Failed => "failed",
            CallState::Refused => "refused",
        }
    }
}

/// One call in the ledger.
#[derive(Debug)]
pub(crate) struct Record {
    pub id: u64,
    pub tool: String,
    pub args_preview: String,
    pub request_bytes: usize,
    pub began: Instant,
    end: Mutex<End>,
}

#[derive(Debug, Clone, Copy)]
struct End {
    state: CallState,
    duration: Option<Duration>,
    reply_bytes: usize,
}

impl Record {
    pub(crate) fn new(id: u64, tool: String, args_preview: String, request_bytes: usize) -> Self {
        Record {
            id,
            tool,
            args_preview,
            request_bytes,
            began: Instant::now(),
            end: Mutex::new(End {
                state: CallState::Open,
                duration: None,
                reply_bytes: 0,
            }),
        }
    }

    /// Closes the record; only the first close counts.
    pub(crate) fn close(&self, state: CallState, reply_bytes: usize) {
        let mut end = self.end();
        if end.state == CallState::Open {
            *end = End {
                state,
                duration: Some(self.began.elapsed()),
                reply_bytes,
            };
        }
    }

    pub(crate) fn state(&self) -> CallState {
        self.end().state
    }

    pub(crate) fn duration(&self) -> Duration {
        self.end().duration.unwrap_or_else(|| self.began.elapsed())
    }

    /// The record as the result's `tool_calls` and the event of a call's end show it.
    pub(crate) fn to_json(&self) -> String {
        let end = *self.end();
        let duration = end.duration.unwrap_or_else(|| self.began.elapsed());
        let mut json = ObjectWriter::default();
        json.raw("id", self.id)
            .string("tool", &self.tool)
            .string("state", end.state.name())
            .string("args_preview", &self.args_preview)
            .raw("duration_seconds", crate::json::seconds(duration))
            .raw("request_bytes", self.request_bytes)
            .raw("reply_bytes", end.reply_bytes);
        json.finish()
    }

    fn end(&self) -> MutexGuard<'_, End> {
        self.end.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A run's records, bounded.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    first: Vec<Arc<Record>>,
    last: VecDeque<Arc<Record>>,
    omitted: u64,
    counts: Counts,
}

/// How many calls a run made, however few are kept.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Calls admitted, refused ones not counted.
    pub made: u64,
    pub refused: u64,
    pub answered: u64,
}

impl Ledger {
    pub(crate) fn add(&mut self, record: Arc<Record>) {
        match record.state() {
            CallState::Refused => self.counts.refused += 1,
            _ => self.counts.made += 1,
        }
        if self.first.len() < KEPT {
            self.first.push(record);
            return;
        }
        self.last.push_back(record);
        if self.last.len() > KEPT {
            self.last.pop_front();
            self.omitted += 1;
        }
    }

    pub(crate) fn count_answer(&mut self) {
        self.counts.answered += 1;
    }

    pub(crate) fn counts(&self) -> Counts {
        self.counts
    }

    pub(crate) fn omitted(&self) -> u64 {
        self.omitted
    }

    pub(crate) fn records(&self) -> impl Iterator<Item = &Arc<Record>> {
        self.first.iter().chain(self.last.iter())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_is_counted_and_the_ends_are_kept() {
        for (total, omitted) in [(0, 0), (200, 0), (201, 1), (350, 150)] {
            let mut ledger = Ledger::default();
            for id in 0..total {
                ledger.add(Arc::new(Record::new(id, "t".into(), String::new(), 0)));
            }
            assert_eq!((ledger.counts().made, ledger.omitted()), (total, omitted));
            let ids: Vec<u64> = ledger.records().map(|r| r.id).collect();
            assert_eq!(ids.first().copied(), (total > 0).then_some(0));
            assert_eq!(ids.last().copied(), total.checked_sub(1));
            assert_eq!(ids.len() as u64, total - omitted);
        }
    }

    #[test]
    fn only_the_first_end_of_a_record_counts() {
        let record = Record::new(1, "t".into(), "{}".into(), 2);
        record.close(CallState::Answered, 5);
        record.close(CallState::Unanswered, 0);
        assert_eq!(record.state(), CallState::Answered);
        assert!(record.to_json().contains(r#""state":"answered""#));
    }
}

//! Where an answer goes: on a line of its own, or with the other answers of its batch.

use super::outbox::Outbox;
use super::wire::{self, Id, Problem};
use std::sync::{Arc, Mutex, PoisonError};

/// Takes the answer to one request. Dropped without one, the request stays unanswered.
#[derive(Debug, Clone)]
pub(super) struct Reply {
    id: Id,
    to: Desk,
}

/// Where answers are handed in.
#[derive(Debug, Clone)]
pub(super) enum Desk {
    Outbox(Arc<Outbox>),
    Batch(Arc<Batch>),
}

/// The answers of a batch, which are sent together when the last request of it has been dealt with.
#[derive(Debug)]
pub(super) struct Batch {
    answers: Mutex<Vec<String>>,
    outbox: Arc<Outbox>,
}

impl Desk {
    pub(super) fn for_batch(outbox: &Arc<Outbox>) -> Desk {
        Desk::Batch(Arc::new(Batch {
            answers: Mutex::default(),
            outbox: Arc::clone(outbox),
        }))
    }

    pub(super) fn is_batch(&self) -> bool {
        matches!(self, Desk::Batch(_))
    }

    pub(super) fn reply(&self, id: Id) -> Reply {
        let to = self.clone();
        Reply { id, to }
    }

    pub(super) fn complain(&self, problem: &Problem) {
        self.hand_in(problem.to_json());
    }

    fn hand_in(&self, answer: String) {
        match self {
            Desk::Outbox(outbox) => outbox.send(answer),
            Desk::Batch(batch) => {
                let answers = batch.answers.lock();
                answers.unwrap_or_else(PoisonError::into_inner).push(answer);
            }
        }
    }
}

impl Reply {
    pub(super) fn id(&self) -> &Id {
        &self.id
    }

    pub(super) fn result(&self, json: &str) {
        self.to.hand_in(wire::response(&self.id, json));
    }

    pub(super) fn error(&self, code: i32, message: &str) {
        self.to.hand_in(wire::failure(&self.id, code, message));
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        let answers = self.answers.get_mut();
        let answers = answers.unwrap_or_else(PoisonError::into_inner);
        // A batch of nothing but notifications has no answer, not an empty one.
        if !answers.is_empty() {
            self.outbox.send(format!("[{}]", answers.join(",")));
        }
    }
}

//! The engine's own threads: made when they are needed, kept for the next job, gone when the crew is dismissed.
//!
//! Go keeps one M for each foreign thread and the JVM attaches each, so a thread per run or call would cost the host.

use crate::error::{Code, Error, Result};
use crate::sys::thread;
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

type Job = Box<dyn FnOnce() + Send>;

/// A set of reusable threads. Clones are the same set.
#[derive(Default, Clone)]
pub(crate) struct Crew {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    idle: usize,
    dismissed: bool,
    threads: Vec<JoinHandle<()>>,
}

impl fmt::Debug for Crew {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Crew").finish_non_exhaustive()
    }
}

impl Crew {
    /// Runs `job` on an idle thread, or on a new one named `name`.
    ///
    /// # Errors
    /// [`Code::Io`] when no thread can be made; the job is then dropped.
    pub(crate) fn run(&self, name: &str, job: Job) -> Result<()> {
        let mut state = self.shared.lock();
        if state.dismissed {
            return Err(Error::new(Code::State, "the engine is closed"));
        }
        if state.idle <= state.jobs.len() {
            let shared = Arc::clone(&self.shared);
            let handle = thread::spawn_blocked(name, move || shared.work())
                .map_err(|e| Error::new(Code::Io, format!("cannot start an engine thread: {e}")))?;
            state.threads.push(handle);
            // Counted at once, so that two jobs in a row do not both count on it.
            state.idle += 1;
        }
        state.jobs.push_back(job);
        drop(state);
        self.shared.changed.notify_one();
        Ok(())
    }

    /// Lets the threads finish their jobs and waits for them. Must not be called by one of them.
    pub(crate) fn dismiss(&self) {
        let threads = {
            let mut state = self.shared.lock();
            state.dismissed = true;
            std::mem::take(&mut state.threads)
        };
        self.shared.changed.notify_all();
        for thread in threads {
            // Jobs catch their own panics.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn work(&self) {
        let mut state = self.lock();
        loop {
            if let Some(job) = state.jobs.pop_front() {
                state.idle -= 1;
                drop(state);
                job();
                state = self.lock();
                state.idle += 1;
            } else if state.dismissed {
                return;
            } else {
                state = self
                    .changed
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn an_idle_thread_is_used_again() {
        let crew = Crew::default();
        let (tx, rx) = mpsc::channel();
        for _ in 0..100 {
            let tx = tx.clone();
            crew.run(
                "t",
                Box::new(move || tx.send(std::thread::current().id()).unwrap()),
            )
            .unwrap();
            rx.recv().unwrap();
        }
        // A job has sent its word a moment before its thread counts as idle, so a second thread is possible.
        assert!(crew.shared.lock().threads.len() <= 3);
        crew.dismiss();
        assert!(crew.run("t", Box::new(|| ())).is_err());
    }

    #[test]
    fn jobs_that_wait_for_each_other_get_a_thread_each() {
        let crew = Crew::default();
        let barrier = Arc::new(std::sync::Barrier::new(5));
        for _ in 0..4 {
            let barrier = Arc::clone(&barrier);
            crew.run(
                "t",
                Box::new(move || {
                    barrier.wait();
                }),
            )
            .unwrap();
        }
        barrier.wait();
        crew.dismiss();
    }
}

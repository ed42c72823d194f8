//! State that belongs to the process that made it, not to a child that a host forked from it.
//!
//! After `fork` a child has a copy of every mutex, some of them locked by threads that do not exist there. State that
//! is made anew in the child is the only kind that can be touched safely.

use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// A lazily made value, one for each process. What a parent had made is left behind untouched in its forked child.
pub(crate) struct ProcessLocal<T>(AtomicPtr<Slot<T>>);

struct Slot<T> {
    pid: u32,
    value: T,
}

impl<T: Send + Sync> ProcessLocal<T> {
    pub(crate) const fn new() -> Self {
        ProcessLocal(AtomicPtr::new(ptr::null_mut()))
    }

    /// This process's value, made by `make` at the first call. It lives as long as the process.
    pub(crate) fn get(&self, make: impl FnOnce() -> T) -> &T {
        let pid = std::process::id();
        let current = self.0.load(Ordering::Acquire);
        if let Some(value) = value_of(current, pid) {
            return value;
        }
        let fresh = Box::into_raw(Box::new(Slot { pid, value: make() }));
        match self
            .0
            .compare_exchange(current, fresh, Ordering::AcqRel, Ordering::Acquire)
        {
            // The parent's slot is leaked on purpose: dropping it would touch its locks.
            Ok(_) => value_of(fresh, pid).expect("just made for this pid"),
            Err(winner) => {
                // SAFETY: `fresh` came from Box::into_raw above and was never published.
                drop(unsafe { Box::from_raw(fresh) });
                value_of(winner, pid).expect("another thread of this process has just made it")
            }
        }
    }
}

fn value_of<'a, T>(slot: *mut Slot<T>, pid: u32) -> Option<&'a T> {
    // SAFETY: `slot` is null or a published Box::into_raw pointer; a published slot is never freed nor mutated, so a
    // shared reference to it is valid for the life of the process.
    let slot = unsafe { slot.as_ref() }?;
    (slot.pid == pid).then_some(&slot.value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU32;

    #[test]
    fn threads_of_a_process_share_one_value() {
        static LOCAL: ProcessLocal<AtomicU32> = ProcessLocal::new();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    LOCAL
                        .get(AtomicU32::default)
                        .fetch_add(1, Ordering::Relaxed)
                });
            }
        });
        assert_eq!(LOCAL.get(AtomicU32::default).load(Ordering::Relaxed), 8);
    }
}

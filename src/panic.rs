//! Panics stop here: they become values, and their message stays off the host's stderr.

use std::any::Any;
use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

thread_local! {
    /// How many of our boundaries this thread is inside of.
    static GUARDED: Cell<usize> = const { Cell::new(0) };
}

static QUIET: Once = Once::new();

/// Runs `body`; a panic in it comes back as its message.
pub(crate) fn catch<T>(body: impl FnOnce() -> T) -> Result<T, String> {
    QUIET.call_once(be_quiet);
    GUARDED.set(GUARDED.get() + 1);
    // The values that a panicking body leaves behind are behind locks whose poison is ignored on purpose: each of them
    // is consistent between any two statements.
    let result = panic::catch_unwind(AssertUnwindSafe(body));
    GUARDED.set(GUARDED.get() - 1);
    result.map_err(|payload| message(payload.as_ref()))
}

/// Keeps the default hook from printing what is caught here; panics elsewhere (a Rust host's own) print as before.
fn be_quiet() {
    let previous = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if GUARDED.get() == 0 {
            previous(info);
        }
    }));
}

/// What hosts and scripts are told of a panic.
pub(crate) fn complaint(panic: &str) -> String {
    format!("ptc panicked, which is a bug in it: {panic}")
}

/// Panics on purpose, so that tests can see from outside that a panic is caught at `place`: where the first line of
/// `text` (a script, a definition's format, a tool's name) is `# ptc-panic: ` and the place. Release builds have no such
/// word.
#[cfg(debug_assertions)]
pub(crate) fn rehearse(place: &str, text: &[u8]) {
    let first = text.split(|byte| *byte == b'\n').next();
    let word = first.and_then(|line| line.strip_prefix(b"# ptc-panic: "));
    assert!(word != Some(place.as_bytes()), "on purpose: {place}");
}

#[cfg(not(debug_assertions))]
pub(crate) fn rehearse(_: &str, _: &[u8]) {}

fn message(payload: &(dyn Any + Send)) -> String {
    payload
        .downcast_ref::<&str>()
        .map(|s| (*s).to_string())
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a message".to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_its_message() {
        assert_eq!(catch(|| 1), Ok(1));
        assert_eq!(catch(|| panic!("plain")), Err::<(), _>("plain".to_string()));
        assert_eq!(
            catch(|| panic!("number {}", 5)),
            Err::<(), _>("number 5".to_string())
        );
        assert_eq!(GUARDED.get(), 0);
    }
}

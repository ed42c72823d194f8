//! Threads that no signal of the host can reach.
//!
//! A handler of the host must not run on a thread that the host does not know of, so the threads start with every
//! signal blocked that somebody can send. The signals that a thread raises by its own fault (SIGSEGV and its like)
//! stay open: the host's callbacks run on these threads, runtimes turn such faults into exceptions, and blocking them
//! would only make the kernel kill the process without asking their handler.

use std::io;
use std::mem::MaybeUninit;
use std::thread::{Builder, JoinHandle};

const FAULTS: [libc::c_int; 6] = [
    libc::SIGSEGV,
    libc::SIGBUS,
    libc::SIGFPE,
    libc::SIGILL,
    libc::SIGTRAP,
    libc::SIGSYS,
];

/// Starts a thread in which all signals but faults are blocked from its first instruction on. A panic of `body` ends
/// the thread quietly: joining it succeeds all the same.
pub(crate) fn spawn_blocked(
    name: &str,
    body: impl FnOnce() + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    spawn_blocked_with(name, None, body)
}

/// As [`spawn_blocked`], with the size of the stack in bytes; `None` is the default of the Rust runtime.
pub(crate) fn spawn_blocked_with(
    name: &str,
    stack: Option<usize>,
    body: impl FnOnce() + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    if name.contains('\0') {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("thread name {name:?} contains a NUL byte"),
        ));
    }
    let mut builder = Builder::new().name(name.to_owned());
    if let Some(size) = stack {
        builder = builder.stack_size(size);
    }
    // A thread inherits the mask of its creator. Dropping the guard gives the creator its own back.
    let _blocked = Blocked::new()?;
    builder.spawn(move || drop(crate::panic::catch(body)))
}

/// The calling thread with its signals blocked, until this is dropped.
struct Blocked {
    before: libc::sigset_t,
}

impl Blocked {
    fn new() -> io::Result<Self> {
        let mut all = MaybeUninit::uninit();
        let mut before = MaybeUninit::uninit();
        // SAFETY: sigfillset initialises `all` before sigdelset and pthread_sigmask read it; pthread_sigmask writes
        // the old mask to `before`. The C library keeps its own internal signals out of the set, as it must: with
        // them blocked a setuid() of the host would wait for this thread for ever.
        let error = unsafe {
            libc::sigfillset(all.as_mut_ptr());
            for signal in FAULTS {
                libc::sigdelset(all.as_mut_ptr(), signal);
            }
            libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr())
        };
        if error != 0 {
            return Err(io::Error::from_raw_os_error(error));
        }
        // SAFETY: pthread_sigmask succeeded, so it has written the old mask.
        Ok(Blocked {
            before: unsafe { before.assume_init() },
        })
    }
}

impl Drop for Blocked {
    fn drop(&mut self) {
        // SAFETY: `before` is a mask that pthread_sigmask itself returned.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.before, std::ptr::null_mut()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    /// The signals that are blocked in the calling thread.
    fn blocked() -> Vec<libc::c_int> {
        let mut mask = MaybeUninit::uninit();
        // SAFETY: with no new mask the call only writes the present one, which sigismember then reads.
        unsafe {
            libc::pthread_sigmask(libc::SIG_BLOCK, std::ptr::null(), mask.as_mut_ptr());
            (1..32)
                .filter(|&signal| libc::sigismember(mask.as_ptr(), signal) == 1)
                .collect()
        }
    }

    #[test]
    fn the_thread_is_blocked_from_the_start_and_its_creator_is_not() {
        let before = blocked();
        let (sender, receiver) = mpsc::channel();
        let name = "ptc-test";
        let thread = spawn_blocked(name, move || {
            let name = std::thread::current().name().map(str::to_owned);
            sender.send((blocked(), name)).unwrap();
        });
        thread.unwrap().join().unwrap();
        assert_eq!(blocked(), before);
        let (inside, seen_name) = receiver.recv().unwrap();
        assert_eq!(seen_name.as_deref(), Some(name));
        let open: Vec<_> = (1..32).filter(|signal| !inside.contains(signal)).collect();
        let mut allowed = FAULTS.to_vec();
        allowed.extend([libc::SIGKILL, libc::SIGSTOP]);
        allowed.sort_unstable();
        assert_eq!(open, allowed);
    }

    #[test]
    fn a_panic_stays_inside() {
        let thread = spawn_blocked_with("ptc-test", Some(256 * 1024), || panic!("on purpose"));
        assert!(thread.unwrap().join().is_ok());
    }

    #[test]
    fn a_bad_name_is_an_error_and_leaves_the_mask_alone() {
        let before = blocked();
        let error = spawn_blocked("a\0b", || ()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        assert_eq!(blocked(), before);
    }

    #[test]
    fn a_thread_that_cannot_be_made_is_an_error_and_leaves_the_mask_alone() {
        let before = blocked();
        assert!(spawn_blocked_with("ptc-test", Some(usize::MAX / 4), || ()).is_err());
        assert_eq!(blocked(), before);
    }
}

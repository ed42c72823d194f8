//! SIGINT and SIGTERM as calls of a function, for the command `ptc`. Never used in a host's process.

use std::io;
use std::mem::MaybeUninit;

use super::thread::spawn_blocked;

const SIGNALS: [libc::c_int; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

/// Calls `interrupted` on a thread of its own for each SIGINT, SIGTERM or SIGHUP. To be called on the first thread before
/// there are others, since only threads made afterwards leave the signals to it.
pub(crate) fn on_interrupt(mut interrupted: impl FnMut() + Send + 'static) -> io::Result<()> {
    let set = block()?;
    spawn_blocked("ptc-signals", move || loop {
        let mut signal = 0;
        // SAFETY: `set` is initialised, and sigwait writes one integer. It fails only for a set with bad signals.
        if unsafe { libc::sigwait(&set, &mut signal) } != 0 {
            return;
        }
        interrupted();
    })?;
    Ok(())
}

fn block() -> io::Result<libc::sigset_t> {
    let mut set = MaybeUninit::uninit();
    // SAFETY: sigemptyset initialises `set` before the other calls read it.
    let (error, set) = unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for signal in SIGNALS {
            libc::sigaddset(set.as_mut_ptr(), signal);
        }
        let error = libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), std::ptr::null_mut());
        (error, set.assume_init())
    };
    match error {
        0 => Ok(set),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

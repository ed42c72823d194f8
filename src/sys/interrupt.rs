//! Signals that ask a command to end, as calls of a function; for the command `ptc`. Never used in a host's process.

use std::io;
use std::mem::MaybeUninit;

use super::thread::spawn_blocked;

/// Calls `interrupted` on a thread of its own for each SIGINT, SIGTERM or SIGHUP. To be called on the first thread, since
/// of the others only those made afterwards, or with their signals blocked, leave the signals to it.
///
/// A SIGHUP that the process was started to ignore stays ignored: that is what `nohup` is for. Not so SIGINT: a shell
/// without job control lets everything in the background ignore it, and whoever sends it there by hand means it.
pub(crate) fn on_interrupt(mut interrupted: impl FnMut() + Send + 'static) -> io::Result<()> {
    let mut signals = vec![libc::SIGINT, libc::SIGTERM];
    if !is_ignored(libc::SIGHUP) {
        signals.push(libc::SIGHUP);
    }
    let set = block(&signals)?;
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

fn block(signals: &[libc::c_int]) -> io::Result<libc::sigset_t> {
    let mut set = MaybeUninit::uninit();
    // SAFETY: sigemptyset initialises `set` before the other calls read it.
    let (error, set) = unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for &signal in signals {
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

fn is_ignored(signal: libc::c_int) -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: with no new action the call only writes the present one, and `action` is read only if it did.
    unsafe {
        libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr()) == 0
            && action.assume_init().sa_sigaction == libc::SIG_IGN
    }
}

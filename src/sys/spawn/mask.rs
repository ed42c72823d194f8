//! The calling thread's signal mask around the creation of a process.

/// The calling thread's signal mask, with everything blocked until this is dropped.
///
/// Keeps the host's handlers from running in a child that still shares the host's memory, and from being
/// inherited as "unblocked" by a thread of ours.
pub(crate) struct AllSignalsBlocked {
    before: Mask,
}

#[cfg(all(target_os = "linux", not(ptc_portable)))]
type Mask = u64;
#[cfg(not(all(target_os = "linux", not(ptc_portable))))]
type Mask = libc::sigset_t;

impl AllSignalsBlocked {
    /// Blocks every signal for the calling thread.
    pub(crate) fn new() -> Self {
        AllSignalsBlocked {
            before: swap_mask(None),
        }
    }
}

impl Drop for AllSignalsBlocked {
    fn drop(&mut self) {
        swap_mask(Some(&self.before));
    }
}

/// Sets the mask (`None`: everything) and returns the former one.
#[cfg(all(target_os = "linux", not(ptc_portable)))]
fn swap_mask(new: Option<&Mask>) -> Mask {
    // The C library's own call silently leaves out the two signals that it uses itself.
    let all = !0u64;
    let mut before = 0u64;
    // SAFETY: both masks are the eight bytes that the kernel is told to expect.
    unsafe {
        libc::syscall(
            libc::SYS_rt_sigprocmask,
            libc::SIG_SETMASK,
            new.unwrap_or(&all) as *const u64,
            &mut before as *mut u64,
            std::mem::size_of::<u64>(),
        );
    }
    before
}

#[cfg(not(all(target_os = "linux", not(ptc_portable))))]
fn swap_mask(new: Option<&Mask>) -> Mask {
    // SAFETY: sigset_t is plain data, filled by sigfillset and pthread_sigmask before it is read.
    unsafe {
        let mut all: Mask = std::mem::zeroed();
        let mut before: Mask = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, new.unwrap_or(&all), &mut before);
        before
    }
}

//! `ptc_run`: one execution of one script, reference-counted.

use super::{
    borrow, clear, guard, guard_or, hand_out, ptc_error, ptc_event, ptc_result, take_back, text,
    timeout,
};
use crate::run::Run;
use std::ffi::c_char;
use std::ptr;

/// One execution of one script. Reference-counted: `ptc_run_retain` and `ptc_run_free` in pairs, from any thread. Every handle
/// may be used from any thread, and by several at once.
#[derive(Debug)]
pub struct ptc_run {
    run: Run,
}

impl ptc_run {
    pub(super) fn hand_out(run: Run) -> *mut ptc_run {
        hand_out(ptc_run { run })
    }
}

/// One more handle to the run, to be freed like the first and as good as it. NULL for NULL.
///
/// Requires: `run` is NULL or was not freed.
/// Threads: any.
#[no_mangle]
pub unsafe extern "C" fn ptc_run_retain(run: *mut ptc_run) -> *mut ptc_run {
    guard_or(ptr::null_mut(), || {
        // SAFETY: the caller promises NULL or a live handle.
        match unsafe { run.as_ref() } {
            Some(handle) => ptc_run::hand_out(handle.run.clone()),
            None => ptr::null_mut(),
        }
    })
}

/// Gives a handle back. The last one closes the run's descriptor and cancels the run if it is still going, without waiting for
/// it. NULL is fine. A callback may free the handle that is being waited for: that wait holds the run until its end.
///
/// Requires: `run` is NULL or was not freed; no other thread uses this handle any more.
/// Threads: any.
#[no_mangle]
pub unsafe extern "C" fn ptc_run_free(run: *mut ptc_run) {
    // SAFETY: the caller gives up a handle that came out of hand_out.
    guard_or((), || drop(unsafe { take_back(run) }));
}

/// Waits at most `timeout_ms` milliseconds (-1: without limit) for the end. `*out` is the result, to be freed with
/// `ptc_result_free`, or NULL when the run is still going or after an error. May be called again, each time with a result of
/// its own. With `threads` = 0 this is where callbacks run; the time limit interrupts none of them, but the script's end,
/// timeout and cancellation wait for none either.
///
/// Errors: `PTC_CODE_STATE` inside a callback of this run; `PTC_CODE_INVALID_ARGUMENT` for NULL or a time below -1.
/// Requires: `run` is NULL or was not freed; `out` is writable.
/// Threads: any; several may wait for one run, and share its callbacks with `threads` = 0.
#[no_mangle]
pub unsafe extern "C" fn ptc_run_wait(
    run: *mut ptc_run,
    timeout_ms: i64,
    out: *mut *mut ptc_result,
) -> *mut ptc_error {
    guard(|| {
        // SAFETY: the caller promises writable memory or NULL.
        unsafe { clear(out, "out") }?;
        // A handle of its own, since a callback may free the caller's.
        // SAFETY: the caller promises a live handle or NULL.
        let run = unsafe { borrow(run, "run") }?.run.clone();
        if let Some(outcome) = run.wait(timeout(timeout_ms)?)? {
            // SAFETY: `out` was found writable above.
            unsafe { out.write(ptc_result::hand_out(&outcome)) };
        }
        Ok(())
    })
}

/// Takes the next event of a run whose host has no dispatch callback, waiting for it at most `timeout_ms` milliseconds (-1:
/// without limit, 0: not at all). `*out` is the event, to be freed with `ptc_event_free`, or NULL: none came in that time, the
/// last one (`PTC_EVENT_END`) was taken before, or there was an error. A call that is taken is deferred: answer it by its id.
///
/// Errors: `PTC_CODE_STATE` for an engine whose host has a dispatch callback; `PTC_CODE_INVALID_ARGUMENT` for NULL or a time
/// below -1.
/// Requires: `run` is NULL or was not freed; `out` is writable.
/// Threads: any; of several that pull, each event goes to one.
#[no_mangle]
pub unsafe extern "C" fn ptc_run_next_event(
    run: *mut ptc_run,
    timeout_ms: i64,
    out: *mut *mut ptc_event,
) -> *mut ptc_error {
    guard(|| {
        // SAFETY: the caller promises writable memory or NULL.
        unsafe { clear(out, "out") }?;
        // SAFETY: the caller promises a live handle or NULL.
        let handle = unsafe { borrow(run, "run") }?;
        if let Some(event) = handle.run.next_event(timeout(timeout_ms)?)? {
            // SAFETY: `out` was found writable above.
            unsafe { out.write(hand_out(ptc_event::view(&event))) };
        }
        Ok(())
    })
}

/// A descriptor that is readable while an event waits or the run has ended: one end of a non-blocking socket pair, fit for
/// poll, epoll, libuv, asyncio and Go's netpoller. Its bytes mean nothing and may be read; take events with
/// `ptc_run_next_event(run, 0, …)` until there is none. It belongs to the run and is closed with the last handle: dup it for
/// an owner that closes. -1 for NULL, when descriptors have run out, and in a forked child.
///
/// Requires: `run` is NULL or was not freed.
/// Threads: any.
#[no_mangle]
pub unsafe extern "C" fn ptc_run_fd(run: *const ptc_run) -> i32 {
    guard_or(-1, || {
        // SAFETY: the caller promises NULL or a live handle.
        let handle = unsafe { run.as_ref() };
        handle
            .and_then(|handle| handle.run.event_fd().ok())
            .unwrap_or(-1)
    })
}

/// Stops the run: SIGTERM, and SIGKILL after the grace period. Returns at once; does nothing when the run has ended or is being
/// stopped. `reason` (UTF-8, copied; `len` 0: none) replaces the words after the dash in the closing line of the output. NULL
/// is ignored, and a reason that is not UTF-8 is left out.
///
/// Requires: `run` is NULL or was not freed; `reason` is NULL or readable for `len` bytes.
/// Threads: any.
#[no_mangle]
pub unsafe extern "C" fn ptc_run_cancel(run: *mut ptc_run, reason: *const c_char, len: usize) {
    guard_or((), || {
        // SAFETY: the caller promises NULL or a live handle, and a readable reason.
        let (handle, reason) = unsafe { (run.as_ref(), text(reason, len, "reason")) };
        if let Some(handle) = handle {
            handle
                .run
                .cancel(reason.ok().filter(|reason| !reason.is_empty()));
        }
    });
}

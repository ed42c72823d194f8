//! `ptc_error`: what went wrong, owned by the caller.

use super::{give_text, guard_or, hand_out, no_text, take_back, with_nul};
use crate::error::Error;
use std::ffi::c_char;

/// What went wrong. Every function that can fail returns one, or NULL for success; the caller frees it with
/// `ptc_error_free`. Nothing is kept in thread-local storage, so it may be looked at on any thread.
#[derive(Debug)]
pub struct ptc_error {
    code: i32,
    message: Vec<u8>,
}

impl ptc_error {
    pub(super) fn hand_out(error: &Error) -> *mut ptc_error {
        hand_out(ptc_error {
            code: error.code() as i32,
            message: with_nul(error.message()),
        })
    }
}

/// The error's `ptc_code`; 0 for NULL.
///
/// Requires: `error` is NULL or was not freed.
/// Threads: any.
#[no_mangle]
pub unsafe extern "C" fn ptc_error_code(error: *const ptc_error) -> i32 {
    // SAFETY: the caller promises NULL or a live error.
    unsafe { error.as_ref() }.map_or(0, |error| error.code)
}

/// The error's message: what was wrong, where, and what to do. NUL-terminated UTF-8 that belongs to the error and lives as
/// long; `len` (may be NULL) receives its length in bytes, without the NUL. NULL, and length 0, for NULL.
///
/// Requires: `error` is NULL or was not freed; `len` is NULL or writable.
/// Threads: any.
#[no_mangle]
pub unsafe extern "C" fn ptc_error_message(
    error: *const ptc_error,
    len: *mut usize,
) -> *const c_char {
    // SAFETY: the caller promises NULL or a live error, and NULL or a writable `len`.
    unsafe {
        match error.as_ref() {
            Some(error) => give_text(&error.message, len),
            None => no_text(len),
        }
    }
}

/// Frees an error. NULL is fine.
///
/// Requires: `error` is NULL or was not freed.
/// Threads: any.
#[no_mangle]
pub unsafe extern "C" fn ptc_error_free(error: *mut ptc_error) {
    // SAFETY: the caller gives up an error that came out of hand_out.
    guard_or((), || drop(unsafe { take_back(error) }));
}

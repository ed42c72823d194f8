//! `ptc_result`: how a run ended.

use super::{give_text, guard_or, hand_out, no_text, take_back, with_nul};
use crate::run::outcome::Outcome;
use std::ffi::c_char;

/// How a run ended. Belongs to the caller, independent of the run and the engine.
#[derive(Debug)]
pub struct ptc_result {
    status: i32,
    json: Vec<u8>,
    output: Vec<u8>,
}

impl ptc_result {
    pub(super) fn hand_out(outcome: &Outcome) -> *mut ptc_result {
        hand_out(ptc_result {
            status: outcome.status() as i32,
            json: with_nul(outcome.json()),
            output: with_nul(outcome.output()),
        })
    }
}

/// The run's `ptc_status`; -1 for NULL.
///
/// Requires: `result` is NULL or was not freed.
/// Threads: any.
#[no_mangle]
pub unsafe extern "C" fn ptc_result_status(result: *const ptc_result) -> i32 {
    // SAFETY: the caller promises NULL or a live result.
    unsafe { result.as_ref() }.map_or(-1, |result| result.status)
}

/// The whole result as a JSON object: `status`, `output`, `tool_calls_made`, `duration_seconds`, and what else applies.
/// NUL-terminated UTF-8 that belongs to the result and lives as long; `len` (may be NULL) receives its length in bytes, without
/// the NUL. NULL, and length 0, for NULL.
///
/// Requires: `result` is NULL or was not freed; `len` is NULL or writable.
/// Threads: any.
#[no_mangle]
pub unsafe extern "C" fn ptc_result_json(
    result: *const ptc_result,
    len: *mut usize,
) -> *const c_char {
    // SAFETY: the caller promises NULL or a live result, and NULL or a writable `len`.
    unsafe {
        match result.as_ref() {
            Some(result) => give_text(&result.json, len),
            None => no_text(len),
        }
    }
}

/// What the model should see: the script's output and, where it did not succeed, why. UTF-8 with a NUL behind it, which may
/// hold NULs of the script's own; `len` (may be NULL) receives its length in bytes, without the last NUL. It belongs to the
/// result and lives as long. NULL, and length 0, for NULL.
///
/// Requires: as `ptc_result_json`.
/// Threads: any.
#[no_mangle]
pub unsafe extern "C" fn ptc_result_output(
    result: *const ptc_result,
    len: *mut usize,
) -> *const c_char {
    // SAFETY: the caller promises NULL or a live result, and NULL or a writable `len`.
    unsafe {
        match result.as_ref() {
            Some(result) => give_text(&result.output, len),
            None => no_text(len),
        }
    }
}

/// Frees a result. NULL is fine.
///
/// Requires: `result` is NULL or was not freed.
/// Threads: any.
#[no_mangle]
pub unsafe extern "C" fn ptc_result_free(result: *mut ptc_result) {
    // SAFETY: the caller gives up a result that came out of hand_out.
    guard_or((), || drop(unsafe { take_back(result) }));
}

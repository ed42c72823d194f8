//! `ptc_call`: one tool call, borrowed for the length of a callback or an event, answered by its id.

use super::{give_text, guard, guard_or, no_text, ptc_error, text};
use crate::rpc::call::{self, Call};
use std::ffi::{c_char, c_void};
use std::ptr;

/// One tool call: what was asked. It lives as long as the callback or the event that brought it; the answer goes by its id, at
/// any time and from any thread.
#[derive(Debug)]
pub struct ptc_call {
    call: Call,
}

impl ptc_call {
    pub(super) fn view(call: &Call) -> ptc_call {
        ptc_call { call: call.clone() }
    }
}

/// The call's id: unique in this process, never reused, never 0. 0 for NULL.
///
/// Requires: `call` is NULL, or its callback has not returned, or its event was not freed.
/// Threads: any.
#[no_mangle]
pub unsafe extern "C" fn ptc_call_id(call: *const ptc_call) -> u64 {
    // SAFETY: the caller promises NULL or a live call.
    unsafe { call.as_ref() }.map_or(0, |call| call.call.id())
}

/// The name of the tool, UTF-8 with a NUL behind it. `len` (may be NULL) receives its length in bytes, without the NUL. It
/// belongs to the call and lives as long. NULL, and length 0, for NULL.
///
/// Requires: `call` is NULL, or its callback has not returned, or its event was not freed; `len` is NULL or writable.
/// Threads: any.
#[no_mangle]
pub unsafe extern "C" fn ptc_call_tool(call: *const ptc_call, len: *mut usize) -> *const c_char {
    // SAFETY: the caller promises NULL or a live call, and NULL or a writable `len`.
    unsafe {
        match call.as_ref() {
            Some(call) => give_text(call.call.tool_with_nul(), len),
            None => no_text(len),
        }
    }
}

/// The arguments: a JSON object as the script sent it, UTF-8 with a NUL behind it. `len` (may be NULL) receives its length in
/// bytes, without the NUL. It belongs to the call and lives as long. NULL, and length 0, for NULL.
///
/// Requires: as `ptc_call_tool`.
/// Threads: any.
#[no_mangle]
pub unsafe extern "C" fn ptc_call_args(call: *const ptc_call, len: *mut usize) -> *const c_char {
    // SAFETY: the caller promises NULL or a live call, and NULL or a writable `len`.
    unsafe {
        match call.as_ref() {
            Some(call) => give_text(call.call.args_with_nul(), len),
            None => no_text(len),
        }
    }
}

/// The context that was given to `ptc_run_start` or `ptc_execute`, which ptc never looks at. NULL for NULL.
///
/// Requires: `call` is NULL, or its callback has not returned, or its event was not freed.
/// Threads: any.
#[no_mangle]
pub unsafe extern "C" fn ptc_call_context(call: *const ptc_call) -> *mut c_void {
    // SAFETY: the caller promises NULL or a live call.
    unsafe { call.as_ref() }.map_or(ptr::null_mut(), |call| call.call.context() as *mut c_void)
}

/// Says, inside dispatch, that the answer comes later. Then any thread may answer, also before dispatch has returned. A call
/// that was pulled needs no such word.
///
/// Errors: `PTC_CODE_STATE` when the call is not open or is deferred already.
/// Threads: any.
#[no_mangle]
pub extern "C" fn ptc_call_defer(id: u64) -> *mut ptc_error {
    guard(|| call::defer(id))
}

/// Answers a call with a JSON value of any kind, at any time and from any thread. The text is copied; it needs no NUL.
///
/// Errors: `PTC_CODE_STATE` when the call was answered before, its run has ended, or there never was one; nothing else happens
/// then. `PTC_CODE_INVALID_ARGUMENT` when `json` is not valid JSON, is NULL, or larger than `max_message_bytes`: the call has
/// failed then, and the script is told why.
/// Requires: `json` is readable for `len` bytes.
/// Threads: any.
#[no_mangle]
pub unsafe extern "C" fn ptc_call_reply(
    id: u64,
    json: *const c_char,
    len: usize,
) -> *mut ptc_error {
    guard(|| {
        // SAFETY: the caller promises a readable text.
        match unsafe { text(json, len, "json") } {
            Ok(json) => call::reply(id, json),
            Err(unreadable) => fail_with(id, unreadable),
        }
    })
}

/// Answers a call with a string, which is never parsed: the script gets a `str`. The text (UTF-8, NULs allowed) is copied.
///
/// Errors: as `ptc_call_reply`; `PTC_CODE_INVALID_ARGUMENT` is for text that is not UTF-8.
/// Requires: `text` is readable for `len` bytes.
/// Threads: any.
#[no_mangle]
pub unsafe extern "C" fn ptc_call_reply_text(
    id: u64,
    text: *const c_char,
    len: usize,
) -> *mut ptc_error {
    guard(|| {
        // SAFETY: the caller promises a readable text.
        match unsafe { super::text(text, len, "text") } {
            Ok(text) => call::reply_text(id, text),
            Err(unreadable) => fail_with(id, unreadable),
        }
    })
}

/// Answers a call with an error: the script gets `{"error": message}`, or a `ToolError` where the configuration says so. The
/// message is copied; one that is not UTF-8 is repaired.
///
/// Errors: as `ptc_call_reply`; `PTC_CODE_INVALID_ARGUMENT` is for NULL with a length.
/// Requires: `message` is readable for `len` bytes.
/// Threads: any.
#[no_mangle]
pub unsafe extern "C" fn ptc_call_fail(
    id: u64,
    message: *const c_char,
    len: usize,
) -> *mut ptc_error {
    guard(|| {
        // SAFETY: the caller promises a readable text.
        match unsafe { super::bytes(message, len, "message") } {
            Ok(message) => call::fail(id, &String::from_utf8_lossy(message)),
            Err(unreadable) => fail_with(id, unreadable),
        }
    })
}

/// Whether an answer to the call would still reach its script: 1, or 0 once it was answered, its run has ended or its caller is
/// gone. A tool that takes long asks now and then. 0 for an id that never was.
///
/// Threads: any.
#[no_mangle]
pub extern "C" fn ptc_call_is_wanted(id: u64) -> i32 {
    guard_or(0, || i32::from(call::is_wanted(id)))
}

/// An answer that cannot be read must not leave the script waiting.
fn fail_with(id: u64, unreadable: crate::Error) -> crate::Result<()> {
    call::fail(
        id,
        &format!("the host's reply could not be used: {unreadable}"),
    )?;
    Err(unreadable)
}

//! `ptc_event`: something that happened in a run.

use super::{give_text, guard_or, no_text, ptc_call, take_back};
use crate::event::Event;
use std::ffi::c_char;
use std::ptr;

/// Something that happened in a run. Pushed events live as long as their callback; pulled ones belong to the caller.
#[derive(Debug)]
pub struct ptc_event {
    event: Event,
    call: Option<ptc_call>,
}

impl ptc_event {
    pub(super) fn view(event: &Event) -> ptc_event {
        ptc_event {
            event: event.clone(),
            call: event.call().map(ptc_call::view),
        }
    }
}

/// The event's kind, one of `enum ptc_event_kind`; 0 for NULL.
///
/// Requires: `event` is NULL, or a pulled event that was not freed, or its callback has not returned.
/// Threads: any.
#[no_mangle]
pub unsafe extern "C" fn ptc_event_kind(event: *const ptc_event) -> i32 {
    // SAFETY: the caller promises NULL or a live event.
    unsafe { event.as_ref() }.map_or(0, |event| event.event.kind() as i32)
}

/// The event's data: the bytes of a chunk of output, cut anywhere, or a JSON object (see `enum ptc_event_kind`). There is a NUL
/// behind it; `len` (may be NULL) receives its length in bytes, without that NUL. It belongs to the event and lives as long.
/// NULL, and length 0, for NULL.
///
/// Requires: as `ptc_event_kind`; `len` is NULL or writable.
/// Threads: any.
#[no_mangle]
pub unsafe extern "C" fn ptc_event_data(event: *const ptc_event, len: *mut usize) -> *const c_char {
    // SAFETY: the caller promises NULL or a live event, and NULL or a writable `len`.
    unsafe {
        match event.as_ref() {
            Some(event) => give_text(event.event.data_with_nul(), len),
            None => no_text(len),
        }
    }
}

/// The call of a `PTC_EVENT_CALL`, to be answered. NULL for any other event, and for a call of one of the `builtin_tools`
/// (`"built_in": true` in its data), which the engine answers: such an event only tells of it. It belongs to the event and lives as long; its id may be answered
/// for longer.
///
/// Requires: as `ptc_event_kind`.
/// Threads: any.
#[no_mangle]
pub unsafe extern "C" fn ptc_event_call(event: *const ptc_event) -> *const ptc_call {
    // SAFETY: the caller promises NULL or a live event.
    let call = unsafe { event.as_ref() }.and_then(|event| event.call.as_ref());
    call.map_or(ptr::null(), ptr::from_ref)
}

/// Frees a pulled event. NULL is fine; a pushed event must not be freed. A call that came with it stays open.
///
/// Requires: `event` is NULL, or came from `ptc_run_next_event` and was not freed.
/// Threads: any.
#[no_mangle]
pub unsafe extern "C" fn ptc_event_free(event: *mut ptc_event) {
    // SAFETY: the caller gives up an event that came out of hand_out.
    guard_or((), || drop(unsafe { take_back(event) }));
}

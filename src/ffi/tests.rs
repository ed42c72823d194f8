//! What of this layer is memory and pointers alone: texts, structs and handles, in and out. `tests/miri` runs these under
//! Miri, which sees what no run on a machine shows; the C harness in `tests/c` has the rest.

use super::*;
use crate::event::{Event, EventKind};
use crate::rpc::call::Call;
use std::ffi::CStr;
use std::mem::{offset_of, size_of};

/// Copies what a text function gives, after a look at the NUL behind it.
fn taken(give: impl FnOnce(*mut usize) -> *const c_char) -> Option<Vec<u8>> {
    let mut len = usize::MAX;
    let data = give(&mut len);
    if data.is_null() {
        assert_eq!(len, 0);
        return None;
    }
    // SAFETY: not NULL, so it is a live text of `len` bytes with a NUL behind it; a shorter one is found by Miri.
    let with_nul = unsafe { std::slice::from_raw_parts(data.cast::<u8>(), len + 1) };
    assert_eq!(with_nul[len], 0);
    Some(with_nul[..len].to_vec())
}

/// The code and the message of an error, which is freed.
fn told(error: *mut ptc_error) -> (i32, String) {
    // SAFETY: the callers pass what a function has just returned: NULL, or an error that is theirs.
    unsafe {
        let code = ptc_error_code(error);
        let message = taken(|len| ptc_error_message(error, len)).unwrap_or_default();
        ptc_error_free(error);
        (code, String::from_utf8(message).unwrap())
    }
}

#[test]
fn errors_are_read_and_freed() {
    for message in ["", "plain", "with \0 inside", "päper"] {
        let error = guard(|| Err(Error::new(Code::Io, message)));
        assert_eq!(told(error), (6, message.to_string()));
    }
    assert_eq!(told(guard(|| Ok(()))), (0, String::new()));
    let (code, message) = told(guard(|| panic!("at the border")));
    assert!(code == 8 && message.contains("at the border"), "{message}");
}

#[test]
fn text_comes_in_by_pointer_and_length() {
    let data = "ä\0bc".as_bytes();
    let pointer = data.as_ptr().cast::<c_char>();
    // SAFETY: `data` has as many bytes as each call says, except where the pointer is NULL or the length is refused.
    unsafe {
        assert_eq!(text(pointer, data.len(), "t").unwrap(), "ä\0bc");
        assert_eq!(text(pointer, 0, "t").unwrap(), "");
        assert_eq!(text(ptr::null(), 0, "t").unwrap(), "");
        let refused = [
            (text(pointer, 1, "t"), "not valid UTF-8 at byte 0"),
            (text(ptr::null(), 1, "t"), "t is NULL but its length is 1"),
            (text(pointer, usize::MAX, "t"), "larger than any memory"),
        ];
        for (result, part) in refused {
            let error = result.unwrap_err();
            assert!(error.message().contains(part), "{error}");
        }
    }
}

#[test]
fn places_for_results_are_cleared_first() {
    let mut place = ptr::NonNull::<u8>::dangling().as_ptr();
    // SAFETY: `place` is a local; NULL is what the second call is about.
    unsafe {
        clear(&mut place, "out").unwrap();
        assert!(place.is_null());
        let error = clear(ptr::null_mut::<*mut u8>(), "out").unwrap_err();
        assert!(error.message().starts_with("out is NULL"), "{error}");
    }
}

#[test]
fn events_and_their_calls_are_read_and_freed() {
    let call = Call::invented("tool", "{\"a\":1}");
    let events = [
        (
            Event::new(EventKind::Stdout, &b"\xff\0"[..]),
            &b"\xff\0"[..],
        ),
        (Event::new(EventKind::End, ""), b""),
        (Event::of_call(call.clone(), "{}".into()), b"{}"),
    ];
    for (event, data) in events {
        let handle = hand_out(ptc_event::view(&event));
        drop(event);
        // SAFETY: `handle` is live until it is freed below, once.
        unsafe {
            assert_eq!(taken(|len| ptc_event_data(handle, len)).unwrap(), data);
            let inside = ptc_event_call(handle);
            assert_eq!(inside.is_null(), ptc_event_kind(handle) != 4);
            if !inside.is_null() {
                assert_eq!(ptc_call_id(inside), call.id());
                assert_eq!(taken(|len| ptc_call_tool(inside, len)).unwrap(), b"tool");
                assert_eq!(
                    taken(|len| ptc_call_args(inside, len)).unwrap(),
                    b"{\"a\":1}"
                );
                assert!(ptc_call_context(inside).is_null());
            }
            ptc_event_free(handle);
        }
    }
}

#[test]
fn every_reader_of_a_handle_takes_null() {
    // SAFETY: NULL is what these functions promise to take.
    unsafe {
        assert!(taken(|len| ptc_error_message(ptr::null(), len)).is_none());
        assert!(taken(|len| ptc_event_data(ptr::null(), len)).is_none());
        assert!(taken(|len| ptc_call_tool(ptr::null(), len)).is_none());
        assert!(taken(|len| ptc_call_args(ptr::null(), len)).is_none());
        assert!(taken(|len| ptc_result_json(ptr::null(), len)).is_none());
        assert!(taken(|len| ptc_result_output(ptr::null(), len)).is_none());
        assert!(ptc_error_message(ptr::null(), ptr::null_mut()).is_null());
        assert_eq!(
            (ptc_event_kind(ptr::null()), ptc_call_id(ptr::null())),
            (0, 0)
        );
        assert_eq!(ptc_result_status(ptr::null()), -1);
        ptc_error_free(ptr::null_mut());
        ptc_event_free(ptr::null_mut());
        ptc_result_free(ptr::null_mut());
        ptc_string_free(ptr::null_mut());
    }
}

#[test]
fn answers_to_unknown_calls_are_refused() {
    let json = c"null";
    // SAFETY: `json` has four bytes and lives; NULL without a length is empty.
    let errors = unsafe {
        [
            ptc_call_reply(u64::MAX, json.as_ptr(), 4),
            ptc_call_reply_text(u64::MAX, json.as_ptr(), 4),
            ptc_call_fail(u64::MAX, ptr::null(), 0),
            ptc_call_defer(u64::MAX),
        ]
    };
    for error in errors {
        let (code, message) = told(error);
        assert_eq!(code, Code::State as i32, "{message}");
    }
    assert_eq!(ptc_call_is_wanted(u64::MAX), 0);
}

unsafe extern "C" fn count(user_data: *mut c_void) {
    // SAFETY: the tests give a pointer to a number of their own, which outlives the host.
    unsafe { *user_data.cast::<i32>() += 1 }
}

/// What becomes of `host`, and how often its `drop` was called.
fn copied(mut host: ptc_host) -> (Result<()>, i32) {
    let mut drops = 0_i32;
    host.user_data = (&raw mut drops).cast();
    host.drop = Some(count);
    // SAFETY: the sizes that the tests give are those of the struct, or of a part of it, or refused.
    let result = unsafe { host::copy(&host) }.map(drop);
    (result, drops)
}

#[test]
fn the_hosts_struct_is_copied_by_its_size_and_dropped_once() {
    // SAFETY: all zero is how the header tells callers to begin.
    let mut host: ptc_host = unsafe { std::mem::zeroed() };
    host.struct_size = size_of::<ptc_host>();
    assert!(matches!(copied(host), (Ok(()), 1)));
    host.struct_size = offset_of!(ptc_host, threads) + size_of::<i32>();
    assert!(matches!(copied(host), (Ok(()), 1)));
    // `drop` is known, the number of threads is not.
    host.struct_size = offset_of!(ptc_host, threads);
    assert!(matches!(copied(host), (Err(_), 1)));
    for size in [0, 1, offset_of!(ptc_host, threads) - 1, usize::MAX] {
        host.struct_size = size;
        assert!(matches!(copied(host), (Err(_), 0)), "{size}");
    }
    host.struct_size = size_of::<ptc_host>();
    host.threads = -1;
    assert!(matches!(copied(host), (Err(_), 1)));
}

#[test]
fn a_larger_struct_is_taken_while_its_news_are_zero() {
    #[repr(C)]
    struct Newer {
        known: ptc_host,
        news: [usize; 2],
    }
    // SAFETY: all zero is a valid host, and so are two numbers.
    let mut newer: Newer = unsafe { std::mem::zeroed() };
    newer.known.struct_size = size_of::<Newer>();
    for (news, is_fine) in [([0, 0], true), ([0, 1], false)] {
        newer.news = news;
        // SAFETY: a pointer to the whole struct, as large as it says.
        let host = unsafe { host::copy((&raw const newer).cast()) };
        assert_eq!(host.is_ok(), is_fine);
    }
}

#[test]
fn strings_are_freed_as_they_were_given() {
    let given = std::ffi::CString::new("a definition").unwrap().into_raw();
    // SAFETY: made by the function that `ptc_string_free` expects, read before it is freed.
    unsafe {
        assert_eq!(CStr::from_ptr(given).to_bytes().len(), 12);
        ptc_string_free(given);
        let version = CStr::from_ptr(ptc_version());
        assert_eq!(version.to_str().unwrap(), env!("CARGO_PKG_VERSION"));
    }
}

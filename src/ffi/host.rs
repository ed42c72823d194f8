//! `ptc_host`: the host's callbacks, turned into a [`Host`] of the Rust API.

use super::{invalid, ptc_call, ptc_event};
use crate::error::Result;
use crate::host::Host;
use std::ffi::c_void;
use std::mem::{offset_of, size_of};
use std::sync::Arc;

/// Serves a tool call. `call` is valid until the function returns; take its id with `ptc_call_id` to answer later. The
/// function answers (`ptc_call_reply`, `ptc_call_reply_text`, `ptc_call_fail`) or says that it will (`ptc_call_defer`);
/// returning without any of these fails the call at once. It must not leave by longjmp or by an exception.
pub type ptc_dispatch_fn =
    Option<unsafe extern "C" fn(user_data: *mut c_void, call: *const ptc_call)>;

/// Is told of an event. `event` is valid until the function returns and must not be freed. The events of a run come in order
/// and one at a time.
pub type ptc_event_fn =
    Option<unsafe extern "C" fn(user_data: *mut c_void, event: *const ptc_event)>;

/// Is told that `user_data` is not needed any more. It is called by the thread that closes the engine; for an engine that was
/// freed inside one of its callbacks, by a thread of its own.
pub type ptc_drop_fn = Option<unsafe extern "C" fn(user_data: *mut c_void)>;

/// The host of an engine. Zero it, set `struct_size = sizeof(ptc_host)`, fill in what you use. The struct is copied;
/// only `user_data` has to stay alive, until `drop` is called.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct ptc_host {
    /// `sizeof(ptc_host)`: tells which members the caller knows.
    pub struct_size: usize,
    /// Given to each callback and never looked at. With `threads` > 0 it is used from several threads.
    pub user_data: *mut c_void,
    /// NULL: calls are pulled with `ptc_run_next_event`.
    pub dispatch: ptc_dispatch_fn,
    /// NULL: no events are pushed. A host that pulls its calls may be told of events all the same.
    pub on_event: ptc_event_fn,
    /// Called exactly once with `user_data`, after the last callback; also when `ptc_engine_new` fails. NULL: nothing to do.
    pub drop: ptc_drop_fn,
    /// 0: callbacks run only on a thread that is inside `ptc_execute` or `ptc_run_wait`. n, up to 1024: on at most n
    /// long-lived engine threads, in parallel.
    pub threads: i32,
}

/// The first version of the struct ended here; a smaller one was never published.
const FIRST_SIZE: usize = offset_of!(ptc_host, threads) + size_of::<i32>();

/// A struct larger than this was never zeroed: its size is whatever lay in that memory.
const LARGEST_SIZE: usize = 4096;

/// More threads than any host wants; a number above it is a mistake.
const MAX_THREADS: i32 = 1024;

/// The host's pointer, given back when the last callback that could use it is gone.
#[derive(Debug)]
struct UserData {
    pointer: *mut c_void,
    drop: ptc_drop_fn,
}

// SAFETY: we never look behind the pointer, only hand it back. That callbacks come on the threads which `threads`
// allows, and so may use it from there, is the contract that the host accepts with that number.
unsafe impl Send for UserData {}
// SAFETY: as for Send; shared access hands out copies of the pointer and nothing else.
unsafe impl Sync for UserData {}

impl Drop for UserData {
    fn drop(&mut self) {
        if let Some(drop) = self.drop {
            // SAFETY: the host gave this function for this pointer; Drop runs once, when no callback holds us any more.
            unsafe { drop(self.pointer) };
        }
    }
}

/// Copies the host's struct. From here on `drop` is called whatever happens, unless the size says that there is none, or
/// cannot be true: then the pointers cannot be trusted either.
///
/// # Safety
/// `host` is NULL or points to `struct_size` readable bytes; its callbacks fit their types.
pub(super) unsafe fn copy(host: *const ptc_host) -> Result<Host> {
    if host.is_null() {
        return Ok(Host::new());
    }
    // SAFETY: struct_size is the first member, and the caller promises that at least it is readable.
    let size = unsafe { (&raw const (*host).struct_size).read() };
    let wrong_size = || {
        Err(invalid(format!(
            "host.struct_size is {size}; zero the struct and set it to sizeof(ptc_host), which is {}",
            size_of::<ptc_host>()
        )))
    };
    if !(offset_of!(ptc_host, threads)..=LARGEST_SIZE).contains(&size) {
        return wrong_size();
    }
    // SAFETY: all-zero is a valid ptc_host: NULL pointers, absent functions, number 0.
    let mut known: ptc_host = unsafe { std::mem::zeroed() };
    let copied = size.min(size_of::<ptc_host>());
    // SAFETY: the caller promises `size` readable bytes, `copied` is at most that and at most our struct, which is a
    // local and cannot overlap.
    unsafe { std::ptr::copy_nonoverlapping(host.cast::<u8>(), (&raw mut known).cast(), copied) };
    let user_data = Arc::new(UserData {
        pointer: known.user_data,
        drop: known.drop,
    });
    if size < FIRST_SIZE {
        return wrong_size();
    }
    // SAFETY: the bytes between `copied` and `size` are readable by the caller's promise.
    let newer = unsafe { std::slice::from_raw_parts(host.cast::<u8>().add(copied), size - copied) };
    if newer.iter().any(|byte| *byte != 0) {
        return Err(invalid(
            "host: the struct has members set that this version of ptc does not know; check ptc_abi_version",
        ));
    }
    with_callbacks(&known, user_data)
}

fn with_callbacks(known: &ptc_host, user_data: Arc<UserData>) -> Result<Host> {
    if !(0..=MAX_THREADS).contains(&known.threads) {
        return Err(invalid(format!(
            "host.threads: expected 0 to {MAX_THREADS}, got {}",
            known.threads
        )));
    }
    let mut host = Host::new().threads(usize::try_from(known.threads).unwrap_or(0));
    if let Some(dispatch) = known.dispatch {
        let data = Arc::clone(&user_data);
        host = host.dispatch(move |call| {
            let view = ptc_call::view(call);
            // SAFETY: the host gave this function with this pointer, which stays alive as long as `data`; the view
            // outlives the call.
            unsafe { dispatch(data.pointer, &view) }
        });
    }
    if let Some(on_event) = known.on_event {
        let data = Arc::clone(&user_data);
        host = host.on_event(move |event| {
            let view = ptc_event::view(event);
            // SAFETY: as for dispatch.
            unsafe { on_event(data.pointer, &view) }
        });
    }
    // A host without callbacks still wants its drop called at the end.
    Ok(host.keep(user_data))
}

//! `ptc_engine`: configuration, tools and host.

use super::{
    borrow, bytes, clear, context_number, guard, guard_or, hand_out, host, ptc_error, ptc_host,
    ptc_result, ptc_run, take_back, text, timeout,
};
use crate::engine::Engine;
use std::ffi::{c_char, c_void, CString};

/// An engine: configuration, tools and host, shared by any number of runs at once. May be used from any thread.
#[derive(Debug)]
pub struct ptc_engine {
    engine: Engine,
}

/// Makes an engine. `config` is a JSON object (`len` 0: all defaults), `host` the callbacks (NULL: none, calls are pulled);
/// both are copied. `*out` is the engine, to be freed with `ptc_engine_free`, or NULL after an error. The host's environment
/// is copied now, of which scripts get the harmless part; no interpreter is looked for before the first run.
///
/// On failure too the host's `drop` is called, before this returns, unless `struct_size` cannot be that of a `ptc_host`.
///
/// Errors: `PTC_CODE_CONFIG` names the JSON path of what is wrong; `PTC_CODE_INVALID_ARGUMENT` for NULL, bad UTF-8 or a host
/// struct that does not fit; `PTC_CODE_UNSUPPORTED` where scripts cannot run; `PTC_CODE_IO` when descriptors have run out.
/// Requires: `config` is readable for `len` bytes; `host` is NULL or readable for its `struct_size`; `out` is writable.
/// Threads: any; not while another thread changes the environment.
#[no_mangle]
pub unsafe extern "C" fn ptc_engine_new(
    config: *const c_char,
    len: usize,
    host: *const ptc_host,
    out: *mut *mut ptc_engine,
) -> *mut ptc_error {
    guard(|| {
        // SAFETY: the caller promises NULL or a valid struct. Taken first, so that `drop` is called on every way out.
        let host = unsafe { host::copy(host) };
        // SAFETY: the caller promises writable memory or NULL.
        unsafe { clear(out, "out") }?;
        let host = host?;
        // SAFETY: the caller promises `len` readable bytes.
        let config = unsafe { text(config, len, "config") }?;
        let engine = Engine::new(config, host)?;
        // SAFETY: `out` was found writable above.
        unsafe { out.write(hand_out(ptc_engine { engine })) };
        Ok(())
    })
}

/// The definition of the `execute_code` tool for the model. `format` is "anthropic", "openai", "mcp" (all JSON) or "text".
/// `*out` is NUL-terminated UTF-8, to be freed with `ptc_string_free`, or NULL after an error; `len` (may be NULL) receives its
/// length in bytes, without the NUL.
///
/// Errors: `PTC_CODE_INVALID_ARGUMENT` for NULL or an unknown format.
/// Requires: `engine` is NULL or was not freed; `format` is NULL or NUL-terminated; `out` is writable; `len` is NULL or writable.
/// Threads: any.
#[no_mangle]
pub unsafe extern "C" fn ptc_engine_definition(
    engine: *mut ptc_engine,
    format: *const c_char,
    out: *mut *mut c_char,
    len: *mut usize,
) -> *mut ptc_error {
    guard(|| {
        // SAFETY: the caller promises writable memory or NULL.
        unsafe { clear(out, "out") }?;
        // SAFETY: the caller promises a live engine or NULL.
        let engine = unsafe { borrow(engine, "engine") }?;
        if format.is_null() {
            return Err(super::invalid(
                "format is NULL: expected \"anthropic\", \"openai\", \"mcp\" or \"text\"",
            ));
        }
        // SAFETY: not NULL, and the caller promises a NUL-terminated string.
        let format = unsafe { std::ffi::CStr::from_ptr(format) }.to_string_lossy();
        crate::panic::rehearse("definition", format.as_bytes());
        let definition = engine.engine.definition(&format)?.replace('\0', "\u{fffd}");
        // SAFETY: the caller promises NULL or a writable place.
        if let Some(len) = unsafe { len.as_mut() } {
            *len = definition.len();
        }
        let definition = CString::new(definition).unwrap_or_default();
        // SAFETY: `out` was found writable above.
        unsafe { out.write(definition.into_raw()) };
        Ok(())
    })
}

/// Frees a string that ptc gave to its caller for keeps. NULL is fine.
///
/// Requires: `string` is NULL, or came from `ptc_engine_definition` and was not freed.
/// Threads: any.
#[no_mangle]
pub unsafe extern "C" fn ptc_string_free(string: *mut c_char) {
    guard_or((), || {
        if !string.is_null() {
            // SAFETY: the caller gives up a string that came out of CString::into_raw, its length unchanged.
            drop(unsafe { CString::from_raw(string) });
        }
    });
}

/// Cancels the runs and waits at most `timeout_ms` milliseconds (-1: without limit) until they have ended and no callback is
/// under way. After NULL no callback comes any more, the host's `drop` was called and the threads of the engine are gone.
/// Closing again is fine.
///
/// Errors: `PTC_CODE_STATE` inside a callback of this engine (nothing was done), or when the time was not enough: the engine
/// then takes no new runs, and closing may be tried again. `PTC_CODE_INVALID_ARGUMENT` for NULL or a time below -1.
/// Requires: `engine` is NULL or was not freed.
/// Threads: any.
#[no_mangle]
pub unsafe extern "C" fn ptc_engine_close(
    engine: *mut ptc_engine,
    timeout_ms: i64,
) -> *mut ptc_error {
    guard(|| {
        // SAFETY: the caller promises a live engine or NULL.
        let engine = unsafe { borrow(engine, "engine") }?;
        engine.engine.close(timeout(timeout_ms)?)
    })
}

/// Closes the engine without a time limit and releases it. Inside one of its callbacks the closing is left to a thread of its
/// own, which waits for the callback to return. Runs outlive their engine: handles stay valid, for the results. NULL is fine.
///
/// Requires: `engine` is NULL or was not freed; no other thread uses it any more.
/// Threads: any.
#[no_mangle]
pub unsafe extern "C" fn ptc_engine_free(engine: *mut ptc_engine) {
    guard_or((), || {
        // SAFETY: the caller gives up an engine that came out of hand_out.
        drop(unsafe { take_back(engine) });
    });
}

/// Starts a script and returns at once. `code` is UTF-8 Python; `options` is a JSON object (`options_len` 0: none); both are
/// copied. `context` is handed back with each of the run's calls and never looked at. `*out` is the run, to be freed with
/// `ptc_run_free`, or NULL after an error.
///
/// Errors: `PTC_CODE_INVALID_ARGUMENT` for NULL and for code that cannot be a script, `PTC_CODE_CONFIG` for bad options,
/// `PTC_CODE_STATE` for a closed engine, `PTC_CODE_IO` when threads or descriptors have run out. What goes wrong later is in
/// the run's result.
/// Requires: `engine` is NULL or was not freed; `code` and `options` are readable for their lengths; `out` is writable.
/// Threads: any.
#[no_mangle]
pub unsafe extern "C" fn ptc_run_start(
    engine: *mut ptc_engine,
    code: *const c_char,
    code_len: usize,
    options: *const c_char,
    options_len: usize,
    context: *mut c_void,
    out: *mut *mut ptc_run,
) -> *mut ptc_error {
    guard(|| {
        // SAFETY: the caller promises writable memory or NULL.
        unsafe { clear(out, "out") }?;
        // SAFETY: the caller promises a live engine, and readable memory for code and options.
        let (engine, code, options) = unsafe {
            (
                borrow(engine, "engine")?,
                bytes(code, code_len, "code")?,
                text(options, options_len, "options")?,
            )
        };
        let run = engine
            .engine
            .start_with(code, options, context_number(context))?;
        // SAFETY: `out` was found writable above.
        unsafe { out.write(ptc_run::hand_out(run)) };
        Ok(())
    })
}

/// Runs a script to its end: `ptc_run_start` and `ptc_run_wait` in one. With `threads` = 0 callbacks run on this thread. Without a
/// dispatch callback there is nobody to pull the script's calls, so they fail. `*out` is the result, to be freed with
/// `ptc_result_free`, or NULL after an error. Nothing but the script's own end, its timeout or `ptc_engine_close` stops it.
///
/// Errors: as `ptc_run_start`.
/// Requires: as `ptc_run_start`. A callback may free the engine; the run is then cancelled and its result comes as ever.
/// Threads: any, also inside a callback.
#[no_mangle]
pub unsafe extern "C" fn ptc_execute(
    engine: *mut ptc_engine,
    code: *const c_char,
    code_len: usize,
    options: *const c_char,
    options_len: usize,
    context: *mut c_void,
    out: *mut *mut ptc_result,
) -> *mut ptc_error {
    guard(|| {
        // SAFETY: the caller promises writable memory or NULL.
        unsafe { clear(out, "out") }?;
        // SAFETY: the caller promises a live engine, and readable memory for code and options.
        let (engine, code, options) = unsafe {
            (
                borrow(engine, "engine")?,
                bytes(code, code_len, "code")?,
                text(options, options_len, "options")?,
            )
        };
        let run = engine
            .engine
            .start_unpulled(code, options, context_number(context))?;
        // Nothing of the engine is borrowed from here on: a callback may free it.
        let outcome = run.wait_to_the_end()?;
        // SAFETY: `out` was found writable above.
        unsafe { out.write(ptc_result::hand_out(&outcome)) };
        Ok(())
    })
}

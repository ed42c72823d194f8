//! The constants of the header. Functions take and return `int32_t`; the enums are for the reader.

use crate::error::Code;
use crate::event::EventKind;
use crate::run::outcome::Status;
use std::ffi::c_char;

/// How a run ended.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub enum ptc_status {
    /// The script ended with exit code 0.
    PTC_STATUS_SUCCESS = 0,
    /// Another exit code, a signal, or a script that could not be started.
    PTC_STATUS_ERROR = 1,
    /// The script ran longer than it may and was killed.
    PTC_STATUS_TIMEOUT = 2,
    /// The run was cancelled.
    PTC_STATUS_INTERRUPTED = 3,
}

/// What kind of error a `ptc_error` is.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub enum ptc_code {
    /// An argument of the call itself: a NULL pointer, bad UTF-8, invalid JSON, an unknown name.
    PTC_CODE_INVALID_ARGUMENT = 1,
    /// The configuration or a run's options; the message names the JSON path.
    PTC_CODE_CONFIG = 2,
    /// This platform cannot run scripts, or lacks something that was required.
    PTC_CODE_UNSUPPORTED = 3,
    /// No usable Python interpreter.
    PTC_CODE_INTERPRETER = 4,
    /// The child process could not be started.
    PTC_CODE_SPAWN = 5,
    /// The operating system refused a file, socket or thread.
    PTC_CODE_IO = 6,
    /// The call came at the wrong time: an answered call, a closed engine, a wait inside a callback.
    PTC_CODE_STATE = 7,
    /// A bug in ptc: a panic that was caught at its border.
    PTC_CODE_PANIC = 8,
}

/// What an event is about, and what `ptc_event_data` gives for it.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub enum ptc_event_kind {
    /// The script runs. Data: a JSON object with `pid`, `python`, `mode`, `cwd`.
    PTC_EVENT_STARTED = 1,
    /// Bytes that the script wrote to stdout, cut anywhere. Where more than 1 MiB waits to be taken, some are left out and a
    /// line says so; the result is complete all the same.
    PTC_EVENT_STDOUT = 2,
    /// Bytes that the script wrote to stderr, cut anywhere.
    PTC_EVENT_STDERR = 3,
    /// A tool call has begun (`ptc_event_call`). Data: a JSON object with `id`, `tool`, `args_preview`, and `"built_in": true`
    /// where the engine answers it itself. What the script wrote before it called has been told before.
    PTC_EVENT_CALL = 4,
    /// A call has ended; told once for each, before the answer leaves. A call whose turn had not come when the run ended has
    /// no `PTC_EVENT_CALL`. Data: its entry in the result's `tool_calls`.
    PTC_EVENT_CALL_END = 5,
    /// The run has ended; no event follows. Data: a JSON object with `status` and `duration_seconds`.
    PTC_EVENT_END = 6,
}

// The header generator needs the numbers themselves; the compiler holds them against the Rust enums.
const _: () = {
    assert!(ptc_status::PTC_STATUS_SUCCESS as i32 == Status::Success as i32);
    assert!(ptc_status::PTC_STATUS_ERROR as i32 == Status::Error as i32);
    assert!(ptc_status::PTC_STATUS_TIMEOUT as i32 == Status::Timeout as i32);
    assert!(ptc_status::PTC_STATUS_INTERRUPTED as i32 == Status::Interrupted as i32);
    assert!(ptc_code::PTC_CODE_INVALID_ARGUMENT as i32 == Code::InvalidArgument as i32);
    assert!(ptc_code::PTC_CODE_CONFIG as i32 == Code::Config as i32);
    assert!(ptc_code::PTC_CODE_UNSUPPORTED as i32 == Code::Unsupported as i32);
    assert!(ptc_code::PTC_CODE_INTERPRETER as i32 == Code::Interpreter as i32);
    assert!(ptc_code::PTC_CODE_SPAWN as i32 == Code::Spawn as i32);
    assert!(ptc_code::PTC_CODE_IO as i32 == Code::Io as i32);
    assert!(ptc_code::PTC_CODE_STATE as i32 == Code::State as i32);
    assert!(ptc_code::PTC_CODE_PANIC as i32 == Code::Panic as i32);
    assert!(ptc_event_kind::PTC_EVENT_STARTED as i32 == EventKind::Started as i32);
    assert!(ptc_event_kind::PTC_EVENT_STDOUT as i32 == EventKind::Stdout as i32);
    assert!(ptc_event_kind::PTC_EVENT_STDERR as i32 == EventKind::Stderr as i32);
    assert!(ptc_event_kind::PTC_EVENT_CALL as i32 == EventKind::Call as i32);
    assert!(ptc_event_kind::PTC_EVENT_CALL_END as i32 == EventKind::CallEnd as i32);
    assert!(ptc_event_kind::PTC_EVENT_END as i32 == EventKind::End as i32);
};

/// The version of this interface: it grows when something is added, and nothing is ever taken away or changed under the
/// same number of the library's name.
pub const PTC_ABI_VERSION: u32 = 1;

/// The version of the library, such as "0.1.0". A static string; never NULL.
///
/// Threads: any.
#[no_mangle]
pub extern "C" fn ptc_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// The ABI version that the library implements. It serves hosts that were compiled with a `PTC_ABI_VERSION` up to this.
///
/// Threads: any.
#[no_mangle]
pub extern "C" fn ptc_abi_version() -> u32 {
    PTC_ABI_VERSION
}

/// Whether scripts can be run on this platform at all: 1 or 0. Where it is 0 `ptc_engine_new` returns
/// `PTC_CODE_UNSUPPORTED`, and a host falls back to ordinary tool calls.
///
/// Threads: any.
#[no_mangle]
pub extern "C" fn ptc_is_supported() -> i32 {
    i32::from(crate::sys::supported())
}

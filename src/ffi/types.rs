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
    PTC_STATUS_SUCCESS = Status::Success as isize,
    /// Another exit code, a signal, or a script that could not be started.
    PTC_STATUS_ERROR = Status::Error as isize,
    /// The script ran longer than it may and was killed.
    PTC_STATUS_TIMEOUT = Status::Timeout as isize,
    /// The run was cancelled.
    PTC_STATUS_INTERRUPTED = Status::Interrupted as isize,
}

/// What kind of error a `ptc_error` is.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub enum ptc_code {
    /// An argument of the call itself: a NULL pointer, bad UTF-8, invalid JSON, an unknown name.
    PTC_CODE_INVALID_ARGUMENT = Code::InvalidArgument as isize,
    /// The configuration or a run's options; the message names the JSON path.
    PTC_CODE_CONFIG = Code::Config as isize,
    /// This platform cannot run scripts, or lacks something that was required.
    PTC_CODE_UNSUPPORTED = Code::Unsupported as isize,
    /// No usable Python interpreter.
    PTC_CODE_INTERPRETER = Code::Interpreter as isize,
    /// The child process could not be started.
    PTC_CODE_SPAWN = Code::Spawn as isize,
    /// The operating system refused a file, socket or thread.
    PTC_CODE_IO = Code::Io as isize,
    /// The call came at the wrong time: an answered call, a closed engine, a wait inside a callback.
    PTC_CODE_STATE = Code::State as isize,
    /// A bug in ptc: a panic that was caught at its border.
    PTC_CODE_PANIC = Code::Panic as isize,
}

/// What an event is about, and what `ptc_event_data` gives for it.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub enum ptc_event_kind {
    /// The script runs. Data: a JSON object with `pid`, `python`, `mode`, `cwd`.
    PTC_EVENT_STARTED = EventKind::Started as isize,
    /// Bytes that the script wrote to stdout, cut anywhere.
    PTC_EVENT_STDOUT = EventKind::Stdout as isize,
    /// Bytes that the script wrote to stderr, cut anywhere.
    PTC_EVENT_STDERR = EventKind::Stderr as isize,
    /// A tool call has begun (`ptc_event_call`). Data: a JSON object with `id`, `tool`, `args_preview`.
    PTC_EVENT_CALL = EventKind::Call as isize,
    /// A call has ended. Data: its entry in the result's `tool_calls`.
    PTC_EVENT_CALL_END = EventKind::CallEnd as isize,
    /// The run has ended; no event follows. Data: a JSON object with `status` and `duration_seconds`.
    PTC_EVENT_END = EventKind::End as isize,
}

/// The version of this interface: it grows when something is added, and nothing is ever taken away or changed under the
/// same number of the library's name.
pub const PTC_ABI_VERSION: u32 = 1;

/// The version of the library, such as "0.1.0". A static string; never NULL.
#[no_mangle]
pub extern "C" fn ptc_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// The ABI version that the library implements. It is at least the `PTC_ABI_VERSION` of a header that it can serve.
#[no_mangle]
pub extern "C" fn ptc_abi_version() -> u32 {
    PTC_ABI_VERSION
}

/// Whether scripts can be run on this platform at all: 1 or 0. Where it is 0 `ptc_engine_new` returns
/// `PTC_CODE_UNSUPPORTED`, and a host falls back to ordinary tool calls.
#[no_mangle]
pub extern "C" fn ptc_is_supported() -> i32 {
    i32::from(crate::sys::supported())
}

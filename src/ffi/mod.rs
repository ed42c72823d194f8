//! The C ABI: conversion and guards around the Rust API, one file for each handle, and nothing else.
//!
//! What holds for every function here, so that their bodies need not repeat it:
//!
//! - A panic is caught at the border (`guard`) and becomes `PTC_CODE_PANIC`, or the fallback of functions that return no
//!   error.
//! - NULL is answered with an error, or ignored.
//! - Text that comes in is copied before the function returns; text that goes out belongs to a handle and has a NUL
//!   behind it.
//! - Handles are made by `hand_out` and come back through `take_back`. In a process that was forked from the one
//!   that made them they are only forgotten.

//!
//! The doc comments are those of the header, so they speak to the reader of C: what rustdoc would call `# Safety` is the
//! paragraph `Requires:`.

#![allow(non_camel_case_types)]
#![allow(clippy::missing_safety_doc)]

// In the order in which the header shows them; the empty lines keep rustfmt from sorting.
mod types;

mod error;

mod host;

mod engine;

mod run;

mod call;

mod event;

mod result;

#[cfg(test)]
mod tests;

pub use call::*;
pub use engine::*;
pub use error::*;
pub use event::*;
pub use host::*;
pub use result::*;
pub use run::*;
pub use types::*;

use crate::error::{Code, Error, Result};
use std::ffi::{c_char, c_void};
use std::ptr;
use std::time::Duration;

/// Runs `body`; an error or a panic comes back as an error object.
fn guard(body: impl FnOnce() -> Result<()>) -> *mut ptc_error {
    let result = crate::panic::catch(body)
        .unwrap_or_else(|panic| Err(Error::new(Code::Panic, crate::panic::complaint(&panic))));
    match result {
        Ok(()) => ptr::null_mut(),
        Err(error) => ptc_error::hand_out(&error),
    }
}

/// Runs `body`; `fallback` where it panics.
fn guard_or<T>(fallback: T, body: impl FnOnce() -> T) -> T {
    crate::panic::catch(body).unwrap_or(fallback)
}

fn invalid(message: impl Into<String>) -> Error {
    Error::new(Code::InvalidArgument, message)
}

/// Gives `value` to the caller, who owns it until a `_free` function takes it back.
fn hand_out<T>(value: T) -> *mut T {
    Box::into_raw(Box::new(value))
}

/// Takes back what [`hand_out`] gave; `None` for NULL.
///
/// # Safety
/// `handle` is NULL or came from [`hand_out`] and was not taken back before.
unsafe fn take_back<T>(handle: *mut T) -> Option<Box<T>> {
    if handle.is_null() {
        return None;
    }
    // SAFETY: the caller promises an unfreed pointer out of Box::into_raw.
    Some(unsafe { Box::from_raw(handle) })
}

/// The object behind a handle.
///
/// # Safety
/// `handle` is NULL or a live handle; it stays alive while the reference is used.
unsafe fn borrow<'a, T>(handle: *const T, name: &str) -> Result<&'a T> {
    // SAFETY: the caller promises NULL or a live object of this type, and handles are never handed out mutably.
    unsafe { handle.as_ref() }.ok_or_else(|| invalid(format!("{name} is NULL")))
}

/// Clears the place for a result, so that it is defined whatever happens next.
///
/// # Safety
/// `out` is NULL or points to writable memory for a `T`.
unsafe fn clear<T>(out: *mut *mut T, name: &str) -> Result<()> {
    if out.is_null() {
        return Err(invalid(format!(
            "{name} is NULL: there is no place for the result"
        )));
    }
    // SAFETY: not NULL, and the caller promises writable memory. No old value is read or dropped.
    unsafe { out.write(ptr::null_mut()) };
    Ok(())
}

/// The bytes at (pointer, length). NULL with length 0 is empty.
///
/// # Safety
/// `data` is NULL or readable for `len` bytes while the reference is used.
unsafe fn bytes<'a>(data: *const c_char, len: usize, name: &str) -> Result<&'a [u8]> {
    if len == 0 {
        return Ok(&[]);
    }
    if data.is_null() {
        return Err(invalid(format!("{name} is NULL but its length is {len}")));
    }
    if isize::try_from(len).is_err() {
        return Err(invalid(format!(
            "the length of {name}, {len}, is larger than any memory"
        )));
    }
    // SAFETY: not NULL, a length that fits, and the caller promises readable memory. Any byte is a valid u8.
    Ok(unsafe { std::slice::from_raw_parts(data.cast::<u8>(), len) })
}

/// The text at (pointer, length).
///
/// # Safety
/// As [`bytes`].
unsafe fn text<'a>(data: *const c_char, len: usize, name: &str) -> Result<&'a str> {
    // SAFETY: the caller's promise is the same.
    let bytes = unsafe { bytes(data, len, name) }?;
    std::str::from_utf8(bytes).map_err(|e| {
        invalid(format!(
            "{name} is not valid UTF-8 at byte {}",
            e.valid_up_to()
        ))
    })
}

/// Points the caller at `text`, which has a NUL behind it.
///
/// # Safety
/// `len` is NULL or points to writable memory for a `usize`.
unsafe fn give_text(with_nul: &[u8], len: *mut usize) -> *const c_char {
    // SAFETY: the caller promises NULL or a writable place.
    if let Some(len) = unsafe { len.as_mut() } {
        *len = with_nul.len().saturating_sub(1);
    }
    with_nul.as_ptr().cast()
}

/// What a text function returns for NULL: no text, length 0.
///
/// # Safety
/// As [`give_text`].
unsafe fn no_text(len: *mut usize) -> *const c_char {
    // SAFETY: the caller promises NULL or a writable place.
    if let Some(len) = unsafe { len.as_mut() } {
        *len = 0;
    }
    ptr::null()
}

/// -1: no limit; otherwise milliseconds.
fn timeout(ms: i64) -> Result<Option<Duration>> {
    match u64::try_from(ms) {
        Ok(ms) => Ok(Some(Duration::from_millis(ms))),
        Err(_) if ms == -1 => Ok(None),
        Err(_) => Err(invalid(format!(
            "timeout_ms: expected -1 (no limit) or more, got {ms}"
        ))),
    }
}

/// A host's opaque pointer as the number that the Rust API carries.
fn context_number(context: *mut c_void) -> usize {
    context as usize
}

fn with_nul(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len() + 1);
    bytes.extend_from_slice(text.as_bytes());
    bytes.push(0);
    bytes
}

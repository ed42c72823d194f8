//! Listing a directory by its descriptor.

use std::ffi::CStr;
use std::io;
use std::os::fd::{BorrowedFd, IntoRawFd};

use super::at;

/// The entries of a directory but `.` and `..`.
pub(super) struct Entries {
    stream: *mut libc::DIR,
}

impl Entries {
    /// Lists from the beginning, whatever was listed through this descriptor before.
    pub(super) fn open(dir: BorrowedFd<'_>) -> io::Result<Self> {
        let fd = at::open(dir, c".", at::OPEN_DIR, 0)?;
        // SAFETY: the descriptor is open; on success the stream owns it, on failure it is closed below.
        let raw = fd.into_raw_fd();
        let stream = unsafe { libc::fdopendir(raw) };
        if stream.is_null() {
            let error = io::Error::last_os_error();
            // SAFETY: fdopendir failed and left the descriptor to us.
            unsafe { libc::close(raw) };
            return Err(error);
        }
        Ok(Entries { stream })
    }

    /// The next name, valid until the next call. An error ends the listing early, which the caller notices when the
    /// directory turns out not to be empty.
    pub(super) fn next(&mut self) -> Option<&CStr> {
        loop {
            // SAFETY: the stream is open and used by this thread only.
            let entry = unsafe { libc::readdir(self.stream) };
            if entry.is_null() {
                return None;
            }
            // SAFETY: readdir returned an entry, whose name is NUL-terminated and lives until the next readdir or
            // closedir, both of which need `&mut self`.
            let name = unsafe { CStr::from_ptr((*entry).d_name.as_ptr()) };
            if !matches!(name.to_bytes(), b"." | b"..") {
                return Some(name);
            }
        }
    }
}

impl Drop for Entries {
    fn drop(&mut self) {
        // SAFETY: the stream is open and not used afterwards.
        unsafe { libc::closedir(self.stream) };
    }
}

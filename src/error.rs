//! The one error type of the crate: a code that a program can branch on and a message that a person can act on.

use std::fmt;

/// What kind of thing went wrong; the numbers are those of `enum ptc_code` in the C header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub enum Code {
    /// An argument of the call itself: a NULL pointer, bad UTF-8, invalid JSON, an unknown name.
    InvalidArgument = 1,
    /// The configuration or a run's options; the message names the JSON path.
    Config = 2,
    /// This platform cannot run scripts, or lacks something that was required.
    Unsupported = 3,
    /// No usable Python interpreter.
    Interpreter = 4,
    /// The child process could not be started.
    Spawn = 5,
    /// The operating system refused a file, socket or thread.
    Io = 6,
    /// The call came at the wrong time: an answered call, a closed engine, a wait inside a callback.
    State = 7,
    /// A bug in this library: a panic that was caught at its border.
    Panic = 8,
}

/// An error with its [`Code`] and a message that says what was wrong, where, and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    code: Code,
    message: String,
}

/// Short for a result with this crate's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Self {
        Error {
            code,
            message: message.into(),
        }
    }

    pub(crate) fn config(path: &str, message: impl fmt::Display) -> Self {
        Error::new(Code::Config, format!("{path}: {message}"))
    }

    /// The kind of error.
    pub fn code(&self) -> Code {
        self.code
    }

    /// The message, without the code.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

//! `ptc` runs a model's Python script in a supervised child process, serves the script's tool calls through the
//! host's callback, and hands back only what the script printed.
#![deny(unsafe_code)]

/// The README's Rust host is compiled and run as a documentation test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(unix)]
mod capture;
#[cfg(unix)]
#[doc(hidden)]
pub mod command;
mod config;
#[cfg(unix)]
mod crew;
mod definition;
#[cfg(unix)]
mod engine;
mod error;
#[cfg(unix)]
mod event;
#[cfg(unix)]
mod host;
#[cfg(unix)]
mod job;
mod json;
mod panic;
#[cfg(unix)]
mod python;
#[cfg(unix)]
mod rpc;
#[cfg(unix)]
mod run;
mod suggest;
mod text;
mod tool;

#[allow(unsafe_code)]
pub mod ffi;
#[allow(unsafe_code)]
mod sys;

pub use definition::DefinitionStats;
pub use engine::Engine;
pub use error::{Code, Error, Result};
pub use event::{Event, EventKind};
pub use host::Host;
pub use rpc::call::{defer, fail, is_wanted, reply, reply_text, Call};
pub use run::outcome::{Outcome, Status};
pub use run::Run;

//! `ptc` runs a model's Python script in a supervised child process, serves the script's tool calls through the
//! host's callback, and hands back only what the script printed.
#![deny(unsafe_code)]

mod config;
mod error;
mod json;
mod python;
mod suggest;
mod tool;

#[allow(unsafe_code)]
mod sys;

pub use error::{Code, Error, Result};

//! Everything about Python: which interpreter, which environment, and the code of ours that runs in it.

mod environ;
mod interpreter;
pub(crate) mod stubs;

pub(crate) use environ::Environ;
pub(crate) use interpreter::{Interpreter, Interpreters, ProbeCommand, ProbeOutput, Search};

use crate::config::Config;
use std::ffi::OsString;
use std::path::Path;

/// The `sitecustomize` of the staging directory: prepares the interpreter before the script begins.
pub(crate) const BOOT_SOURCE: &str = include_str!("boot.py");

/// The fixed part of the generated module: the client and the helpers.
const RUNTIME_SOURCE: &str = include_str!("runtime.py");

const PROBE_SOURCE: &str = include_str!("probe.py");

/// The text of the module that scripts import, for the tools of `config`.
pub(crate) fn module_source(config: &Config) -> String {
    stubs::module_source(RUNTIME_SOURCE, config, &config.tools)
}

/// The value of `PTC_BOOT`: the directory that joins the script's import path, if one does.
pub(crate) fn boot_value(cwd: Option<&Path>) -> OsString {
    match cwd {
        Some(cwd) => {
            let mut value = OsString::from("+");
            value.push(cwd);
            value
        }
        None => "-".into(),
    }
}

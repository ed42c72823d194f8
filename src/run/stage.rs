//! The staging directory: private, holding the script, the generated module and the socket, and gone with the run.

use crate::python::Interpreter;
use crate::sys::child::ExitStatus;
use crate::sys::dir::{self, Dir};
use crate::sys::socket;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

const SCRIPT: &str = "script.py";
const SOCKET: &str = "s";
const REPORT: &str = "report.json";
const RAISED: &str = "raised";
const STATUS: &str = "status";
const TEMPORARY: &str = "tmp";

/// A report is a few lines; a script that writes more into its place is not believed.
const REPORT_BYTES: usize = 64 * 1024;

/// An exit code has three digits, a signal two and a sign.
const STATUS_BYTES: usize = 3;

/// A staging directory with its files in place.
#[derive(Debug)]
pub(super) struct Stage {
    dir: Dir,
}

impl Stage {
    /// Makes the directory in the first of `parents` that will do and fills it.
    pub(super) fn create(
        parents: &[PathBuf],
        script: &[u8],
        module_name: &str,
        module_source: &str,
        interpreter: &Interpreter,
    ) -> io::Result<Stage> {
        let stage = Stage {
            dir: Dir::create(parents, dir::PREFIX)?,
        };
        let dir = &stage.dir;
        let tag = &interpreter.cache_tag;
        dir.write_file(SCRIPT, script, 0o600)?;
        dir.write_file("sitecustomize.py", crate::python::BOOT.as_bytes(), 0o600)?;
        dir.write_file(
            &format!("{module_name}.py"),
            module_source.as_bytes(),
            0o600,
        )?;
        // An interpreter without a tag keeps no compiled modules.
        if tag.is_empty() {
            return Ok(stage);
        }
        dir.mkdir("__pycache__")?;
        dir.write_file(
            &format!("__pycache__/sitecustomize.{tag}.pyc"),
            &interpreter.boot_pyc,
            0o600,
        )?;
        dir.write_file(
            &format!("__pycache__/{module_name}.{tag}.pyc"),
            &interpreter.module_pyc,
            0o600,
        )?;
        Ok(stage)
    }

    pub(super) fn path(&self) -> &Path {
        self.dir.path()
    }

    pub(super) fn script(&self) -> PathBuf {
        self.path().join(SCRIPT)
    }

    pub(super) fn socket(&self) -> PathBuf {
        self.path().join(SOCKET)
    }

    /// Makes a place for temporary files, for scripts that may not write anywhere else.
    pub(super) fn make_temporary(&self) -> io::Result<()> {
        self.dir.mkdir(TEMPORARY)
    }

    pub(super) fn temporary(&self) -> PathBuf {
        self.path().join(TEMPORARY)
    }

    pub(super) fn listen(&self) -> io::Result<OwnedFd> {
        socket::listen(&self.dir, SOCKET)
    }

    /// What the boot hook has left: why the script could not be started. Whatever a script put there itself can only
    /// describe its own run wrongly.
    pub(super) fn report(&self) -> Option<String> {
        self.dir.read_file(REPORT, REPORT_BYTES)
    }

    /// Whether the boot hook has seen the script end by an exception.
    pub(super) fn has_raised(&self) -> bool {
        self.dir.read_file(RAISED, 0).is_some()
    }

    /// How the script has ended by its own account; it may have left none, or a false one.
    pub(super) fn told_status(&self) -> Option<ExitStatus> {
        let told: i32 = self.dir.read_file(STATUS, STATUS_BYTES)?.parse().ok()?;
        Some(match told {
            0.. => ExitStatus::Exited(told),
            _ => ExitStatus::Signaled(-told),
        })
    }

    pub(super) fn remove(self) -> io::Result<()> {
        self.dir.remove()
    }
}

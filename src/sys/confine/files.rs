//! What a sandbox may do with files, as paths; the platform's own rules are made of it.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;

/// What may be done with a path and with everything below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// Reading, listing, executing.
    Read,
    /// That, and all changes but making device files.
    Write,
    /// That, and connecting to the sockets there.
    Stage,
    /// A device for everybody: reading, writing, its controls.
    Device,
    /// The place of named semaphores and shared memory: reading, and making, writing and removing regular files.
    SharedMemory,
}

/// One path that is allowed something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PathRule {
    pub(crate) path: PathBuf,
    pub(crate) access: Access,
    /// The key of the configuration that names the path: then it has to be there. `None`: where it is not, nobody
    /// misses it.
    pub(crate) key: Option<&'static str>,
}

impl PathRule {
    pub(crate) fn new(path: impl Into<PathBuf>, access: Access) -> PathRule {
        PathRule {
            path: path.into(),
            access,
            key: None,
        }
    }

    /// Opens the path without doing anything to what is there. `None`: it is not there, and nobody has asked for it by
    /// name.
    ///
    /// # Errors
    /// With the words for the host, where a path that the configuration names cannot be opened.
    pub(super) fn open(&self) -> Result<Option<File>, String> {
        // O_PATH waits for no writer of a FIFO, wakes no device, and asks for no right to read.
        #[cfg(target_os = "linux")]
        let flags = libc::O_PATH;
        #[cfg(not(target_os = "linux"))]
        let flags = libc::O_NONBLOCK;
        let opened = OpenOptions::new()
            .read(true)
            .custom_flags(flags | libc::O_CLOEXEC)
            .open(&self.path);
        match (opened, self.key) {
            (Ok(file), _) => Ok(Some(file)),
            (Err(_), None) => Ok(None),
            (Err(error), Some(key)) => Err(format!(
                "{key}: cannot open {}: {error}",
                self.path.display()
            )),
        }
    }
}

/// What the sandbox of one run allows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Sandbox {
    pub(crate) paths: Vec<PathRule>,
    /// Whether what no rule names cannot even be read. A process may look at itself in `/proc` all the same.
    pub(crate) restrict_reading: bool,
    pub(crate) network: bool,
    /// Whether sockets that other programs have put into the file system are not to be reached.
    pub(crate) restrict_unix_sockets: bool,
}

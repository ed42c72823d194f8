//! shim
use super::child::Child;
use super::confine::Confine;
use super::leash::LeashEnd;
use std::ffi::CString;
use std::os::fd::OwnedFd;
#[derive(Debug)]
pub(crate) struct Command {
    pub program: CString,
    pub argv: Vec<CString>,
    pub envp: Vec<CString>,
    pub cwd: CString,
    pub stdout: OwnedFd,
    pub stderr: OwnedFd,
    pub leash: Option<LeashEnd>,
    pub tag: Option<u64>,
    pub limits: Vec<u8>,
    pub confine: Confine,
}
#[derive(Debug)]
pub(crate) struct SpawnError;
impl SpawnError {
    pub(crate) fn message(&self) -> String {
        todo!()
    }
}
pub(crate) fn spawn(_c: Command) -> Result<Child, SpawnError> {
    todo!()
}

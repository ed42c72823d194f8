//! shim
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExitStatus {
    Exited(i32),
    Signaled(i32),
    Unknown,
}
#[derive(Debug)]
pub(crate) struct Child;
impl Child {
    pub(crate) fn pid(&self) -> i32 {
        todo!()
    }
    pub(crate) fn exit_fd(&self) -> i32 {
        todo!()
    }
    pub(crate) fn has_exited(&self) -> bool {
        todo!()
    }
    pub(crate) fn terminate(&self) {}
    pub(crate) fn kill(&self) {}
    pub(crate) fn reap(self) -> ExitStatus {
        todo!()
    }
}

//! shim
use std::time::Instant;
/// Marks every process of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tag(u64);
impl Tag {
    pub(crate) fn new(engine: u64, run: u64) -> Tag {
        Tag((1 << 61) | ((engine & 0xffff_ffff) << 28) | (run & 0x0fff_ffff))
    }
    pub(crate) fn value(self) -> u64 {
        self.0
    }
}
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Baseline;
impl Baseline {
    pub(crate) fn take() -> Baseline {
        Baseline
    }
}
#[derive(Debug)]
pub(crate) struct Target<'a> {
    pub(crate) leader: i32,
    pub(crate) tag: Option<Tag>,
    pub(crate) marker: Option<&'a [u8]>,
    pub(crate) baseline: Baseline,
    pub(crate) leader_is_unreaped: bool,
}
#[derive(Debug)]
pub(crate) struct Sweep {
    pub(crate) killed: u32,
    pub(crate) survivors: Option<u32>,
}
pub(crate) fn sweep(_t: &Target, _d: Option<Instant>) -> Sweep {
    Sweep {
        killed: 0,
        survivors: Some(0),
    }
}
pub(crate) fn engine_tag() -> u64 {
    0
}

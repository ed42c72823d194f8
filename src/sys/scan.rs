//! shim
use std::time::Instant;
#[derive(Debug, Clone, Copy)]
pub(crate) struct Counter;
impl Counter {
    pub(crate) fn now() -> Counter {
        Counter
    }
}
#[derive(Debug)]
pub(crate) struct Target {
    pub leader: i32,
    pub tag: Option<u64>,
    pub marker: Option<String>,
    pub before: Counter,
}
#[derive(Debug)]
pub(crate) struct Sweep {
    pub killed: u32,
    pub survivors: Option<u32>,
}
pub(crate) fn sweep(_t: &Target, _d: Option<Instant>) -> Sweep {
    todo!()
}
pub(crate) fn engine_tag() -> u64 {
    0
}
pub(crate) fn run_tag(_e: u64, _r: u64) -> Option<u64> {
    None
}

//! shim
#[derive(Debug, Default)]
pub(crate) struct Confine;
impl Confine {
    pub(crate) fn none() -> Self {
        Confine
    }
    pub(crate) fn guard() -> Self {
        Confine
    }
    pub(crate) fn applied(&self) -> Vec<String> {
        vec![]
    }
    pub(crate) fn missing(&self) -> Vec<String> {
        vec![]
    }
}

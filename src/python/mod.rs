//! Everything about Python: interpreters, the child's environment, and the code that runs in it.

pub(crate) mod stubs;

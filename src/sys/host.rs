//! What the engine must know about the process that it lives in.

/// This process's id. A handle remembers it and compares, since after a `fork` in the host the child holds copies of
/// handles whose threads and locks stayed in the parent.
pub(crate) fn pid() -> i32 {
    // A pid fits in an i32 on every Unix (`pid_t`).
    std::process::id() as i32
}

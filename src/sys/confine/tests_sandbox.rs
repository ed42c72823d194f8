//! From inside a sandboxed child.

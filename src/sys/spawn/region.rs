//! The memory that a launch needs besides the host's own: a stack for the child and a page that both sides see.

use std::ffi::c_void;
use std::io;
use std::ptr;

use super::launch::Shared;

/// Enough for the child's few frames in a debug build, with a buffer for directory entries.
const STACK: usize = 128 * 1024;

/// `[guard page | stack, growing down | shared page]`, unmapped when dropped.
///
/// The mapping is shared so that the last page also works between a parent and a forked child.
pub(super) struct Region {
    base: *mut c_void,
    page: usize,
}

impl Region {
    pub(super) fn new() -> io::Result<Region> {
        // SAFETY: a number by its name.
        let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096);
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_SHARED | libc::MAP_ANON;
        // SAFETY: a fresh mapping at an address of the kernel's choice disturbs nothing.
        let base = unsafe { libc::mmap(ptr::null_mut(), length(page), protection, flags, -1, 0) };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let region = Region { base, page };
        // SAFETY: the first page of our own mapping.
        if unsafe { libc::mprotect(base, page, libc::PROT_NONE) } == -1 {
            return Err(io::Error::last_os_error());
        }
        // A fresh mapping is all zero, which is not "has not been tried" for every field.
        // SAFETY: the last page is ours, page-aligned, writable and larger than `Shared`.
        unsafe { region.shared_pointer().write(Shared::new()) };
        Ok(region)
    }

    /// Where the child's stack begins; a page border, so aligned for every architecture.
    #[cfg_attr(any(not(target_os = "linux"), ptc_portable), allow(dead_code))]
    pub(super) fn stack_top(&self) -> *mut c_void {
        self.shared_pointer().cast()
    }

    pub(super) fn shared(&self) -> &Shared {
        // SAFETY: initialised in `new`, mapped as long as `self`, and all its fields are atomics.
        unsafe { &*self.shared_pointer() }
    }

    fn shared_pointer(&self) -> *mut Shared {
        // SAFETY: within the mapping: guard page and stack come before it.
        unsafe { self.base.byte_add(self.page + STACK).cast() }
    }
}

fn length(page: usize) -> usize {
    page + STACK + page.max(std::mem::size_of::<Shared>())
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: our own mapping, and whoever ran on the stack has become another program or is gone: the launch has
        // waited for that.
        unsafe { libc::munmap(self.base, length(self.page)) };
    }
}

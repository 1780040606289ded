//! An eventfd.
//!
//! Soundness: `eventfd` takes no pointers, and a non-negative result is a descriptor that nobody
//! else owns.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// A descriptor that becomes readable when rung. It is watched by edges, so nobody reads it.
#[derive(Debug)]
pub(crate) struct EventFd(File);

impl EventFd {
    pub(crate) fn new() -> io::Result<EventFd> {
        // SAFETY: no pointers; see above.
        let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: just created, owned by nobody else.
        Ok(EventFd(unsafe { OwnedFd::from_raw_fd(fd) }.into()))
    }

    /// Never blocks. The counter would be full after 2^64 rings.
    pub(crate) fn ring(&self) {
        let _ = (&self.0).write_all(&1u64.to_ne_bytes());
    }

    pub(crate) fn raw(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

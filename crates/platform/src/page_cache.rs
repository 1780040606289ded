//! Hints to Linux' page cache.
//!
//! A log is written once and hardly ever read, so its pages only push others out; and pages that
//! never come back must be found anew for every write, which costs more than the copying (in a
//! virtual machine several times as much).
//!
//! # Soundness
//! The two system calls take a descriptor, which the borrowed file keeps open, and numbers; they
//! touch no memory of this process.

use std::fs::File;
use std::os::fd::AsRawFd;

/// Begins writing the range to the disk, without waiting for it.
pub(crate) fn start_writing(file: &File, offset: u64, length: u64) {
    #[cfg(target_os = "linux")]
    // SAFETY: see the head of the file. A failure is no harm: it is a hint.
    unsafe {
        libc::sync_file_range(
            file.as_raw_fd(),
            offset as i64,
            length as i64,
            libc::SYNC_FILE_RANGE_WRITE,
        );
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (file, offset, length);
}

/// Lets go of the range's pages that are on the disk already.
pub(crate) fn drop_range(file: &File, offset: u64, length: u64) {
    #[cfg(target_os = "linux")]
    // SAFETY: as above.
    unsafe {
        libc::posix_fadvise(
            file.as_raw_fd(),
            offset as i64,
            length as i64,
            libc::POSIX_FADV_DONTNEED,
        );
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (file, offset, length);
}

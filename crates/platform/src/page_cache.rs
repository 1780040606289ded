//! Hints to Linux' page cache.
//!
//! A log is written once and rarely read, so its pages only displace others. But pages that are
//! never reused have to be found anew for every write, which costs more than the copying (several
//! times as much in a virtual machine).
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

/// Drops the range's pages that are on the disk already.
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

//! Prefetching without the lock, some keys ahead of the one that is executed.
//!
//! Reads a directory's pointers and a bucket's words, and asks the processor to fetch what these
//! point to. What was read may be outdated; then the fetch was useless, and the execution, under
//! the lock, is not affected.
//!
//! # Soundness
//! Roots are borrowed from their keyspace. Directories and segments are freed only through
//! `crossbeam_epoch` (`Table::retire_*`), so a pinned thread may read their atomics. Entries are
//! never dereferenced here; prefetching a stale address is harmless.

use super::bucket::BucketHint;
use super::directory::Directory;
pub(crate) use super::directory::Root;
use super::segment::{LocalHash, home_of, tag_of};
use crate::prefetch::prefetch;
use crossbeam_epoch::Guard;
use std::ptr::NonNull;

/// Where a table publishes its current directory; valid as long as the keyspace.
#[derive(Clone, Copy)]
pub(crate) struct RootPtr(NonNull<Root>);

// SAFETY: a root is one atomic pointer.
unsafe impl Send for RootPtr {}
// SAFETY: as above.
unsafe impl Sync for RootPtr {}

impl RootPtr {
    /// A place for the directory of a table.
    ///
    /// # Safety
    /// It outlives the table, and every prefetcher that reads it.
    pub(crate) unsafe fn new(root: &Root) -> RootPtr {
        RootPtr(NonNull::from(root))
    }

    pub(super) fn store(self, directory: Option<Directory>) {
        // SAFETY: the root outlives the table, which is who calls.
        unsafe { self.0.as_ref() }.store(directory);
    }
}

impl Root {
    /// Fetches the hash's home bucket.
    #[inline]
    pub(crate) fn prefetch_bucket(&self, local: LocalHash, _guard: &Guard) -> BucketHint {
        let Some(directory) = self.load() else { return BucketHint::NONE };
        let (segment, depth) = directory.segment_and_depth(local);
        // SAFETY: directories and segments live while pinned.
        let bucket: *const _ = unsafe { (*segment.as_ptr()).bucket(home_of(local, depth)) };
        prefetch(bucket);
        BucketHint::new(bucket, tag_of(local))
    }
}

/// Fetches the entry in a bucket's word.
#[inline]
pub(super) fn prefetch_word(word: u64) {
    prefetch(std::ptr::without_provenance::<u8>((word & ((1 << 48) - 1)) as usize));
}

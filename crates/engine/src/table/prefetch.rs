//! Prefetching without the lock, some keys ahead of the one that is executed.
//!
//! What is read here is a directory's pointers and a bucket's words, and the processor is asked to
//! fetch what these point to. What was read may be out of date; then the fetch was for nothing,
//! and the execution, under the lock, does not care.
//!
//! # Soundness
//! Roots are borrowed from their keyspace. Directories and segments are freed only through
//! `crossbeam_epoch` (`Table::retire_*`), so a pinned thread may read their atomics. Entries are
//! never dereferenced here; prefetching a stale address is harmless.

use super::directory::Directory;
pub(crate) use super::directory::Root;
use super::segment::{LocalHash, POINTER_BITS, SLOTS, home_of, tag_of};
use crossbeam_epoch::Guard;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Where a table shows its current directory; stays valid while the keyspace does.
#[derive(Clone, Copy)]
pub(crate) struct RootPtr(NonNull<Root>);

// SAFETY: a root is one atomic pointer.
unsafe impl Send for RootPtr {}
// SAFETY: as above.
unsafe impl Sync for RootPtr {}

/// A key's home bucket as of a moment ago; may be read while its reader stays pinned.
#[derive(Clone, Copy)]
pub struct BucketHint {
    bucket: *const [AtomicU64; SLOTS],
    tag: u64,
}

impl BucketHint {
    /// Of no key.
    pub(crate) const NONE: BucketHint = BucketHint { bucket: std::ptr::null(), tag: 0 };

    /// Fetches the entries in the bucket that carry the key's tag.
    ///
    /// # Safety
    /// The guard that the hint was made under is still held.
    #[inline]
    pub(crate) unsafe fn prefetch_entry(self) {
        // SAFETY: by contract; segments live while pinned.
        let Some(bucket) = (unsafe { self.bucket.as_ref() }) else { return };
        for word in bucket {
            // Only the address is left if the tags are equal. A free slot's is no address, which
            // does no harm.
            let address = word.load(Relaxed) ^ self.tag;
            if address < 1 << POINTER_BITS {
                let entry = std::ptr::without_provenance::<u8>(address as usize);
                prefetch(entry);
                // A key and a value of a hundred bytes end on the next line.
                prefetch(entry.wrapping_add(64));
            }
        }
    }
}

impl RootPtr {
    /// A place for the directory of a table.
    ///
    /// # Safety
    /// It outlives the table, and every prefetcher that asks it.
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
        BucketHint { bucket, tag: tag_of(local) }
    }
}

/// Asks for the cache line at an address, which need not be valid.
#[inline]
pub(crate) fn prefetch<T>(address: *const T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: a prefetch has no effect but on the cache, whatever the address.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(address.cast());
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = address;
}

/// Fetches the lines of some bytes: a few from the beginning, and the last.
pub(crate) fn prefetch_bytes(bytes: &[u8]) {
    const LINE_BYTES: usize = 64;
    const LINES_MAX: usize = 8;
    let Some(last) = bytes.last() else { return };
    prefetch(last);
    bytes.chunks(LINE_BYTES).take(LINES_MAX).for_each(|line| prefetch(line.as_ptr()));
}

/// Fetches the entry in a bucket's word.
#[inline]
pub(super) fn prefetch_word(word: u64) {
    prefetch(std::ptr::without_provenance::<u8>((word & ((1 << 48) - 1)) as usize));
}

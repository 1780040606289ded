//! A bucket's words, as read without the lock by a thread that only prefetches.
//!
//! # Soundness
//! Entries are never dereferenced here; prefetching a stale address is harmless.

use crate::prefetch::prefetch;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Words in a bucket, which is a cache line.
pub(super) const SLOTS: usize = 8;
/// The part of a word that is an address; above it is the tag.
pub(super) const POINTER_BITS: u32 = 48;

/// A bucket; `segment.rs` says what its words are.
pub(super) type Bucket = [AtomicU64; SLOTS];

/// A key's home bucket as of a moment ago; may be read while its reader stays pinned.
#[derive(Clone, Copy)]
pub struct BucketHint {
    bucket: *const Bucket,
    tag: u64,
}

impl BucketHint {
    /// The hint of no key.
    pub(crate) const NONE: BucketHint = BucketHint { bucket: std::ptr::null(), tag: 0 };

    /// The hint of the key with this tag.
    pub(super) fn new(bucket: *const Bucket, tag: u64) -> BucketHint {
        BucketHint { bucket, tag }
    }

    /// Prefetches the entries in the bucket that carry the key's tag.
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

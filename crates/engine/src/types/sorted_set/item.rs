//! The content of a sorted set's tree: a score, and a pointer to the member.
//!
//! # Soundness
//! An `Item` points to an entry of the table next to the tree (`Indexed`, the only owner of both,
//! in the only file that makes and keeps items). An item is in the tree exactly while its entry is
//! in the table: the entry is added first and removed last. Entries never move, and a member's
//! bytes are never rewritten. A new score is an integer written over one, in place, or if a frozen
//! table shares the entry, a new entry: the old one is kept for longer than its item. A frozen
//! tree's items point to entries that the frozen table next to it keeps. Items are read only under
//! the borrow of the owner, so the entry outlives the read.

use crate::prefetch::prefetch;
use crate::table::entry::EntryPtr;
use std::cmp::Ordering;
use std::ptr::{self, NonNull};

const ADDRESS_BYTES: usize = 6;

/// Fourteen bytes: a seventh more items fit into a leaf than with padding.
#[derive(Clone, Copy)]
pub(super) struct Item {
    score: [u8; 8],
    /// As in the table's words, whose arena exposes the entries' addresses.
    entry: [u8; ADDRESS_BYTES],
}

impl Item {
    /// # Safety
    /// The item is dropped before the entry is freed.
    pub(super) unsafe fn new(score: f64, entry: EntryPtr) -> Item {
        let address = (entry.0.as_ptr().expose_provenance() as u64).to_le_bytes();
        let [a, b, c, d, e, f, rest @ ..] = address;
        debug_assert_eq!(rest, [0, 0], "user addresses have 47 bits");
        Item { score: score.to_le_bytes(), entry: [a, b, c, d, e, f] }
    }

    #[inline]
    pub(super) fn score(&self) -> f64 {
        f64::from_le_bytes(self.score)
    }

    #[inline]
    fn address(&self) -> usize {
        let [a, b, c, d, e, f] = self.entry;
        u64::from_le_bytes([a, b, c, d, e, f, 0, 0]) as usize
    }

    /// The member; it is only to be used as long as the owner is borrowed.
    #[inline]
    pub(super) fn member(&self) -> &[u8] {
        // SAFETY: the address of an entry, which is live: see the head of the file.
        unsafe {
            let entry = ptr::with_exposed_provenance_mut(self.address());
            EntryPtr(NonNull::new_unchecked(entry)).as_ref().key()
        }
    }

    /// How the item compares with a member and its score.
    #[inline]
    pub(super) fn against(&self, score: f64, member: &[u8]) -> Ordering {
        // No score is NaN, and the two zeros are equal.
        let own = self.score();
        if own < score {
            Ordering::Less
        } else if own > score {
            Ordering::Greater
        } else {
            self.member().cmp(member)
        }
    }

    /// Asks for the member's cache line.
    #[inline]
    pub(super) fn prefetch(&self) {
        prefetch(ptr::without_provenance::<u8>(self.address()));
    }
}

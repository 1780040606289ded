//! Remembers the addresses of long strings that were recently accessed.
//!
//! Prefetching a string's byte requires its address. Finding that requires the partition's lock and
//! two steps through memory, a quarter of the work of a SETBIT. Bitmaps keep their address for
//! long, so each thread remembers the addresses.
//!
//! A small table of hashes in which a new entry replaces the old one. An address may be outdated,
//! or another key's. That does no harm, because the address is only prefetched, never read. The
//! owner clears the table periodically, since nothing else notices that a string has moved.

use crate::prefetch::prefetch;
use ladon_model::KeyHash;

/// 32 KiB: part of a core's second-level cache.
const SLOTS: usize = 4096;
const ADDRESS_BITS: u32 = 48;

/// Addresses by hash; allocated on first use.
#[derive(Debug, Default)]
pub struct KnownStrings(Vec<u64>);

impl KnownStrings {
    /// Prefetches the line of a string's byte. Returns whether the address is known.
    #[inline]
    pub fn fetch(&self, key: KeyHash, at: usize) -> bool {
        let Some(word) = self.0.get(slot_of(key)) else { return false };
        // Equal tags cancel out and leave the address.
        let address = word ^ tag_of(key);
        let is_known = address >> ADDRESS_BITS == 0;
        if is_known {
            prefetch(std::ptr::without_provenance::<u8>(address as usize).wrapping_add(at));
        }
        is_known
    }

    /// Remembers the key's string at this address.
    pub(crate) fn learn(&mut self, key: KeyHash, string: &[u8]) {
        if self.0.is_empty() {
            // No address: every tag differs from that of the slot's keys, except for one in 65,536.
            self.0 = vec![u64::MAX; SLOTS];
        }
        let address = string.as_ptr().addr() as u64;
        self.0[slot_of(key)] = tag_of(key) | address & ((1 << ADDRESS_BITS) - 1);
    }

    /// Clears the table and frees its memory.
    pub fn forget(&mut self) {
        self.0 = Vec::new();
    }
}

/// Bits that do not choose the partition, so that a partition's keys spread over the slots.
#[inline]
fn slot_of(key: KeyHash) -> usize {
    (key.0 >> 16) as usize % SLOTS
}

#[inline]
fn tag_of(key: KeyHash) -> u64 {
    key.0 << ADDRESS_BITS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_learnt_is_known_until_it_is_forgotten_or_overwritten() {
        let mut known = KnownStrings::default();
        let (key, string) = (KeyHash(0x1234_5678_9abc_def0), [0u8; 100]);
        assert!(!known.fetch(key, 7));
        known.learn(key, &string);
        assert!(known.fetch(key, 7));
        assert_eq!(known.0[slot_of(key)] & ((1 << 48) - 1), string.as_ptr().addr() as u64);
        let neighbour = KeyHash(key.0 ^ 1);
        assert!(!known.fetch(neighbour, 7), "the same slot, another tag");
        known.learn(neighbour, &string);
        assert!(known.fetch(neighbour, 7) && !known.fetch(key, 7));
        known.forget();
        assert!(!known.fetch(neighbour, 7));
        assert_eq!(known.0.capacity(), 0);
    }
}

//! Where long strings lay when they were last looked at.
//!
//! To fetch a string's byte ahead of its command takes the string's address, and to find that takes the
//! partition's lock and two steps through memory: as much work as a quarter of a SETBIT. Bitmaps stay
//! where they are for long, so a thread remembers their addresses.
//!
//! A small table of hashes where the newer takes the older's place. An address may be out of date, or
//! another key's: it is only ever fetched from, never read, so that this does no harm. Its owner forgets
//! all of them every so often, since nothing else would notice that a string has moved.

use crate::prefetch::prefetch;
use ladon_model::KeyHash;

/// 32 KiB: a part of a core's second cache.
const SLOTS: usize = 4096;
const ADDRESS_BITS: u32 = 48;

/// Addresses by hash; without memory until the first.
#[derive(Debug, Default)]
pub struct KnownStrings(Vec<u64>);

impl KnownStrings {
    /// Fetches the line of a string's byte; whether it is known where that is.
    #[inline]
    pub fn fetch(&self, key: KeyHash, at: usize) -> bool {
        let Some(word) = self.0.get(slot_of(key)) else { return false };
        // Only the address is left if the tags are equal.
        let address = word ^ tag_of(key);
        let is_known = address >> ADDRESS_BITS == 0;
        if is_known {
            prefetch(std::ptr::without_provenance::<u8>(address as usize).wrapping_add(at));
        }
        is_known
    }

    /// The key's string lies here.
    pub(crate) fn learn(&mut self, key: KeyHash, string: &[u8]) {
        if self.0.is_empty() {
            // No address: every tag differs from that of its slot's keys, but for one in 65,536.
            self.0 = vec![u64::MAX; SLOTS];
        }
        let address = string.as_ptr().addr() as u64;
        self.0[slot_of(key)] = tag_of(key) | address & ((1 << ADDRESS_BITS) - 1);
    }

    /// Forgets all of them, and the memory.
    pub fn forget(&mut self) {
        self.0 = Vec::new();
    }
}

/// Bits that choose no partition, so that these spread.
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

//! How often items are read, stored and deleted, by the prefix of their keys: what `stats detail` of
//! memcached's protocol shows.
//!
//! A prefix is what precedes the first `:`; keys without one are not counted. Nothing is counted
//! until somebody turns it on.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// More prefixes are counted as one.
pub const PREFIXES_MAX: usize = 4096;

/// What ends a prefix.
const DELIMITER: u8 = b':';

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// A request to read; whether the item was there.
    Get(bool),
    /// A request to store.
    Set,
    /// A request to delete.
    Delete,
}

/// The counts of a prefix.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PrefixCounts {
    /// Requests to read,
    pub gets: u64,
    /// and those that found the item.
    pub hits: u64,
    /// Requests to store.
    pub sets: u64,
    /// Requests to delete.
    pub deletes: u64,
}

impl PrefixCounts {
    fn count(&mut self, counted: Counted) {
        match counted {
            Counted::Get(is_hit) => {
                self.gets += 1;
                self.hits += u64::from(is_hit);
            }
            Counted::Set => self.sets += 1,
            Counted::Delete => self.deletes += 1,
        }
    }
}

#[derive(Debug, Default)]
struct Counts {
    known: HashMap<Box<[u8]>, PrefixCounts>,
    others: PrefixCounts,
}

/// All counts at one moment.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct AllCounts {
    /// Of each prefix, in their order.
    pub known: Vec<(Box<[u8]>, PrefixCounts)>,
    /// Of the prefixes that were too many, together.
    pub others: PrefixCounts,
}

/// The counts of all prefixes.
#[derive(Debug, Default)]
pub struct KeyPrefixes {
    is_on: AtomicBool,
    counts: Mutex<Counts>,
}

impl KeyPrefixes {
    /// Whether anything is counted.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.is_on.load(Relaxed)
    }

    /// Counts from now on, or no more. The counts stay.
    pub fn turn(&self, on: bool) {
        self.is_on.store(on, Relaxed);
    }

    /// Forgets all counts.
    pub fn reset(&self) {
        *self.counts.lock() = Counts::default();
    }

    /// Counts a request.
    #[cold]
    pub fn count(&self, key: &[u8], counted: Counted) {
        let Some(end) = key.iter().position(|&byte| byte == DELIMITER) else { return };
        let mut counts = self.counts.lock();
        let Counts { known, others } = &mut *counts;
        let is_full = known.len() == PREFIXES_MAX;
        match known.get_mut(&key[..end]) {
            Some(prefix) => prefix.count(counted),
            None if is_full => others.count(counted),
            None => known.entry(key[..end].into()).or_default().count(counted),
        }
    }

    /// All counts.
    pub fn counts(&self) -> AllCounts {
        let counts = self.counts.lock();
        let mut known: Vec<_> = counts.known.iter().map(|(key, of)| (key.clone(), *of)).collect();
        let others = counts.others;
        drop(counts);
        known.sort_unstable_by(|one, other| one.0.cmp(&other.0));
        AllCounts { known, others }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_counted_up_to_a_limit() {
        let prefixes = KeyPrefixes::default();
        prefixes.count(b"none", Counted::Set);
        prefixes.count(b"a:b:c", Counted::Get(true));
        prefixes.count(b"a:d", Counted::Get(false));
        prefixes.count(b":e", Counted::Delete);
        let a = PrefixCounts { gets: 2, hits: 1, ..PrefixCounts::default() };
        let nameless = PrefixCounts { deletes: 1, ..PrefixCounts::default() };
        let expected = vec![(b""[..].into(), nameless), (b"a"[..].into(), a)];
        let others = PrefixCounts::default();
        assert_eq!(prefixes.counts(), AllCounts { known: expected, others });
        for number in 0..PREFIXES_MAX {
            prefixes.count(format!("{number}:x").as_bytes(), Counted::Set);
        }
        let AllCounts { known, others } = prefixes.counts();
        assert_eq!((known.len(), others.sets), (PREFIXES_MAX, 2));
        prefixes.reset();
        assert_eq!(prefixes.counts(), AllCounts::default());
    }
}

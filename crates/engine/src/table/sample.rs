//! Random entries of a table: one, uniformly chosen, or some that are stored together.
//!
//! # Soundness
//! As in `mod.rs`: segments in the directory and entries in their words are live while the table is
//! borrowed, and `&mut Table` makes access to them exclusive.

use super::entry::EntryRef;
use super::segment::{CAPACITY, Place, SLOTS, unpack};
use super::{Found, SlotMut, Table, prefetch};
use arrayvec::ArrayVec;
use ladon_record::KeyHasher;

impl Table {
    /// An entry chosen uniformly at random.
    pub(crate) fn random(&self, random: impl FnMut() -> u64) -> Option<EntryRef<'_>> {
        let found = self.random_place(random)?;
        // SAFETY: the table has not changed since.
        Some(unsafe { found.entry() })
    }

    /// Probes entries that are stored together at a random place, until `probe` took `count` of
    /// them or has seen `probes_max`; returns how many it took. They are a random sample of the
    /// keys, because their place follows from their hash. For an entry that it takes, `probe`
    /// returns the new access word.
    pub(crate) fn sample(
        &mut self,
        random: u64,
        count: usize,
        probes_max: usize,
        mut probe: impl FnMut(EntryRef<'_>) -> Option<u32>,
    ) -> usize {
        const AT_ONCE: usize = 8;
        debug_assert!(!self.shares, "access words are written in place");
        let Some(directory) = self.directory() else { return 0 };
        let (mut taken, mut left) = (0, probes_max.min(self.len));
        let mut slot = (random >> 32) as usize & (directory.len() - 1);
        let mut index = ((random as u32 as u64 * CAPACITY as u64) >> 32) as usize;
        while left > 0 && taken < count {
            // SAFETY: segments in the directory are live.
            let segment = unsafe { directory.at(slot).as_ref() };
            let mut words = [0; AT_ONCE];
            let mut found = 0;
            while index < CAPACITY && found < left.min(AT_ONCE) {
                let (bucket, slot) = (index / SLOTS, index % SLOTS);
                let word = segment.word(Place { bucket, slot });
                if word != 0 {
                    prefetch::prefetch_word(word);
                    words[found] = word;
                    found += 1;
                }
                index += 1;
            }
            left -= found;
            for &word in &words[..found] {
                if taken == count {
                    break;
                }
                let entry = unpack(word);
                // SAFETY: entries in words are live, and `&mut self` makes the access exclusive.
                if let Some(access) = probe(unsafe { entry.as_ref() }) {
                    taken += 1;
                    // SAFETY: as above.
                    unsafe { entry.set_access(access) };
                }
            }
            if index == CAPACITY {
                let depth = u32::from(segment.depth.get());
                let width = 1 << (directory.depth - depth);
                slot = (slot / width * width + width) & (directory.len() - 1);
                index = 0;
            }
        }
        taken
    }

    /// An entry chosen uniformly at random, to change it.
    pub(crate) fn random_mut(
        &mut self,
        hasher: &KeyHasher,
        random: impl FnMut() -> u64,
    ) -> Option<SlotMut<'_>> {
        let found = self.random_place(random)?;
        // SAFETY: the table has not changed since.
        let key = unsafe { found.entry() }.key();
        let local = self.local(hasher.hash(key).0);
        let Found { segment, place, .. } = found;
        let segment = self.own(segment);
        Some(SlotMut { table: self, local, segment, place })
    }

    /// Removes up to `count` uniformly chosen entries; `visit` sees each. The memory of several
    /// entries is fetched together.
    pub(crate) fn pop_random(
        &mut self,
        hasher: &KeyHasher,
        count: usize,
        mut random: impl FnMut() -> u64,
        mut visit: impl FnMut(EntryRef<'_>),
    ) {
        const AT_ONCE: usize = 16;
        let mut left = count.min(self.len);
        while left > 0 {
            // At most half of them, so that finding distinct ones does not take long.
            let wanted = left.min(AT_ONCE).min(self.len.div_ceil(2));
            let mut drawn = ArrayVec::<Found, AT_ONCE>::new();
            while drawn.len() < wanted {
                let Some(found) = self.random_place(&mut random) else { return };
                if drawn.iter().all(|other| other.entry != found.entry) {
                    crate::prefetch::prefetch(found.entry.0.as_ptr());
                    drawn.push(found);
                }
            }
            for found in &drawn {
                // SAFETY: entries do not move, and each is removed only once, below.
                let key = unsafe { found.entry() }.key();
                // The place may have changed, because removing merges segments.
                if let Some(slot) = self.get_mut(hasher.hash(key).0, key) {
                    visit(slot.get());
                    slot.remove(hasher);
                }
            }
            left -= wanted;
        }
    }

    fn random_place(&self, mut random: impl FnMut() -> u64) -> Option<Found> {
        let directory = self.directory()?;
        if self.len == 0 {
            return None;
        }
        loop {
            let draw = random();
            let slot = (draw >> 32) as usize & (directory.len() - 1);
            let pointer = directory.at(slot);
            // SAFETY: segments in the directory are live.
            let segment = unsafe { pointer.as_ref() };
            // A segment that fills several slots is only drawn through its first one, so that its
            // keys are no likelier than others.
            let first = (segment.prefix.get() as usize)
                << (directory.depth - u32::from(segment.depth.get()));
            if first != slot {
                continue;
            }
            let index = ((draw as u32 as u64 * CAPACITY as u64) >> 32) as usize;
            let place = Place { bucket: index / SLOTS, slot: index % SLOTS };
            let word = segment.word(place);
            if word != 0 {
                return Some(Found { segment: pointer, place, entry: unpack(word) });
            }
        }
    }
}

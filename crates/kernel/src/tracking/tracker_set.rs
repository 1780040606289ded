//! The trackers of one key: a sorted list while there are few, a bit for each number otherwise. A
//! thousand trackers of a key take 125 bytes.

use smallvec::SmallVec;

/// Numbers of trackers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TrackerSet {
    /// In order.
    Few(SmallVec<[u32; 4]>),
    Many(Bits),
}

/// A bit for each number up to the highest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bits {
    words: Vec<u64>,
    count: usize,
}

/// A list that is shorter than this is never replaced by bits.
const FEW_MAX: usize = 8;

impl Bits {
    pub(crate) fn has(&self, number: u32) -> bool {
        let (word, bit) = place(number);
        self.words.get(word).is_some_and(|word| word & bit != 0)
    }

    pub(crate) fn insert(&mut self, number: u32) -> bool {
        let (word, bit) = place(number);
        if self.words.len() <= word {
            self.words.resize(word + 1, 0);
        }
        let is_new = self.words[word] & bit == 0;
        self.words[word] |= bit;
        self.count += usize::from(is_new);
        is_new
    }

    /// The lowest number from `from` on.
    fn next(&self, from: u32) -> Option<u32> {
        let (first, bit) = place(from);
        let mut at = first;
        let mut word = self.words.get(first)? & !(bit - 1);
        while word == 0 {
            at += 1;
            word = *self.words.get(at)?;
        }
        Some(at as u32 * u64::BITS + word.trailing_zeros())
    }
}

fn place(number: u32) -> (usize, u64) {
    ((number / u64::BITS) as usize, 1 << (number % u64::BITS))
}

impl TrackerSet {
    /// One tracker.
    pub(crate) fn of(number: u32) -> TrackerSet {
        TrackerSet::Few(SmallVec::from_slice(&[number]))
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            TrackerSet::Few(few) => few.len(),
            TrackerSet::Many(bits) => bits.count,
        }
    }

    /// Bytes of memory that it takes outside of itself.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            TrackerSet::Few(few) if few.spilled() => few.capacity() * size_of::<u32>(),
            TrackerSet::Few(_) => 0,
            TrackerSet::Many(bits) => bits.words.capacity() * size_of::<u64>(),
        }
    }

    /// Adds a number; returns whether it is new.
    pub(crate) fn insert(&mut self, number: u32) -> bool {
        let few = match self {
            TrackerSet::Few(few) => few,
            TrackerSet::Many(bits) => return bits.insert(number),
        };
        let Err(at) = few.binary_search(&number) else { return false };
        few.insert(at, number);
        let highest = few.last().copied().unwrap_or(0) as usize;
        if few.len() > FEW_MAX && few.len() * u32::BITS as usize > highest {
            let mut bits = Bits::default();
            few.iter().for_each(|&number| {
                bits.insert(number);
            });
            bits.words.shrink_to_fit();
            *self = TrackerSet::Many(bits);
        }
        true
    }

    /// Removes all of `gone`; returns how many were there.
    pub(crate) fn remove(&mut self, gone: &Bits) -> usize {
        let before = self.len();
        match self {
            TrackerSet::Few(few) => few.retain(|number| !gone.has(*number)),
            TrackerSet::Many(bits) => {
                for (word, gone) in bits.words.iter_mut().zip(&gone.words) {
                    *word &= !gone;
                }
                bits.count = bits.words.iter().map(|word| word.count_ones() as usize).sum();
            }
        }
        before - self.len()
    }

    /// The lowest number from `from` on.
    pub(crate) fn next(&self, from: u32) -> Option<u32> {
        match self {
            TrackerSet::Few(few) => few.get(few.partition_point(|&number| number < from)).copied(),
            TrackerSet::Many(bits) => bits.next(from),
        }
    }

    /// All numbers, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> {
        let mut from = Some(0);
        std::iter::from_fn(move || {
            let number = self.next(from?)?;
            from = number.checked_add(1);
            Some(number)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn it_is_a_set() {
        let mut random = 1u64;
        let mut next = |max: u32| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (random >> 33) as u32 % max
        };
        for max in [3, 70, 500, 100_000] {
            for _ in 0..50 {
                let first = next(max);
                let (mut set, mut model) = (TrackerSet::of(first), BTreeSet::from([first]));
                for _ in 0..next(200) {
                    let number = next(max);
                    assert_eq!(set.insert(number), model.insert(number));
                    assert_eq!(set.len(), model.len());
                }
                let mut gone = Bits::default();
                (0..next(100)).for_each(|_| {
                    gone.insert(next(max));
                });
                assert!(set.iter().eq(model.iter().copied()));
                let kept: BTreeSet<u32> =
                    model.iter().copied().filter(|&number| !gone.has(number)).collect();
                assert_eq!(set.remove(&gone), model.len() - kept.len());
                assert!(set.iter().eq(kept.iter().copied()));
                assert_eq!(set.len(), kept.len());
            }
        }
    }

    #[test]
    fn a_thousand_trackers_take_little() {
        let mut set = TrackerSet::of(0);
        (0..1000).for_each(|number| {
            set.insert(number);
        });
        assert!(set.bytes() <= 256, "{}", set.bytes());
        assert_eq!(set.next(u32::MAX), None);
        let mut far = TrackerSet::of(u32::MAX);
        (0..100).for_each(|number| {
            far.insert(number * 1000);
        });
        assert!(far.bytes() <= 1024 && far.iter().last() == Some(u32::MAX), "{}", far.bytes());
    }
}

//! The partitions that a transaction holds: in index order from the beginning, and by a transaction
//! that grows, those that it adds.
//!
//! **Invariant:** a thread waits for a lock only while every lock that it holds has a lower index.
//! So no two threads wait for each other. For a lower index, a growing transaction only tries.

use crate::keyspace::Keyspace;
use crate::partition::{PARTITIONS, Partition, partition_of};
use crate::partition_lock::PartitionGuard;
use ladon_record::KeyHash;

/// Attempts at a lock below one that is held, before the transaction gives up: a few microseconds,
/// within which most holders are done.
const TRIES: usize = if cfg!(any(loom, miri)) { 1 } else { 200 };

/// Whether a transaction got the locks that it asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Grown {
    /// All of them are held.
    Held,
    /// Another thread holds one that must not be waited for. The transaction should be taken back,
    /// dropped, and run again with all its locks from the beginning.
    Refused,
    /// Another thread holds one that it has been busy with for long. The transaction should be
    /// taken back, and not run.
    Busy,
}

/// Held locks.
pub(crate) enum Locked<'a> {
    One(u16, PartitionGuard<'a>),
    /// Sorted by index.
    Many(Vec<(u16, PartitionGuard<'a>)>),
    /// By index.
    All(Vec<PartitionGuard<'a>>),
}

impl<'a> Locked<'a> {
    /// Of guards in order.
    pub(crate) fn of_many(guards: Vec<(u16, PartitionGuard<'a>)>) -> Locked<'a> {
        if guards.len() == PARTITIONS {
            return Locked::All(guards.into_iter().map(|(_, guard)| guard).collect());
        }
        Locked::Many(guards)
    }

    pub(crate) fn holds(&self, index: usize) -> bool {
        match self {
            Locked::One(held, _) => usize::from(*held) == index,
            Locked::Many(guards) => {
                guards.binary_search_by_key(&(index as u16), |(held, _)| *held).is_ok()
            }
            Locked::All(_) => true,
        }
    }

    /// Locks more partitions; `visit` sees each. If it is refused, some of them may be held.
    pub(crate) fn grow(
        &mut self,
        keyspace: &'a Keyspace,
        wanted: PartitionSet,
        is_busy: &impl Fn(usize) -> bool,
        mut visit: impl FnMut(&Partition),
    ) -> Grown {
        let mut guards = match std::mem::replace(self, Locked::Many(Vec::new())) {
            Locked::One(index, guard) => vec![(index, guard)],
            Locked::Many(guards) => guards,
            all @ Locked::All(_) => {
                *self = all;
                return Grown::Held;
            }
        };
        let held: PartitionSet = guards.iter().map(|(index, _)| usize::from(*index)).collect();
        // Above this one, waiting is in order.
        let highest = guards.last().map(|(index, _)| usize::from(*index));
        let mut grown = Grown::Held;
        for index in wanted.without(held) {
            let cell = keyspace.cell(index);
            let (guard, otherwise) = if highest.is_some_and(|highest| index < highest) {
                (try_for_a_moment(|| cell.try_lock(index)), Grown::Refused)
            } else {
                (cell.lock_unless_busy(index, is_busy), Grown::Busy)
            };
            let Some(guard) = guard else {
                grown = otherwise;
                break;
            };
            visit(&guard);
            guards.push((index as u16, guard));
        }
        guards.sort_unstable_by_key(|(index, _)| *index);
        *self = Locked::of_many(guards);
        grown
    }
}

pub(crate) fn try_for_a_moment<T>(mut attempt: impl FnMut() -> Option<T>) -> Option<T> {
    for _ in 1..TRIES {
        if let Some(result) = attempt() {
            return Some(result);
        }
        std::hint::spin_loop();
    }
    attempt()
}

/// A set of partitions, which sorts them and removes duplicates without allocating.
#[derive(Clone, Copy)]
pub(crate) struct PartitionSet([u64; PartitionSet::WORDS]);

impl PartitionSet {
    const WORD_BITS: usize = u64::BITS as usize;
    const WORDS: usize = PARTITIONS / Self::WORD_BITS;

    pub(crate) const ALL: PartitionSet = PartitionSet([u64::MAX; Self::WORDS]);

    /// The partitions of these keys.
    #[inline]
    pub(crate) fn of(hashes: &[KeyHash]) -> PartitionSet {
        hashes.iter().map(|&hash| partition_of(hash)).collect()
    }

    fn without(mut self, other: PartitionSet) -> PartitionSet {
        for (word, other) in self.0.iter_mut().zip(other.0) {
            *word &= !other;
        }
        self
    }
}

impl FromIterator<usize> for PartitionSet {
    #[inline]
    fn from_iter<I: IntoIterator<Item = usize>>(indexes: I) -> PartitionSet {
        let mut words = [0u64; Self::WORDS];
        for index in indexes {
            words[index / Self::WORD_BITS] |= 1 << (index % Self::WORD_BITS);
        }
        PartitionSet(words)
    }
}

impl IntoIterator for PartitionSet {
    type Item = usize;
    type IntoIter = Indexes;

    #[inline]
    fn into_iter(self) -> Indexes {
        Indexes { words: self.0, at: 0 }
    }
}

/// The partitions of a set in order.
pub(crate) struct Indexes {
    words: [u64; PartitionSet::WORDS],
    /// The word that is being read.
    at: usize,
}

impl Iterator for Indexes {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        while self.at < PartitionSet::WORDS {
            let word = &mut self.words[self.at];
            if *word != 0 {
                let bit = word.trailing_zeros() as usize;
                *word &= *word - 1;
                return Some(self.at * PartitionSet::WORD_BITS + bit);
            }
            self.at += 1;
        }
        None
    }
}

impl Locked<'_> {
    /// The partition of a key.
    ///
    /// # Panics
    /// If it was not locked: the caller's key extraction is wrong, and continuing would race.
    #[inline]
    pub(crate) fn partition(&mut self, hash: KeyHash) -> &mut Partition {
        self.at(partition_of(hash))
    }

    #[inline(always)]
    pub(crate) fn at(&mut self, index: usize) -> &mut Partition {
        match self {
            Locked::One(held, guard) => {
                if usize::from(*held) != index {
                    not_locked(index);
                }
                guard
            }
            Locked::Many(guards) => one_of(guards, index),
            Locked::All(guards) => &mut guards[index],
        }
    }

    /// As `at`, for reading only.
    pub(crate) fn look_at(&self, index: usize) -> &Partition {
        match self {
            Locked::One(held, guard) => {
                assert_eq!(usize::from(*held), index, "partition {index} is not locked");
                guard
            }
            Locked::Many(guards) => {
                let at = guards.binary_search_by_key(&(index as u16), |(held, _)| *held);
                &guards[at.unwrap_or_else(|_| panic!("partition {index} is not locked"))].1
            }
            Locked::All(guards) => &guards[index],
        }
    }

    /// The numbers of the held partitions, in order.
    pub(crate) fn indexes(&self) -> Vec<usize> {
        match self {
            Locked::One(index, _) => vec![usize::from(*index)],
            Locked::Many(guards) => guards.iter().map(|(index, _)| usize::from(*index)).collect(),
            Locked::All(guards) => (0..guards.len()).collect(),
        }
    }
}

#[inline(never)]
fn one_of<'a>(guards: &'a mut [(u16, PartitionGuard<'_>)], index: usize) -> &'a mut Partition {
    match guards.binary_search_by_key(&(index as u16), |(held, _)| *held) {
        Ok(at) => &mut guards[at].1,
        Err(_) => not_locked(index),
    }
}

#[cold]
fn not_locked(index: usize) -> ! {
    panic!("partition {index} is not locked")
}

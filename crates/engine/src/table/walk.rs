//! Walks over a table in hash order: a part at a time, or entry by entry.
//!
//! A walk borrows its table, so what the directory holds is live and stays as it is.

use super::Table;
use super::directory::Directory;
use super::entry::EntryRef;
use super::prefetch;
use super::segment::{self, CAPACITY, LocalHash, Segment, bucket_start, home_of, unpack};
use ladon_record::KeyHasher;
use std::marker::PhantomData;
use std::ptr::NonNull;

/// Number of words ahead of a walk for which entries are prefetched: about as many as memory serves
/// at once.
const AHEAD_WORDS: usize = 16;

impl Table {
    /// Visits entries in hash order from `from` on, bucket by bucket, until `budget` buckets were
    /// read. Returns where to continue, or `None` at the end.
    pub(crate) fn scan(
        &self,
        hasher: &KeyHasher,
        from: LocalHash,
        mut budget: usize,
        mut visit: impl FnMut(EntryRef<'_>),
    ) -> Option<LocalHash> {
        let directory = self.directory()?;
        let mut at = from;
        loop {
            // SAFETY: segments in the directory and entries in their words are live.
            let segment = unsafe { directory.segment(at).as_ref() };
            let (depth, prefix) = (u32::from(segment.depth.get()), segment.prefix.get());
            let mut bucket = home_of(at, depth);
            let next = loop {
                for word in segment.words_near(bucket) {
                    // SAFETY: as above.
                    let entry = unsafe { unpack(word).as_ref() };
                    let local = self.local(hasher.hash(entry.key()).0);
                    if local >= from && home_of(local, depth) == bucket {
                        visit(entry);
                    }
                }
                budget = budget.saturating_sub(1);
                bucket += 1;
                if budget == 0 || bucket == segment::BUCKETS {
                    break bucket_start(prefix, depth, bucket);
                }
            };
            at = next?;
            if budget == 0 {
                return Some(at);
            }
        }
    }

    /// Visits the entries from `from` on in the segment that it lies in; the segment's last hash.
    pub(crate) fn segment_from(
        &self,
        hasher: &KeyHasher,
        from: LocalHash,
        mut visit: impl FnMut(EntryRef<'_>),
    ) -> LocalHash {
        let Some(directory) = self.directory() else { return u64::MAX };
        // SAFETY: segments in the directory and entries in their words are live.
        let segment = unsafe { directory.segment(from).as_ref() };
        let (depth, prefix) = (u32::from(segment.depth.get()), segment.prefix.get());
        let (first, last) = match depth {
            0 => (0, u64::MAX),
            _ => (prefix << (64 - depth), prefix << (64 - depth) | u64::MAX >> depth),
        };
        for (_, word) in segment.words() {
            prefetch::prefetch_word(word);
        }
        for (_, word) in segment.words() {
            // SAFETY: as above.
            let entry = unsafe { unpack(word).as_ref() };
            // Two segments may have been merged since the caller passed the first.
            if first == from || self.local(hasher.hash(entry.key()).0) >= from {
                visit(entry);
            }
        }
        last
    }

    /// Every entry, in hash order.
    pub(crate) fn for_each(&self, mut visit: impl FnMut(EntryRef<'_>)) {
        self.entries().for_each(&mut visit);
    }

    /// Every entry, in hash order, for callers that may stop early.
    pub(crate) fn entries(&self) -> Entries<'_> {
        self.entries_from(Position::default())
    }

    /// As `entries`, from the position of another walk. The table must not have changed since; a
    /// frozen one never does.
    pub(crate) fn entries_from(&self, from: Position) -> Entries<'_> {
        let mut entries = Entries {
            directory: self.directory(),
            table: PhantomData,
            at: 0,
            slot: from.slot,
            segment: None,
            index: 0,
        };
        if entries.enter() {
            entries.index = from.index;
        }
        entries
    }
}

/// The position of a walk over a frozen value's elements; the default is the beginning.
#[derive(Clone, Copy, Debug, Default)]
pub struct Position {
    /// The directory's slot of the segment.
    slot: usize,
    /// The segment's word to look at next.
    index: usize,
}

/// Walks over a table's entries.
pub(crate) struct Entries<'a> {
    directory: Option<Directory>,
    table: PhantomData<&'a Table>,
    segment: Option<NonNull<Segment>>,
    /// The directory's slot of the segment.
    at: usize,
    /// The segment's word to look at next.
    index: usize,
    /// The directory's slot to look at after that.
    slot: usize,
}

impl Entries<'_> {
    /// The present position, for [`Table::entries_from`].
    pub(crate) fn position(&self) -> Position {
        match self.segment {
            Some(_) => Position { slot: self.at, index: self.index },
            None => Position { slot: self.slot, index: 0 },
        }
    }

    /// Continues with the segment at `slot`; false at the end.
    fn enter(&mut self) -> bool {
        let Some(directory) = self.directory.filter(|directory| self.slot < directory.len()) else {
            self.segment = None;
            return false;
        };
        let segment = directory.at(self.slot);
        // SAFETY: the table is borrowed, so what its directory holds is live.
        let (depth, words) = unsafe { (segment.as_ref().depth.get(), segment.as_ref()) };
        for index in 0..AHEAD_WORDS {
            prefetch::prefetch_word(words.word_at(index));
        }
        (self.segment, self.at, self.index) = (Some(segment), self.slot, 0);
        self.slot += 1 << (directory.depth - u32::from(depth));
        true
    }
}

impl<'a> Iterator for Entries<'a> {
    type Item = EntryRef<'a>;

    #[inline]
    fn next(&mut self) -> Option<EntryRef<'a>> {
        loop {
            // SAFETY: the table is borrowed, so what its directory holds is live, and so are the
            // entries in its words.
            let segment = unsafe { self.segment?.as_ref() };
            while self.index < CAPACITY {
                if self.index + AHEAD_WORDS < CAPACITY {
                    prefetch::prefetch_word(segment.word_at(self.index + AHEAD_WORDS));
                }
                let word = segment.word_at(self.index);
                self.index += 1;
                if word != 0 {
                    // SAFETY: as above.
                    return Some(unsafe { unpack(word).as_ref() });
                }
            }
            if !self.enter() {
                return None;
            }
        }
    }
}

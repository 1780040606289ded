//! Growing and shrinking, one segment at a time: a full segment is split into two, and two nearly
//! empty neighbours are merged.
//!
//! A removed segment is retired, not freed, because prefetchers may be reading it (see `mod.rs`),
//! or kept for frozen tables (see `sharing.rs`).

use super::Table;
use super::directory::Directory;
use super::prefetch;
use super::segment::{CAPACITY, LocalHash, Segment, unpack};
use ladon_record::KeyHasher;
use std::ptr::NonNull;

/// Two neighbours with fewer keys than this together are merged.
const MERGE_COUNT_MAX: usize = CAPACITY / 4;
/// A hash has no more bits to split by; only an attack on the seed could reach this.
const DEPTH_MAX: u32 = 40;

impl Table {
    pub(super) fn insert_word(&mut self, hasher: &KeyHasher, local: LocalHash, word: u64) {
        loop {
            let Some(directory) = self.directory() else {
                let first = Segment::new(0, 0, self.generation());
                self.set_directory(Some(Directory::new(0, [first].into_iter())));
                self.segments = 1;
                continue;
            };
            let segment = self.own(directory.segment(local));
            // SAFETY: live, as it is in the directory.
            if unsafe { segment.as_ref() }.insert(local, word).is_some() {
                return;
            }
            self.split(hasher, segment);
        }
    }

    fn split(&mut self, hasher: &KeyHasher, segment: NonNull<Segment>) {
        // SAFETY: live, as it is in the directory.
        let old = unsafe { segment.as_ref() };
        let (depth, prefix) = (u32::from(old.depth.get()), old.prefix.get());
        assert!(depth < DEPTH_MAX, "over {CAPACITY} keys share {depth} bits of a seeded hash");
        if self.directory().is_some_and(|directory| directory.depth == depth) {
            self.resize_directory(depth + 1);
        }
        // The old segment stays as the lower half. The epochs would free it late and leave holes in
        // memory. No frozen table has it, see `own`.
        let high = Segment::new(depth as u8 + 1, prefix << 1 | 1, self.generation());
        let words = Words::of(&[old]);
        old.restart(depth as u8 + 1, prefix << 1);
        let directory = self.directory().expect("a table with a segment has a directory");
        let width = 1usize << (directory.depth - depth);
        let first = (prefix as usize) << (directory.depth - depth);
        for slot in 0..width {
            directory.set(first + slot, if slot < width / 2 { segment } else { high });
        }
        self.segments += 1;
        self.put_back(hasher, &words);
    }

    fn put_back(&mut self, hasher: &KeyHasher, words: &Words) {
        for &word in words.as_slice() {
            // SAFETY: the entry is live and ours.
            let hash = hasher.hash(unsafe { unpack(word).as_ref() }.key());
            self.insert_word(hasher, self.local(hash.0), word);
        }
    }

    fn resize_directory(&mut self, depth: u32) {
        let old = self.directory().expect("only a table with a directory resizes it");
        let new = Directory::new(
            depth,
            (0..1usize << depth).map(|slot| {
                if depth > old.depth {
                    old.at(slot >> (depth - old.depth))
                } else {
                    old.at(slot << (old.depth - depth))
                }
            }),
        );
        self.set_directory(Some(new));
        Self::retire_directory(old);
    }

    pub(super) fn try_merge(&mut self, hasher: &KeyHasher, segment: NonNull<Segment>) {
        // SAFETY: live, as it is in the directory.
        let this = unsafe { segment.as_ref() };
        let (depth, prefix) = (u32::from(this.depth.get()), this.prefix.get());
        let Some(directory) = self.directory() else { return };
        if depth == 0 {
            return;
        }
        let shift = directory.depth - depth;
        let buddy = directory.at(((prefix ^ 1) as usize) << shift);
        // SAFETY: as above.
        let other = unsafe { buddy.as_ref() };
        if u32::from(other.depth.get()) != depth || this.count() + other.count() > MERGE_COUNT_MAX {
            return;
        }
        let words = Words::of(&[this, other]);
        this.restart(depth as u8 - 1, prefix >> 1);
        let first = ((prefix & !1) as usize) << shift;
        for slot in first..first + (2 << shift) {
            directory.set(slot, segment);
        }
        self.segments -= 1;
        self.put_back(hasher, &words);
        self.give_up_segment(buddy);
        self.shrink_directory();
    }

    fn shrink_directory(&mut self) {
        let Some(directory) = self.directory() else { return };
        // SAFETY: segments in the directory are live.
        let deepest = directory.segments().map(|s| unsafe { s.as_ref().depth.get() }).max();
        let deepest = u32::from(deepest.unwrap_or(0));
        // One spare level, so that a table at the edge does not grow and shrink repeatedly.
        if deepest + 1 < directory.depth {
            self.resize_directory(deepest + 1);
        }
    }

    pub(super) fn retire_segment(segment: NonNull<Segment>) {
        let segment = SendPtr(segment);
        // SAFETY: no longer in any directory; prefetchers that still see it are pinned.
        unsafe {
            crossbeam_epoch::pin().defer_unchecked(move || Segment::free({ segment }.0));
        }
    }

    pub(super) fn retire_directory(directory: Directory) {
        let directory = SendDirectory(directory);
        // SAFETY: no longer the root's; prefetchers that still see it are pinned.
        unsafe {
            crossbeam_epoch::pin().defer_unchecked(move || { directory }.0.free());
        }
    }
}

/// The words of segments that are about to be refilled.
struct Words {
    words: [u64; CAPACITY],
    count: usize,
}

impl Words {
    /// From segments that together have no more keys than one may have. Prefetches their entries,
    /// whose keys are about to be hashed.
    fn of(segments: &[&Segment]) -> Words {
        let mut words = Words { words: [0; CAPACITY], count: 0 };
        for (_, word) in segments.iter().flat_map(|segment| segment.words()) {
            words.words[words.count] = word;
            words.count += 1;
            prefetch::prefetch_word(word);
        }
        words
    }

    fn as_slice(&self) -> &[u64] {
        &self.words[..self.count]
    }
}

/// A directory owned by a deferred destructor.
struct SendDirectory(Directory);

// SAFETY: as for `SendPtr`.
unsafe impl Send for SendDirectory {}

/// A pointer owned by a deferred destructor.
struct SendPtr<T>(NonNull<T>);

// SAFETY: the thread that runs the destructor frees what it points to, and no thread uses it.
unsafe impl<T> Send for SendPtr<T> {}

//! The hash table: extendible hashing in one-page segments ordered by the hash's top bits.
//!
//! ```text
//! root -> directory [00][01][10][11] -> segment (63 buckets x 8 words) -> entry
//! ```
//!
//! It grows one segment at a time: a full segment becomes two, and nothing else moves, so there
//! is no rehash pause. Since everything is in hash order, a scan's cursor is a position in that
//! order, and it means the same after any split or merge.
//!
//! # Soundness
//! A `Table` owns its entries, segments and directory; `&Table` reads and `&mut Table` writes
//! them, except for the lock-free prefetch passes, which read atomics only and hold an epoch
//! guard (`prefetch.rs`). What these may still be reading is therefore retired, not freed.

pub(crate) mod arena;
pub(crate) mod bucket;
pub(crate) mod compact;
mod cursor;
mod directory;
pub(crate) mod entry;
mod entry_ptr;
pub(crate) mod prefetch;
mod resize;
mod sample;
mod segment;
mod sharing;
mod slot;
mod walk;

use arena::Arena;
use bucket::BucketHint;
use crossbeam_epoch::Guard;
use directory::{Directory, Root};
use entry::{EntryPtr, EntryRef, ValueInit};
use ladon_record::KeyHasher;
use prefetch::RootPtr;
pub(crate) use segment::LocalHash;
use segment::{Place, Segment, pack, unpack};
use sharing::Sharing;
pub(crate) use slot::{Found, SlotMut};
use std::mem::offset_of;
use std::ptr::NonNull;
pub(crate) use walk::Entries;
pub use walk::Position;

/// A set of entries with distinct keys.
#[repr(C)]
pub(crate) struct Table {
    root: Root,
    /// Where prefetchers find the directory, if anywhere; same content as `root`.
    shown: Option<RootPtr>,
    len: usize,
    segments: u32,
    /// Number of bits of a key's hash that the owner consumed before the table's.
    shift: u16,
    /// Whether there is any `sharing`.
    shares: bool,
    /// Last, because most of it is rarely accessed.
    arena: Arena,
    /// `None` until it is frozen for the first time.
    sharing: Option<Box<Sharing>>,
}

// SAFETY: the table owns everything that it points to; see the head of the file.
unsafe impl Send for Table {}

impl Table {
    /// Bytes at its start that a command needs on its way to the bucket and for its accounts.
    pub(crate) const HOT_BYTES: usize = offset_of!(Table, arena) + Arena::HOT_BYTES;

    /// An empty table whose owner has consumed the top `shift` bits of every hash.
    pub(crate) fn new(shift: u32) -> Table {
        Table {
            root: Root::default(),
            shown: None,
            len: 0,
            segments: 0,
            shift: shift as u16,
            shares: false,
            arena: Arena::new(),
            sharing: None,
        }
    }

    /// As `new`, and prefetchers also find its directory at `shown`, which has none so far.
    pub(crate) fn shown_at(shift: u32, shown: RootPtr) -> Table {
        let mut table = Table::new(shift);
        table.shown = Some(shown);
        table
    }

    fn set_directory(&self, directory: Option<Directory>) {
        self.root.store(directory);
        if let Some(shown) = self.shown {
            shown.store(directory);
        }
    }

    /// Number of entries.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Bytes of entries and segments, without what boxed objects own.
    pub(crate) fn bytes(&self) -> usize {
        self.arena.bytes() + self.segments as usize * size_of::<Segment>()
    }

    /// That its counts are what a walk over its segments finds, and its entries' bytes these.
    #[cfg(debug_assertions)]
    pub(crate) fn check(&self, entry_bytes: usize) {
        if self.sharing.is_none() {
            assert_eq!(self.arena.bytes(), entry_bytes, "bytes of entries, counted and found");
        }
        let Some(directory) = self.directory() else {
            assert_eq!((self.len, self.segments), (0, 0), "keys and segments without a directory");
            return;
        };
        let (mut keys, mut segments, mut slots) = (0, 0, 0);
        for segment in directory.segments() {
            // SAFETY: segments in the directory are live.
            let segment = unsafe { segment.as_ref() };
            let (depth, prefix) = (u32::from(segment.depth.get()), segment.prefix.get());
            assert!(depth <= directory.depth, "a segment of more than one directory slot's hashes");
            let width = 1 << (directory.depth - depth);
            assert_eq!(prefix as usize * width, slots, "a segment is where its prefix says");
            assert_eq!(segment.words().count(), segment.count(), "words of a segment");
            keys += segment.count();
            segments += 1;
            slots += width;
        }
        assert_eq!(slots, directory.len(), "slots of the directory");
        assert_eq!((keys, segments), (self.len, self.segments), "keys and segments");
    }

    /// Segments in use.
    #[cfg(test)]
    pub(crate) fn segments(&self) -> usize {
        self.segments as usize
    }

    /// The part of the hash of `key` that this table uses.
    #[inline]
    pub(crate) fn local(&self, hash: u64) -> LocalHash {
        hash << u32::from(self.shift)
    }

    #[inline]
    fn directory(&self) -> Option<Directory> {
        self.root.load()
    }

    #[inline]
    fn place(&self, local: LocalHash, key: &[u8]) -> Option<(NonNull<Segment>, Place)> {
        let (segment, depth) = self.directory()?.segment_and_depth(local);
        // SAFETY: segments in the directory are live, and so are the entries in their words.
        let place =
            unsafe { segment.as_ref().find(local, depth, |entry| entry.as_ref().key() == key)? };
        Some((segment, place))
    }

    /// The entry of `key`.
    #[inline]
    pub(crate) fn get(&self, local: LocalHash, key: &[u8]) -> Option<EntryRef<'_>> {
        let (segment, place) = self.place(local, key)?;
        // SAFETY: a live entry, unchanged while we are borrowed.
        unsafe { Some(unpack(segment.as_ref().word(place)).as_ref()) }
    }

    /// The first entry whose word carries the hash's tag: most likely that of the key with this
    /// hash.
    #[inline]
    pub(crate) fn likely(&self, local: LocalHash) -> Option<EntryRef<'_>> {
        let (segment, depth) = self.directory()?.segment_and_depth(local);
        // SAFETY: segments in the directory are live, and so are the entries in their words, which
        // stay unchanged while we are borrowed.
        unsafe {
            let segment = segment.as_ref();
            let place = segment.find(local, depth, |_| true)?;
            Some(unpack(segment.word(place)).as_ref())
        }
    }

    /// Prefetches the bucket of this hash; the hint is valid while `guard` is held.
    pub(crate) fn prefetch_bucket(&self, local: LocalHash, guard: &Guard) -> BucketHint {
        self.root.prefetch_bucket(local, guard)
    }

    /// The place of `key`, valid until the table changes.
    #[inline]
    pub(crate) fn find(&self, local: LocalHash, key: &[u8]) -> Option<Found> {
        let (segment, place) = self.place(local, key)?;
        // SAFETY: the segment is live, and there is a key.
        let entry = unsafe { unpack(segment.as_ref().word(place)) };
        Some(Found { segment, place, entry })
    }

    /// The entry at a place, to change it.
    ///
    /// # Safety
    /// The table has not changed since `find` returned the place for a key with this hash.
    #[inline]
    pub(crate) unsafe fn slot_at(&mut self, local: LocalHash, found: Found) -> SlotMut<'_> {
        let segment = self.own(found.segment);
        SlotMut { table: self, local, segment, place: found.place }
    }

    /// The first key with this hash whose entry satisfies `is`.
    pub(crate) fn key_where(
        &self,
        hasher: &KeyHasher,
        local: LocalHash,
        is: impl Fn(EntryRef<'_>) -> bool,
    ) -> Option<Vec<u8>> {
        let (segment, depth) = self.directory()?.segment_and_depth(local);
        // SAFETY: segments in the directory and entries in their words are live.
        unsafe {
            let segment = segment.as_ref();
            let place = segment.find(local, depth, |entry| {
                let entry = entry.as_ref();
                is(entry) && self.local(hasher.hash(entry.key()).0) == local
            })?;
            Some(unpack(segment.word(place)).as_ref().key().to_vec())
        }
    }

    /// The entry of `key`, to change it.
    #[inline]
    pub(crate) fn get_mut(&mut self, local: LocalHash, key: &[u8]) -> Option<SlotMut<'_>> {
        let (segment, place) = self.place(local, key)?;
        let segment = self.own(segment);
        Some(SlotMut { table: self, local, segment, place })
    }

    /// Adds an entry, whose key must not exist. The entry's address stays the same until it is
    /// removed, or gets another key length, expiry or kind of value.
    pub(crate) fn insert(
        &mut self,
        hasher: &KeyHasher,
        local: LocalHash,
        key: &[u8],
        expire_at: u64,
        value: ValueInit<'_>,
        access: u32,
    ) -> EntryPtr {
        debug_assert!(self.get(local, key).is_none());
        let entry = EntryPtr::build(&mut self.arena, key, expire_at, value, access);
        self.insert_word(hasher, local, pack(local, entry));
        self.len += 1;
        entry
    }

    /// Takes everything out, leaving an empty table in the same place.
    pub(crate) fn take(&mut self) -> Table {
        let mut taken = Table::new(u32::from(self.shift));
        taken.exchange(self);
        taken
    }

    /// Exchanges the content of two tables, which stay in their places.
    pub(crate) fn exchange(&mut self, other: &mut Table) {
        debug_assert_eq!(self.shift, other.shift);
        let (here, there) = (self.directory(), other.directory());
        self.set_directory(there);
        other.set_directory(here);
        std::mem::swap(&mut self.arena, &mut other.arena);
        std::mem::swap(&mut self.len, &mut other.len);
        std::mem::swap(&mut self.segments, &mut other.segments);
        std::mem::swap(&mut self.shares, &mut other.shares);
        std::mem::swap(&mut self.sharing, &mut other.sharing);
    }

    /// Frees what an empty table keeps for reuse; returns whether there was anything. Not called
    /// whenever the last key is removed, so that one key coming and going is cheap.
    pub(crate) fn release_empty(&mut self) -> bool {
        let is_idle = self.len == 0 && self.segments > 0;
        if is_idle {
            drop(self.take());
        }
        is_idle
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        match self.sharing.as_deref_mut() {
            None => {}
            Some(Sharing::Frozen(_)) => {
                if let Some(directory) = self.directory() {
                    // SAFETY: its own, and nobody fetches by it; the rest is the living table's.
                    unsafe { directory.free() };
                }
                return;
            }
            Some(Sharing::Living(living)) => {
                if let Some(newest) = living.newest_in_use() {
                    // What is left to drop here is an empty table.
                    let empty = Table::new(u32::from(self.shift));
                    newest.take_over(Box::new(std::mem::replace(self, empty)));
                } else {
                    for entry in living.take_returned() {
                        // SAFETY: entries of this arena that nobody has any more.
                        unsafe { entry.free(&mut self.arena) };
                    }
                }
            }
        }
        // SAFETY: what hangs on the root is ours; prefetchers may still read segments and
        // directories, so these are retired.
        unsafe {
            if let Some(directory) = self.directory() {
                let segments: Vec<_> = directory.segments().collect();
                for segment in segments {
                    for (_, word) in segment.as_ref().words() {
                        unpack(word).free(&mut self.arena);
                    }
                    Self::retire_segment(segment);
                }
                Self::retire_directory(directory);
            }
        }
    }
}

#[cfg(test)]
mod tests;

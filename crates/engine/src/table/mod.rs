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

mod arena;
mod cursor;
mod directory;
pub(crate) mod entry;
pub(crate) mod prefetch;
mod sample;
mod segment;
mod sharing;

use arena::Arena;
use crossbeam_epoch::Guard;
use directory::{Directory, Root};
use entry::{EntryPtr, EntryRef, ValueInit};
use ladon_model::KeyHasher;
use prefetch::{BucketHint, RootPtr};
pub(crate) use segment::LocalHash;
use segment::{CAPACITY, Place, Segment, bucket_start, home_of, pack, unpack};
use sharing::{Living, Sharing};
use std::marker::PhantomData;
use std::mem::offset_of;
use std::ptr::NonNull;

use crate::object::Object;

/// How many words ahead of a walk entries are fetched: about as many as memory answers at once.
const AHEAD_WORDS: usize = 16;
/// Two neighbours with fewer keys than this together become one.
const MERGE_COUNT_MAX: usize = CAPACITY / 4;
/// A lone segment is looked at for merging when it falls under this.
const MERGE_TRY_COUNT: usize = CAPACITY / 8;
/// A hash has no more bits to split by; reaching it takes an attack on the seed.
const DEPTH_MAX: u32 = 40;

/// A set of entries with distinct keys.
#[repr(C)]
pub(crate) struct Table {
    root: Root,
    /// Where prefetchers find the directory, if they do; as `root`.
    shown: Option<RootPtr>,
    len: usize,
    segments: u32,
    /// How many bits of a key's hash the owner has used up before the table's.
    shift: u16,
    /// Whether there is any `sharing`.
    shares: bool,
    /// Late, as most of it is rarely looked at.
    arena: Arena,
    /// `None` until it is frozen for the first time.
    sharing: Option<Box<Sharing>>,
}

// SAFETY: the table owns everything that it points to; see the head of the file.
unsafe impl Send for Table {}

/// A place in a table, good until the table changes.
#[derive(Clone, Copy)]
pub(crate) struct Found {
    segment: NonNull<Segment>,
    place: Place,
    entry: EntryPtr,
}

impl Found {
    /// The entry.
    ///
    /// # Safety
    /// Its table has not changed since `find`, and stays as it is for `'a`.
    #[inline]
    pub(crate) unsafe fn entry<'a>(self) -> EntryRef<'a> {
        // SAFETY: by contract, the entry is live.
        unsafe { self.entry.as_ref() }
    }

    /// Sets the entry's access word.
    ///
    /// # Safety
    /// The caller has the table for itself, which has not changed since `find`.
    #[inline]
    pub(crate) unsafe fn set_access(self, access: u32) {
        // SAFETY: by contract, live and exclusive.
        unsafe { self.entry.set_access(access) }
    }
}

/// An entry's place in its table, for changing it.
pub(crate) struct SlotMut<'a> {
    table: &'a mut Table,
    local: LocalHash,
    segment: NonNull<Segment>,
    place: Place,
}

impl Table {
    /// From its start on, what a command needs on its way to the bucket and for its accounts.
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

    /// As `new`, and prefetchers find its directory at `shown` too, where there is none so far.
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

    /// Segments in use.
    #[cfg(test)]
    pub(crate) fn segments(&self) -> usize {
        self.segments as usize
    }

    /// The part of the hash of `key` that this table goes by.
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

    /// The first entry whose word carries the hash's tag: most likely the key's with this hash.
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

    /// Fetches the bucket of this hash; the hint is good for as long as `guard` is held.
    pub(crate) fn prefetch_bucket(&self, local: LocalHash, guard: &Guard) -> BucketHint {
        self.root.prefetch_bucket(local, guard)
    }

    /// Where `key` stands, good until the table changes.
    #[inline]
    pub(crate) fn find(&self, local: LocalHash, key: &[u8]) -> Option<Found> {
        let (segment, place) = self.place(local, key)?;
        // SAFETY: the segment is live, and a key stands there.
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

    /// The first key with this hash of whose entry `is` says so.
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

    /// Adds an entry, whose key must not be there. It stays where it is until it is removed, or
    /// given another key length, expiry or kind of value.
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

    fn insert_word(&mut self, hasher: &KeyHasher, local: LocalHash, word: u64) {
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
        // The old segment stays as the lower half: nothing is left for the epochs to free, which
        // would come late and leave holes. No frozen table has it, see `own`.
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

    fn try_merge(&mut self, hasher: &KeyHasher, segment: NonNull<Segment>) {
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
        // One spare level, so that a table at the edge does not go back and forth.
        if deepest + 1 < directory.depth {
            self.resize_directory(deepest + 1);
        }
    }

    fn retire_segment(segment: NonNull<Segment>) {
        let segment = SendPtr(segment);
        // SAFETY: no longer in any directory; prefetchers that still see it are pinned.
        unsafe {
            crossbeam_epoch::pin().defer_unchecked(move || Segment::free({ segment }.0));
        }
    }

    fn retire_directory(directory: Directory) {
        let directory = SendDirectory(directory);
        // SAFETY: no longer the root's; prefetchers that still see it are pinned.
        unsafe {
            crossbeam_epoch::pin().defer_unchecked(move || { directory }.0.free());
        }
    }

    // ---- frozen tables, see `sharing.rs` ----

    /// The table as it is now, whatever becomes of this one; never to be changed.
    pub(crate) fn freeze(&mut self) -> Table {
        self.shares = true;
        let sharing = self.sharing.get_or_insert_with(|| Box::new(Sharing::Living(Living::new())));
        let Sharing::Living(living) = &mut **sharing else {
            unreachable!("a frozen table is not frozen again")
        };
        let mut frozen = Table::new(u32::from(self.shift));
        frozen.shares = true;
        frozen.sharing = Some(Box::new(Sharing::Frozen(living.freeze())));
        frozen.len = self.len;
        frozen.set_directory(self.directory().map(Directory::copy));
        frozen
    }

    /// The segment, or a copy in its place that frozen tables do not have: called before every
    /// change.
    #[inline]
    fn own(&mut self, segment: NonNull<Segment>) -> NonNull<Segment> {
        if self.shares { self.own_shared(segment) } else { segment }
    }

    #[cold]
    #[inline(never)]
    fn own_shared(&mut self, segment: NonNull<Segment>) -> NonNull<Segment> {
        let Some(sharing) = self.sharing.as_deref_mut() else { return segment };
        let Sharing::Living(living) = sharing else { panic!("a frozen table was changed") };
        if !living.is_watched(&mut self.arena) || !living.has_shared(segment) {
            return segment;
        }
        // SAFETY: live, as it is in the directory.
        let old = unsafe { segment.as_ref() };
        let copy = old.copy(living.generation);
        living.keep_segment(segment);
        if let Some(directory) = self.directory() {
            let shift = directory.depth - u32::from(old.depth.get());
            let first = (old.prefix.get() as usize) << shift;
            (first..first + (1 << shift)).for_each(|slot| directory.set(slot, copy));
        }
        copy
    }

    /// A number that new segments get.
    fn generation(&self) -> u64 {
        self.living().map_or(0, |living| living.generation)
    }

    fn living(&self) -> Option<&Living> {
        match self.sharing.as_deref() {
            Some(Sharing::Living(living)) => Some(living),
            _ => None,
        }
    }

    /// Whether frozen tables may look on, as of the last `own`.
    #[inline]
    fn is_watched(&self) -> bool {
        self.shares && self.living().is_some_and(Living::has_moment)
    }

    /// A segment is no longer in the directory.
    fn give_up_segment(&mut self, segment: NonNull<Segment>) {
        match self.living() {
            Some(living) if living.has_shared(segment) => living.keep_segment(segment),
            _ => Self::retire_segment(segment),
        }
    }

    /// Frees an entry, or keeps it for frozen tables.
    ///
    /// # Safety
    /// It was this table's and is in no segment of the directory any more.
    #[inline]
    unsafe fn give_up_entry(&mut self, entry: EntryPtr) {
        if self.shares && self.living().is_some_and(|living| living.keep_entry(entry)) {
            return;
        }
        // SAFETY: by contract, and no frozen table has it.
        unsafe { entry.free(&mut self.arena) }
    }

    /// Visits entries in hash order from `from` on, bucket by bucket, until `budget` buckets
    /// were read. Returns where to go on, or `None` at the end.
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
            // Two segments may have become one since the caller came past the first.
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

    /// As `entries`, from where another walk stood. The table must not have changed since, as a
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

    /// Takes everything out, leaving an empty table in the same place.
    pub(crate) fn take(&mut self) -> Table {
        let mut taken = Table::new(u32::from(self.shift));
        taken.set_directory(self.directory());
        self.set_directory(None);
        std::mem::swap(&mut taken.arena, &mut self.arena);
        taken.len = std::mem::take(&mut self.len);
        taken.segments = std::mem::take(&mut self.segments);
        (taken.shares, taken.sharing) = (std::mem::take(&mut self.shares), self.sharing.take());
        taken
    }

    /// Gives back what a table without keys keeps for the next one; whether there was anything.
    /// Not done whenever the last key goes: one key coming and going is cheap.
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

/// Where a walk over a frozen value's elements stands; the default is its beginning.
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
    /// Where it stands, for [`Table::entries_from`].
    pub(crate) fn position(&self) -> Position {
        match self.segment {
            Some(_) => Position { slot: self.at, index: self.index },
            None => Position { slot: self.slot, index: 0 },
        }
    }

    /// Goes on to the segment at `slot`; false at the end.
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

impl SlotMut<'_> {
    /// Where the entry is.
    #[inline]
    pub(crate) fn entry(&self) -> EntryPtr {
        // SAFETY: the segment is live while the table is borrowed.
        unpack(unsafe { self.segment.as_ref() }.word(self.place))
    }

    /// The entry as it stands.
    #[inline]
    pub(crate) fn get(&self) -> EntryRef<'_> {
        // SAFETY: live and unchanged while self is borrowed.
        unsafe { self.entry().as_ref() }
    }

    /// The boxed object, if the value is one.
    #[inline]
    pub(crate) fn object_mut(&mut self) -> Option<&mut Object> {
        // SAFETY: we hold the table exclusively.
        unsafe { self.entry().object_mut() }
    }

    /// A string's bytes, if they are in the entry, to be changed; it counts as grown then.
    pub(crate) fn bytes_mut(&mut self) -> Option<&mut [u8]> {
        // SAFETY: we hold the table exclusively.
        unsafe { self.entry().bytes_mut() }
    }

    /// Takes the boxed object out; the entry must be given another value next.
    #[inline]
    pub(crate) fn take_object(&mut self) -> Option<Box<Object>> {
        // SAFETY: we hold the table exclusively.
        unsafe { self.entry().take_object() }
    }

    #[inline]
    pub(crate) fn set_access(&mut self, access: u32) {
        // SAFETY: we hold the table exclusively.
        unsafe { self.entry().set_access(access) }
    }

    /// Replaces value and expiry; keeps the access word.
    #[inline]
    pub(crate) fn set(&mut self, expire_at: u64, value: ValueInit<'_>) {
        let entry = self.entry();
        // SAFETY: we hold the table exclusively; the old entry is freed after the word changed.
        unsafe {
            let old = entry.as_ref();
            // Frozen tables may have the entry.
            if !self.table.is_watched() {
                let keeps_shape = old.expire_at() == expire_at || entry.try_set_expire(expire_at);
                if keeps_shape && entry.try_overwrite(&value) {
                    return;
                }
            }
            let (key, access) = (old.key(), old.access());
            let new = EntryPtr::build(&mut self.table.arena, key, expire_at, value, access);
            self.segment.as_ref().set_word(self.place, pack(self.local, new));
            self.table.give_up_entry(entry);
        }
    }

    /// Changes the expiry only.
    pub(crate) fn set_expire(&mut self, expire_at: u64) {
        let entry = self.entry();
        // SAFETY: we hold the table exclusively; the old entry is freed after the word changed.
        unsafe {
            if entry.as_ref().expire_at() == expire_at
                || !self.table.is_watched() && entry.try_set_expire(expire_at)
            {
                return;
            }
            let object = entry.take_object();
            let old = entry.as_ref();
            let value = match (object, old.value()) {
                (Some(object), _) => ValueInit::Object(object),
                (None, entry::ValueRef::Bytes { bytes, grown }) => {
                    ValueInit::Bytes { bytes, grown }
                }
                (None, entry::ValueRef::Int(int)) => ValueInit::Int(int),
                (None, entry::ValueRef::Object(_)) => unreachable!("the object was taken"),
            };
            let arena = &mut self.table.arena;
            let new = EntryPtr::build(arena, old.key(), expire_at, value, old.access());
            self.segment.as_ref().set_word(self.place, pack(self.local, new));
            self.table.give_up_entry(entry);
        }
    }

    /// Removes the entry; a boxed object is handed back, so that a huge one can be dropped
    /// elsewhere.
    pub(crate) fn remove(self, hasher: &KeyHasher) -> Option<Box<Object>> {
        let entry = self.entry();
        let table = self.table;
        // SAFETY: we hold the table exclusively; the word goes before the entry.
        unsafe {
            let segment = self.segment.as_ref();
            segment.remove(self.local, self.place);
            table.len -= 1;
            let object = entry.take_object();
            table.give_up_entry(entry);
            if segment.count() < MERGE_TRY_COUNT {
                table.try_merge(hasher, self.segment);
            }
            object
        }
    }
}

/// The words of segments that are about to be filled anew.
struct Words {
    words: [u64; CAPACITY],
    count: usize,
}

impl Words {
    /// Of segments that have no more keys together than one may have. Their entries, whose keys
    /// are about to be hashed, are asked for on the way.
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

/// A directory that a deferred destructor takes along.
struct SendDirectory(Directory);

// SAFETY: as for `SendPtr`.
unsafe impl Send for SendDirectory {}

/// A pointer that a deferred destructor takes along.
struct SendPtr<T>(NonNull<T>);

// SAFETY: what it points to is freed by whichever thread runs the destructor, and used by none.
unsafe impl<T> Send for SendPtr<T> {}

#[cfg(test)]
mod tests;

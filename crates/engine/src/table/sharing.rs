//! Frozen tables: a table as it was at one moment. It shares everything that has not changed since
//! with the living table.
//!
//! Freezing copies the directory, a pointer for each few hundred entries. From then on the living
//! table copies a segment before it changes it for the first time, and keeps removed entries:
//!
//! ```text
//! living  -> [ 0 ] [ 1' ] [ 2 ]       1' is a copy that has changed
//!              |            |
//! frozen  -> [ 0 ] [ 1  ] [ 2 ]       1 and the entries only it points to are kept
//! ```
//!
//! What is kept belongs to the newest frozen table's [`Moment`], and an older moment keeps the next
//! newer one alive: every table frozen before a removal may see the removed entry. The last frozen
//! table returns the entries, and the living table frees them in its arena at its next change. A
//! living table that is dropped while frozen ones share with it is kept as well.
//!
//! # Soundness
//! A frozen table is never changed (`Table::own` panics), so it may be read on any thread without
//! the living table's lock. Nothing writes what it reads: the living table changes only segments
//! that it made after the newest freezing, overwrites no entry in place, and frees neither while a
//! moment that may see it lives. "No moment lives" is `Arc::get_mut`, which orders the readers'
//! last read before what follows.

use super::Table;
use super::arena::Arena;
use super::directory::Directory;
use super::entry::EntryPtr;
use super::segment::Segment;
use parking_lot::Mutex;
use std::ptr::NonNull;
use std::sync::{Arc, OnceLock};

/// Most entries that a change of the table returns to its arena, in addition to its own.
const RETURNED_AT_ONCE: usize = 32;

/// How a table shares with others.
pub(super) enum Sharing {
    /// It has been frozen before.
    Living(Living),
    /// It is a frozen one.
    Frozen(#[allow(dead_code, reason = "held for its drop")] Arc<Moment>),
}

pub(super) struct Living {
    /// Segments of a lower generation existed at the newest freezing.
    ///
    /// Many readers of a large value make it thousands a second: 32 bits would wrap around.
    pub(super) generation: u64,
    newest: Option<Arc<Moment>>,
    returned: Arc<Returned>,
}

/// Entries that no frozen table needs any more.
#[derive(Default)]
struct Returned(Mutex<Vec<EntryPtr>>);

/// The moment of a frozen table.
pub(super) struct Moment {
    kept: Mutex<Kept>,
    returned: Arc<Returned>,
    next: OnceLock<Arc<Moment>>,
}

/// What was removed from the living table since.
#[derive(Default)]
struct Kept {
    entries: Vec<EntryPtr>,
    segments: Vec<NonNull<Segment>>,
    table: Option<Box<Table>>,
}

// SAFETY: what the pointers lead to belongs to the moment and its table; see the head of the file.
unsafe impl Send for Kept {}
// SAFETY: as above; the entries are freed by the table's owner alone.
unsafe impl Send for Returned {}
// SAFETY: as above, and the pointers are behind a lock.
unsafe impl Sync for Returned {}

impl Table {
    /// The table as it is now, unaffected by changes of this one; never to be changed.
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

    /// The segment, or a copy in its place that no frozen table has: called before every change.
    #[inline]
    pub(super) fn own(&mut self, segment: NonNull<Segment>) -> NonNull<Segment> {
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
    pub(super) fn generation(&self) -> u64 {
        self.living().map_or(0, |living| living.generation)
    }

    fn living(&self) -> Option<&Living> {
        match self.sharing.as_deref() {
            Some(Sharing::Living(living)) => Some(living),
            _ => None,
        }
    }

    /// Whether frozen tables may see changes, as of the last `own`.
    #[inline]
    pub(super) fn is_watched(&self) -> bool {
        self.shares && self.living().is_some_and(Living::has_moment)
    }

    /// Called when a segment was removed from the directory.
    pub(super) fn give_up_segment(&mut self, segment: NonNull<Segment>) {
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
    pub(super) unsafe fn give_up_entry(&mut self, entry: EntryPtr) {
        if self.shares && self.living().is_some_and(|living| living.keep_entry(entry)) {
            return;
        }
        // SAFETY: by contract, and no frozen table has it.
        unsafe { entry.free(&mut self.arena) }
    }
}

impl Living {
    pub(super) fn new() -> Living {
        Living { generation: 0, newest: None, returned: Arc::default() }
    }

    /// Begins a new moment; segments that are made from now on are not part of it. Frees nothing,
    /// because the code that freezes does not change the table, and does not account for its size.
    pub(super) fn freeze(&mut self) -> Arc<Moment> {
        self.end_newest();
        let moment = Arc::new(Moment {
            kept: Mutex::default(),
            returned: Arc::clone(&self.returned),
            next: OnceLock::new(),
        });
        if let Some(before) = self.newest.replace(Arc::clone(&moment)) {
            let _ = before.next.set(Arc::clone(&moment));
        }
        self.generation += 1;
        moment
    }

    /// Forgets the newest moment if no frozen table is left.
    fn end_newest(&mut self) {
        if let Some(newest) = &mut self.newest
            && Arc::get_mut(newest).is_some()
        {
            self.newest = None;
        }
    }

    /// Called before a change: whether some frozen table may see it. Frees a few of the entries
    /// that none needs any more.
    pub(super) fn is_watched(&mut self, arena: &mut Arena) -> bool {
        self.end_newest();
        let mut returned = self.returned.0.lock();
        let rest = returned.len() - returned.len().min(RETURNED_AT_ONCE);
        for entry in returned.drain(rest..) {
            // SAFETY: an entry of this arena that has left the table, and no frozen one is left
            // that has it.
            unsafe { entry.free(arena) };
        }
        if rest == 0 && returned.capacity() > RETURNED_AT_ONCE {
            *returned = Vec::new();
        }
        self.newest.is_some()
    }

    pub(super) fn has_moment(&self) -> bool {
        self.newest.is_some()
    }

    /// Keeps the entry if frozen tables may see it; returns whether it did.
    pub(super) fn keep_entry(&self, entry: EntryPtr) -> bool {
        self.newest.as_ref().map(|newest| newest.kept.lock().entries.push(entry)).is_some()
    }

    /// Whether frozen tables have the segment.
    pub(super) fn has_shared(&self, segment: NonNull<Segment>) -> bool {
        // SAFETY: the caller's segment is live.
        let generation = unsafe { segment.as_ref() }.generation.get();
        self.newest.is_some() && generation < self.generation
    }

    pub(super) fn keep_segment(&self, segment: NonNull<Segment>) {
        if let Some(newest) = &self.newest {
            newest.kept.lock().segments.push(segment);
        }
    }

    /// Called when the table is about to be dropped: the moment that has to take it over, if any
    /// frozen table is left.
    pub(super) fn newest_in_use(&mut self) -> Option<Arc<Moment>> {
        self.newest.take().filter(|newest| Arc::strong_count(newest) > 1)
    }

    /// All entries that were returned.
    pub(super) fn take_returned(&mut self) -> Vec<EntryPtr> {
        std::mem::take(&mut *self.returned.0.lock())
    }
}

impl Moment {
    /// Takes over a living table that is dropped; the frozen ones free it when they are dropped.
    pub(super) fn take_over(&self, table: Box<Table>) {
        self.kept.lock().table = Some(table);
    }

    /// Releases everything; returns the next moment, which may be over as well.
    fn end(&mut self) -> Option<Arc<Moment>> {
        let Kept { mut entries, segments, table } = std::mem::take(self.kept.get_mut());
        let mut returned = self.returned.0.lock();
        if returned.is_empty() {
            *returned = entries;
        } else {
            returned.append(&mut entries);
        }
        drop(returned);
        segments.into_iter().for_each(Table::retire_segment);
        // Dropping the table frees the returned entries.
        drop(table);
        self.next.take()
    }
}

impl Drop for Moment {
    fn drop(&mut self) {
        // In a loop, because many may have waited for the first.
        let mut next = self.end();
        while let Some(mut moment) = next.take().and_then(Arc::into_inner) {
            next = moment.end();
        }
    }
}

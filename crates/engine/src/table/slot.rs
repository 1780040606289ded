//! Places in a table: found once, then read or changed.
//!
//! The head of `mod.rs` says why this is sound: the holder of a place that it changes has exclusive
//! access to the table, and prefetchers read atomics only.

use super::Table;
use super::entry::{self, EntryPtr, EntryRef, ValueInit};
use super::segment::{LocalHash, MERGE_TRY_COUNT, Place, Segment, pack, unpack};
use crate::item::ItemHead;
use crate::object::Object;
use crate::types::integer;
use ladon_record::KeyHasher;
use std::ptr::NonNull;

/// A place in a table, good until the table changes.
#[derive(Clone, Copy)]
pub(crate) struct Found {
    pub(super) segment: NonNull<Segment>,
    pub(super) place: Place,
    pub(super) entry: EntryPtr,
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
    pub(super) table: &'a mut Table,
    pub(super) local: LocalHash,
    pub(super) segment: NonNull<Segment>,
    pub(super) place: Place,
}

impl SlotMut<'_> {
    /// Where the entry is.
    #[inline]
    pub(crate) fn entry(&self) -> EntryPtr {
        // SAFETY: the segment is live while the table is borrowed.
        unpack(unsafe { self.segment.as_ref() }.word(self.place))
    }

    /// The entry as it is now.
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
                    ValueInit::of_bytes(bytes, grown, old.item())
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

    /// Changes what a string has besides its bytes.
    pub(crate) fn set_item(&mut self, head: ItemHead) {
        if let Some(object) = self.object_mut() {
            if let Object::String(string) = object {
                string.set_head(head);
            }
            return;
        }
        let entry = self.entry();
        // SAFETY: we hold the table exclusively; the old entry is freed after the word changed.
        unsafe {
            if !self.table.is_watched() && entry.try_set_item(head) {
                return;
            }
            let old = entry.as_ref();
            let (expire_at, access) = (old.expire_at(), old.access());
            let mut digits = [0; integer::INT_BYTES_MAX];
            let value = match old.value() {
                entry::ValueRef::Bytes { bytes, grown } => ValueInit::of_bytes(bytes, grown, head),
                entry::ValueRef::Int(int) => {
                    let bytes = integer::format_int(int, &mut digits);
                    ValueInit::of_bytes(bytes, false, head)
                }
                entry::ValueRef::Object(_) => unreachable!("it is in the entry"),
            };
            let arena = &mut self.table.arena;
            let new = EntryPtr::build(arena, old.key(), expire_at, value, access);
            self.segment.as_ref().set_word(self.place, pack(self.local, new));
            self.table.give_up_entry(entry);
        }
    }

    /// Removes the entry. A boxed object is returned, so that a huge one can be dropped elsewhere.
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

//! An entry: key and value in one allocation.
//!
//! ```text
//! head      3 bytes   flags (4 bits), access (20 bits: see `access.rs`)
//! expire_at 8 bytes   Unix milliseconds; only with EXPIRES
//! key_len   varint
//! value_len varint    only for BYTES and ITEM
//! key       key_len bytes
//! item      1 to 13   only for ITEM: flags and such, see `item.rs`
//! value     BYTES, ITEM: value_len bytes; INT: i64; OBJECT: pointer to a boxed Object
//! ```
//!
//! An 11-byte key with an 8-byte value takes 24 bytes.
//!
//! # Soundness
//! An `EntryPtr` is a live allocation of the arena it came from, written by `build` and changed
//! only through `&mut` access to its table. All reads parse the layout above, so lengths and flags
//! always agree with the allocation. Multi-byte fields are unaligned and read as such.

use super::arena::Arena;
pub(crate) use super::entry_ptr::EntryPtr;
use crate::item::{HeadBytes, ItemHead};
use crate::object::Object;
use std::marker::PhantomData;

const KIND_MASK: u8 = 0b0011;
const KIND_BYTES: u8 = 0;
const KIND_INT: u8 = 1;
const KIND_OBJECT: u8 = 2;
/// A string's bytes, and what it has besides.
const KIND_ITEM: u8 = 3;
const EXPIRES: u8 = 0b0100;
/// A string that was grown in place; `OBJECT ENCODING` calls it "raw" whatever its length.
const GROWN: u8 = 0b1000;

const HEAD_BYTES: usize = 3;
const EXPIRE_BYTES: usize = 8;
const WORD_BYTES: usize = 8;

/// The largest access word, see `access.rs`.
pub(crate) const ACCESS_MAX: u32 = (1 << 20) - 1;

/// The content of an entry, borrowed.
#[derive(Clone, Copy)]
#[allow(missing_docs, reason = "the variants say it")]
pub enum ValueRef<'a> {
    /// A string's bytes; `grown` as in `OBJECT ENCODING` raw.
    Bytes { bytes: &'a [u8], grown: bool },
    /// A string that is the decimal form of an integer.
    Int(i64),
    /// A separately allocated value.
    Object(&'a Object),
}

/// The content of a new entry.
pub(crate) enum ValueInit<'a> {
    Bytes { bytes: &'a [u8], grown: bool },
    Int(i64),
    Object(Box<Object>),
    Item { bytes: &'a [u8], grown: bool, head: ItemHead },
}

impl<'a> ValueInit<'a> {
    /// A string in its entry, with a head if it has one.
    pub(crate) fn of_bytes(bytes: &'a [u8], grown: bool, head: ItemHead) -> ValueInit<'a> {
        match head.is_empty() {
            true => ValueInit::Bytes { bytes, grown },
            false => ValueInit::Item { bytes, grown, head },
        }
    }
}

/// An entry, borrowed from its table.
#[derive(Clone, Copy)]
pub struct EntryRef<'a> {
    ptr: EntryPtr,
    table: PhantomData<&'a ()>,
}

struct Layout {
    flags: u8,
    key_offset: usize,
    key_len: usize,
    value_offset: usize,
    value_len: usize,
}

impl EntryPtr {
    /// Builds an entry in `arena`.
    pub(crate) fn build(
        arena: &mut Arena,
        key: &[u8],
        expire_at: u64,
        value: ValueInit<'_>,
        access: u32,
    ) -> EntryPtr {
        let (mut flags, value_len, length_bytes) = match &value {
            ValueInit::Bytes { bytes, grown } => (
                KIND_BYTES | if *grown { GROWN } else { 0 },
                bytes.len(),
                varint_bytes(bytes.len()),
            ),
            ValueInit::Int(_) => (KIND_INT, WORD_BYTES, 0),
            ValueInit::Object(_) => (KIND_OBJECT, WORD_BYTES, 0),
            ValueInit::Item { bytes, grown, .. } => {
                (KIND_ITEM | if *grown { GROWN } else { 0 }, bytes.len(), varint_bytes(bytes.len()))
            }
        };
        let head = match &value {
            ValueInit::Item { head, .. } => Some(head.to_bytes()),
            _ => None,
        };
        let head = head.as_ref().map_or(&[][..], HeadBytes::as_slice);
        let mut offset = HEAD_BYTES;
        if expire_at != 0 {
            flags |= EXPIRES;
            offset += EXPIRE_BYTES;
        }
        let lengths = varint_bytes(key.len()) + length_bytes;
        let size = offset + lengths + key.len() + head.len() + value_len;
        let piece = arena.alloc(size);
        let base = piece.as_ptr();
        // SAFETY: every write stays within `size`, which was computed from the same parts.
        unsafe {
            if expire_at != 0 {
                base.add(HEAD_BYTES).cast::<u64>().write_unaligned(expire_at);
            }
            offset += write_varint(base.add(offset), key.len());
            if length_bytes != 0 {
                offset += write_varint(base.add(offset), value_len);
            }
            base.add(offset).copy_from_nonoverlapping(key.as_ptr(), key.len());
            offset += key.len();
            let at = base.add(offset);
            match value {
                ValueInit::Bytes { bytes, .. } => {
                    at.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
                }
                ValueInit::Int(int) => at.cast::<i64>().write_unaligned(int),
                ValueInit::Object(object) => {
                    at.cast::<*mut Object>().write_unaligned(Box::into_raw(object));
                }
                ValueInit::Item { bytes, .. } => {
                    at.copy_from_nonoverlapping(head.as_ptr(), head.len());
                    at.add(head.len()).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
                }
            }
            write_head(base, flags, access);
        }
        EntryPtr(piece)
    }

    /// Frees the entry and its content.
    ///
    /// # Safety
    /// The entry came from this arena and nothing refers to it any more.
    pub(crate) unsafe fn free(self, arena: &mut Arena) {
        // SAFETY: live by contract.
        unsafe {
            drop(self.take_object());
            let layout = self.layout();
            arena.free(self.0, layout.value_offset + layout.value_len);
        }
    }

    /// Takes the boxed object out, leaving an integer entry behind.
    ///
    /// # Safety
    /// Exclusive access to the entry.
    #[inline]
    pub(crate) unsafe fn take_object(self) -> Option<Box<Object>> {
        // SAFETY: by contract.
        unsafe {
            if self.flags() & KIND_MASK != KIND_OBJECT {
                return None;
            }
            let layout = self.layout();
            let at = self.0.as_ptr().add(layout.value_offset);
            let object = at.cast::<*mut Object>().read_unaligned();
            write_head(self.0.as_ptr(), layout.flags & !KIND_MASK | KIND_INT, self.access());
            Some(Box::from_raw(object))
        }
    }

    /// # Safety
    /// Exclusive access to the entry for `'a`.
    pub(crate) unsafe fn object_mut<'a>(self) -> Option<&'a mut Object> {
        // SAFETY: by contract.
        unsafe {
            let layout = self.layout();
            if layout.flags & KIND_MASK != KIND_OBJECT {
                return None;
            }
            let at = self.0.as_ptr().add(layout.value_offset);
            Some(&mut *at.cast::<*mut Object>().read_unaligned())
        }
    }

    /// The bytes of a string in the entry, to be changed; it counts as grown from then on.
    ///
    /// # Safety
    /// Exclusive access to the entry for `'a`.
    pub(crate) unsafe fn bytes_mut<'a>(self) -> Option<&'a mut [u8]> {
        // SAFETY: by contract; the value's bytes are where `build` put them.
        unsafe {
            let layout = self.layout();
            if layout.flags & KIND_MASK != KIND_BYTES {
                return None;
            }
            write_head(self.0.as_ptr(), layout.flags | GROWN, self.access());
            let at = self.0.as_ptr().add(layout.value_offset);
            Some(std::slice::from_raw_parts_mut(at, layout.value_len))
        }
    }

    /// Overwrites the value in place if it takes the same piece of memory; the expiry stays.
    ///
    /// # Safety
    /// Exclusive access to the entry.
    #[inline]
    pub(crate) unsafe fn try_overwrite(self, value: &ValueInit<'_>) -> bool {
        // SAFETY: by contract; sizes are checked before anything is written.
        unsafe {
            let layout = self.layout();
            let at = self.0.as_ptr().add(layout.value_offset);
            match (layout.flags & KIND_MASK, value) {
                (KIND_INT, ValueInit::Int(int)) => {
                    at.cast::<i64>().write_unaligned(*int);
                    true
                }
                (KIND_BYTES, ValueInit::Bytes { bytes, grown }) => {
                    if varint_bytes(bytes.len()) != varint_bytes(layout.value_len)
                        || Arena::rounded(layout.value_offset + bytes.len())
                            != Arena::rounded(layout.value_offset + layout.value_len)
                    {
                        return false;
                    }
                    let length_at = layout.key_offset - varint_bytes(bytes.len());
                    write_varint(self.0.as_ptr().add(length_at), bytes.len());
                    at.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
                    let flags = layout.flags & !GROWN | if *grown { GROWN } else { 0 };
                    write_head(self.0.as_ptr(), flags, self.access());
                    true
                }
                _ => false,
            }
        }
    }

    /// Overwrites what a string in its entry has besides its bytes, if there is room for it.
    ///
    /// # Safety
    /// Exclusive access to the entry.
    pub(crate) unsafe fn try_set_item(self, head: ItemHead) -> bool {
        // SAFETY: by contract; an item's head precedes its value.
        unsafe {
            let layout = self.layout();
            if layout.flags & KIND_MASK != KIND_ITEM {
                return false;
            }
            let (at, head) = (layout.key_offset + layout.key_len, head.to_bytes());
            let head = head.as_slice();
            if at + head.len() != layout.value_offset {
                return false;
            }
            self.0.as_ptr().add(at).copy_from_nonoverlapping(head.as_ptr(), head.len());
            true
        }
    }

    /// The size with which it was built.
    ///
    /// # Safety
    /// The entry is live.
    pub(crate) unsafe fn bytes(self) -> usize {
        // SAFETY: by contract.
        let layout = unsafe { self.layout() };
        layout.value_offset + layout.value_len
    }

    /// Changes the expiry in place; only possible when there is one before and after.
    ///
    /// # Safety
    /// Exclusive access to the entry.
    pub(crate) unsafe fn try_set_expire(self, expire_at: u64) -> bool {
        // SAFETY: by contract; the field exists when EXPIRES is set.
        unsafe {
            if expire_at == 0 || self.flags() & EXPIRES == 0 {
                return false;
            }
            self.0.as_ptr().add(HEAD_BYTES).cast::<u64>().write_unaligned(expire_at);
            true
        }
    }

    /// # Safety
    /// Exclusive access to the entry.
    #[inline]
    pub(crate) unsafe fn set_access(self, access: u32) {
        // SAFETY: by contract.
        unsafe { write_head(self.0.as_ptr(), self.flags(), access) }
    }

    /// # Safety
    /// The entry is live.
    #[inline]
    unsafe fn flags(self) -> u8 {
        // SAFETY: by contract.
        unsafe { self.0.as_ptr().read() & 0x0f }
    }

    /// # Safety
    /// The entry is live.
    #[inline]
    unsafe fn access(self) -> u32 {
        // SAFETY: by contract.
        unsafe {
            let base = self.0.as_ptr();
            u32::from(base.read() >> 4)
                | u32::from(base.add(1).read()) << 4
                | u32::from(base.add(2).read()) << 12
        }
    }

    /// # Safety
    /// The entry is live.
    #[inline]
    unsafe fn layout(self) -> Layout {
        // SAFETY: by contract; the fields are where `build` put them.
        unsafe {
            let base = self.0.as_ptr();
            let flags = self.flags();
            let mut offset = HEAD_BYTES + if flags & EXPIRES != 0 { EXPIRE_BYTES } else { 0 };
            let (key_len, read) = read_varint(base.add(offset));
            offset += read;
            let value_len = if matches!(flags & KIND_MASK, KIND_BYTES | KIND_ITEM) {
                let (value_len, read) = read_varint(base.add(offset));
                offset += read;
                value_len
            } else {
                WORD_BYTES
            };
            let item = match flags & KIND_MASK {
                KIND_ITEM => HeadBytes::len_of(base.add(offset + key_len).read()),
                _ => 0,
            };
            let value_offset = offset + key_len + item;
            Layout { flags, key_offset: offset, key_len, value_offset, value_len }
        }
    }

    /// # Safety
    /// The entry stays live and unchanged for `'a`.
    #[inline]
    pub(crate) unsafe fn as_ref<'a>(self) -> EntryRef<'a> {
        EntryRef { ptr: self, table: PhantomData }
    }
}

impl<'a> EntryRef<'a> {
    /// Bytes of the arena's that it takes.
    #[cfg(debug_assertions)]
    pub(crate) fn rounded_bytes(self) -> usize {
        // SAFETY: live for 'a.
        Arena::rounded(unsafe { self.ptr.bytes() })
    }

    /// Address of the entry.
    #[inline]
    pub(crate) fn ptr(self) -> EntryPtr {
        self.ptr
    }

    /// The key.
    #[inline]
    pub fn key(self) -> &'a [u8] {
        // SAFETY: live for 'a; key bytes are never rewritten.
        unsafe {
            let layout = self.ptr.layout();
            std::slice::from_raw_parts(self.ptr.0.as_ptr().add(layout.key_offset), layout.key_len)
        }
    }

    /// The value.
    #[inline]
    pub fn value(self) -> ValueRef<'a> {
        // SAFETY: live and unchanged for 'a.
        unsafe {
            let layout = self.ptr.layout();
            let at = self.ptr.0.as_ptr().add(layout.value_offset);
            match layout.flags & KIND_MASK {
                KIND_BYTES | KIND_ITEM => ValueRef::Bytes {
                    bytes: std::slice::from_raw_parts(at, layout.value_len),
                    grown: layout.flags & GROWN != 0,
                },
                KIND_INT => ValueRef::Int(at.cast::<i64>().read_unaligned()),
                _ => ValueRef::Object(&*at.cast::<*const Object>().read_unaligned()),
            }
        }
    }

    /// What a string has besides its bytes.
    #[inline]
    pub fn item(self) -> ItemHead {
        // SAFETY: live and unchanged for 'a; an item's head precedes its value.
        unsafe {
            match self.ptr.flags() & KIND_MASK {
                KIND_ITEM => {
                    let layout = self.ptr.layout();
                    let at = layout.key_offset + layout.key_len;
                    let (base, len) = (self.ptr.0.as_ptr(), layout.value_offset - at);
                    ItemHead::of_bytes(std::slice::from_raw_parts(base.add(at), len))
                }
                KIND_OBJECT => match self.object() {
                    Some(Object::String(string)) => string.head(),
                    _ => ItemHead::default(),
                },
                _ => ItemHead::default(),
            }
        }
    }

    /// The value, if it is a separate object.
    #[inline]
    pub(crate) fn object(self) -> Option<&'a Object> {
        // SAFETY: live and unchanged for 'a.
        let is_object = unsafe { self.ptr.flags() } & KIND_MASK == KIND_OBJECT;
        match is_object.then(|| self.value()) {
            Some(ValueRef::Object(object)) => Some(object),
            _ => None,
        }
    }

    /// When the key expires, in Unix milliseconds; 0 for never.
    #[inline]
    pub fn expire_at(self) -> u64 {
        // SAFETY: live; the field exists when EXPIRES is set.
        unsafe {
            if self.ptr.flags() & EXPIRES == 0 {
                return 0;
            }
            self.ptr.0.as_ptr().add(HEAD_BYTES).cast::<u64>().read_unaligned()
        }
    }

    /// The access word, see `access.rs`.
    pub fn access(self) -> u32 {
        // SAFETY: live.
        unsafe { self.ptr.access() }
    }

    /// Bytes of memory that the entry takes, without a boxed object's own.
    pub fn bytes(self) -> usize {
        // SAFETY: live.
        let layout = unsafe { self.ptr.layout() };
        Arena::rounded(layout.value_offset + layout.value_len)
    }
}

/// # Safety
/// Exclusive access to an entry's head.
#[inline]
unsafe fn write_head(base: *mut u8, flags: u8, access: u32) {
    debug_assert!(access <= ACCESS_MAX);
    // SAFETY: by contract; every entry has three head bytes.
    unsafe {
        base.write(flags | (access << 4) as u8);
        base.add(1).write((access >> 4) as u8);
        base.add(2).write((access >> 12) as u8);
    }
}

#[inline]
fn varint_bytes(value: usize) -> usize {
    match value {
        0..0x80 => 1,
        0x80..0x4000 => 2,
        0x4000..0x20_0000 => 3,
        0x20_0000..0x1000_0000 => 4,
        _ => 5,
    }
}

/// # Safety
/// `varint_bytes(value)` bytes can be written at `at`.
#[inline]
unsafe fn write_varint(at: *mut u8, mut value: usize) -> usize {
    let mut written = 0;
    // SAFETY: by contract.
    unsafe {
        while value >= 0x80 {
            at.add(written).write(value as u8 | 0x80);
            value >>= 7;
            written += 1;
        }
        at.add(written).write(value as u8);
    }
    written + 1
}

/// # Safety
/// There is a varint at `at`.
#[inline]
unsafe fn read_varint(at: *const u8) -> (usize, usize) {
    // SAFETY: by contract.
    unsafe {
        let first = at.read();
        if first < 0x80 {
            return (first as usize, 1);
        }
        let mut value = usize::from(first & 0x7f);
        let mut read = 1;
        loop {
            let byte = at.add(read).read();
            value |= usize::from(byte & 0x7f) << (7 * read);
            read += 1;
            if byte < 0x80 {
                return (value, read);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_read_back() {
        let mut arena = Arena::new();
        for key_len in [0, 1, 11, 127, 128, 300, 20_000] {
            for value_len in [0, 8, 64, 127, 128, 5000] {
                for expire_at in [0, 1_700_000_000_000] {
                    let key = vec![b'k'; key_len];
                    let bytes = vec![b'v'; value_len];
                    let init = ValueInit::Bytes { bytes: &bytes, grown: value_len == 8 };
                    let ptr = EntryPtr::build(&mut arena, &key, expire_at, init, 0xabcde);
                    // SAFETY: just built, freed below.
                    let entry = unsafe { ptr.as_ref() };
                    assert_eq!(entry.key(), key);
                    assert_eq!(entry.expire_at(), expire_at);
                    assert_eq!(entry.access(), 0xabcde);
                    let ValueRef::Bytes { bytes: read, grown } = entry.value() else { panic!() };
                    assert_eq!((read, grown), (&bytes[..], value_len == 8));
                    // SAFETY: nothing refers to it any more.
                    unsafe { ptr.free(&mut arena) };
                }
            }
        }
        assert_eq!(arena.bytes(), 0);
    }

    #[test]
    fn an_item_is_read_back_with_its_head() {
        let mut arena = Arena::new();
        let head = ItemHead { flags: 7, cas: 1 << 40, won: true, ..ItemHead::default() };
        for length in [0, 1, 100, 5000] {
            for expire_at in [0, 1_700_000_000_000] {
                let bytes = vec![b'v'; length];
                let init = ValueInit::Item { bytes: &bytes, grown: true, head };
                let ptr = EntryPtr::build(&mut arena, b"key", expire_at, init, 5);
                // SAFETY: just built, freed below.
                unsafe {
                    let entry = ptr.as_ref();
                    assert_eq!((entry.key(), entry.expire_at()), (&b"key"[..], expire_at));
                    assert!(matches!(entry.value(), ValueRef::Bytes { grown: true, .. }));
                    assert_eq!((entry.item(), entry.access()), (head, 5));
                    assert!(ptr.bytes_mut().is_none() && ptr.object_mut().is_none());
                    let other = ItemHead { cas: 3, ..head };
                    assert!(ptr.try_set_item(other));
                    let ValueRef::Bytes { bytes: read, .. } = ptr.as_ref().value() else {
                        panic!()
                    };
                    assert_eq!((ptr.as_ref().item(), read), (other, &bytes[..]));
                    ptr.free(&mut arena);
                }
            }
        }
        assert_eq!(arena.bytes(), 0);
    }

    #[test]
    fn a_small_entry_is_small() {
        let mut arena = Arena::new();
        let init = ValueInit::Bytes { bytes: b"12345678", grown: false };
        let ptr = EntryPtr::build(&mut arena, b"key:1234567", 0, init, 0);
        assert_eq!(arena.bytes(), 24);
        // SAFETY: built above.
        unsafe { ptr.free(&mut arena) };
    }
}

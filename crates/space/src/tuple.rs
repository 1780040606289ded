//! A tuple: MessagePack bytes with counted owners, behind one pointer.
//!
//! ```text
//! Tuple -> [ owners: u32 | length: u32 | MessagePack, length bytes ]
//!
//! word:    [ mark, 16 bits | address, 46 bits | mark, 2 bits ]
//! ```
//!
//! A table may leave a mark in the word: it is beside the address, so it is read without fetching
//! the block.
//!
//! # Soundness
//! - A `Tuple` points to a block that [`Tuple::new`] allocated with the layout of its length. The
//!   length never changes, so the block is freed with the layout that it was allocated with.
//! - The bytes are written once, before the first `Tuple` exists, and only read afterwards. So any
//!   number of threads may read them, and `Tuple` is `Send` and `Sync`.
//! - `owners` counts the `Tuple`s of a block, as [`std::sync::Arc`] counts: a clone adds one with
//!   relaxed order, because it already has an owner; a drop subtracts one with release order, and the
//!   last one acquires before it frees. So every read happens before the block is freed.
//! - A block's address has only zeros where the mark is: it is a multiple of four, as a header is
//!   aligned, and below 2^48, which [`Tuple::new`] checks. So [`Tuple::header`], which clears the
//!   mark, returns the block's own pointer; nothing else reads the word as an address.
//! - The count cannot wrap: a clone past [`OWNERS_MAX`] ends the process.

use crate::prefetch;
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::fmt;
use std::mem::ManuallyDrop;
use std::ptr::{NonNull, addr_of_mut};
use std::sync::atomic::{AtomicU32, Ordering, fence};

/// Half the counter's range: threads that pass it at the same moment still do not wrap it.
const OWNERS_MAX: u32 = u32::MAX / 2;

/// What is fetched of a tuple that will be looked at: most keys are in the first line, and most of
/// the rest is in the second.
const FETCHED_BYTES: usize = 128;

#[repr(C)]
struct Header {
    owners: AtomicU32,
    length: u32,
}

/// The bits of an address, which is not marked.
const ADDRESS: usize = 0x0000_ffff_ffff_fffc;
/// How far to the left the upper part of the mark is, and of the lower one how many bits there are.
const MARK: (u32, u32) = (48, 2);
/// Bits of a mark.
pub(crate) const MARK_BITS: u32 = 18;

/// A MessagePack array with counted owners. A clone is another owner of the same bytes.
pub struct Tuple(NonNull<Header>);

// SAFETY: the bytes are immutable while any owner exists, and owners are counted atomically.
unsafe impl Send for Tuple {}
// SAFETY: as above; `&Tuple` gives only reads, and clones, which are atomic.
unsafe impl Sync for Tuple {}

impl Tuple {
    /// Bytes of memory that a tuple takes beside its MessagePack.
    pub const HEADER_BYTES: usize = size_of::<Header>();

    /// A tuple with a copy of these bytes: a MessagePack array, which the caller has checked.
    ///
    /// # Panics
    /// If there are more than 4 GiB.
    pub fn new(bytes: &[u8]) -> Tuple {
        let length = u32::try_from(bytes.len()).expect("a tuple is at most 4 GiB long");
        let layout = layout(bytes.len());
        // SAFETY: the layout has the header's size at least, so it is not empty.
        let block = unsafe { alloc(layout) };
        let Some(header) = NonNull::new(block.cast::<Header>()) else { handle_alloc_error(layout) };
        assert!(header.addr().get() & !ADDRESS == 0, "addresses have at most 48 bits");
        // SAFETY: the block is aligned for a header and has room for it and `bytes.len()` bytes
        // behind it; it is new, so it overlaps with nothing.
        unsafe {
            header.as_ptr().write(Header { owners: AtomicU32::new(1), length });
            let content = block.add(size_of::<Header>());
            content.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        }
        Tuple(header)
    }

    /// The block.
    #[inline(always)]
    fn header(&self) -> *mut Header {
        self.0.as_ptr().map_addr(|word| word & ADDRESS)
    }

    /// What a table left in the word.
    #[inline(always)]
    pub(crate) fn mark(&self) -> u32 {
        let word = self.0.addr().get() as u64;
        ((word >> MARK.0 << MARK.1) | (word & ((1 << MARK.1) - 1))) as u32
    }

    /// The same owner with a mark of [`MARK_BITS`]; clones have none.
    #[inline(always)]
    pub(crate) fn marked(self, mark: u32) -> Tuple {
        debug_assert!(mark < 1 << MARK_BITS);
        let mark = u64::from(mark);
        let bits = (mark >> MARK.1 << MARK.0) | (mark & ((1 << MARK.1) - 1));
        let word = ManuallyDrop::new(self).header().map_addr(|address| address | bits as usize);
        // SAFETY: the address of a block is not zero.
        Tuple(unsafe { NonNull::new_unchecked(word) })
    }

    /// The MessagePack.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        let header = self.header();
        // SAFETY: this owner keeps the block; `length` initialised bytes follow the header, and
        // nobody writes them. The pointer comes from the whole block, not from a reference to the
        // header.
        unsafe {
            let length = (*header).length as usize;
            std::slice::from_raw_parts(header.cast::<u8>().add(size_of::<Header>()), length)
        }
    }

    /// The MessagePack of the field with this number, from 0.
    pub fn field(&self, number: u32) -> Option<&[u8]> {
        crate::fields::field(self.bytes(), number)
    }

    /// Bytes of memory, without the allocator's rounding.
    #[inline]
    pub fn memory(&self) -> usize {
        size_of::<Header>() + self.bytes().len()
    }

    /// Whether both are owners of the same bytes, not just of equal ones.
    #[inline]
    pub fn is_same(&self, other: &Tuple) -> bool {
        self.header() == other.header()
    }

    /// Whether there is another owner.
    #[inline]
    pub(crate) fn is_shared(&self) -> bool {
        self.owners().load(Ordering::Relaxed) > 1
    }

    /// Begins to fetch the first bytes into the processor's cache.
    #[inline]
    pub(crate) fn fetch(&self) {
        prefetch::line(self.header());
    }

    /// As [`Tuple::fetch`], of what most tuples have.
    #[inline]
    pub(crate) fn fetch_all(&self) {
        prefetch::items::<u8, FETCHED_BYTES>(self.header().cast());
    }

    fn owners(&self) -> &AtomicU32 {
        // SAFETY: this owner keeps the block; the reference ends at the counter.
        unsafe { &*addr_of_mut!((*self.header()).owners) }
    }
}

fn layout(length: usize) -> Layout {
    Layout::from_size_align(size_of::<Header>() + length, align_of::<Header>())
        .expect("a tuple is at most 4 GiB long")
}

impl Clone for Tuple {
    #[inline]
    fn clone(&self) -> Tuple {
        if self.owners().fetch_add(1, Ordering::Relaxed) > OWNERS_MAX {
            std::process::abort();
        }
        Tuple(self.0).marked(0)
    }
}

impl Drop for Tuple {
    #[inline]
    fn drop(&mut self) {
        if self.owners().fetch_sub(1, Ordering::Release) != 1 {
            return;
        }
        fence(Ordering::Acquire);
        let length = self.bytes().len();
        // SAFETY: this was the last owner, and the block was allocated with this layout.
        unsafe { dealloc(self.header().cast(), layout(length)) };
    }
}

impl fmt::Debug for Tuple {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&crate::text::of(self.bytes()))
    }
}

impl PartialEq for Tuple {
    fn eq(&self, other: &Tuple) -> bool {
        self.is_same(other) || self.bytes() == other.bytes()
    }
}

impl Eq for Tuple {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_share_the_bytes_until_the_last_one_leaves() {
        assert_eq!(size_of::<Option<Tuple>>(), 8);
        for length in [0usize, 1, 7, 100] {
            let bytes: Vec<u8> = (0..length).map(|at| at as u8).collect();
            let tuple = Tuple::new(&bytes);
            let other = tuple.clone();
            assert!(tuple.is_same(&other));
            drop(tuple);
            assert_eq!((other.bytes(), other.memory()), (&bytes[..], length + 8));
        }
    }

    #[test]
    fn a_mark_changes_nothing_but_itself() {
        let tuple = Tuple::new(&[0x91, 7]);
        let other = tuple.clone();
        assert_eq!(tuple.mark(), 0);
        let mut marked = tuple;
        for mark in (0..MARK_BITS).map(|bit| 1 << bit).chain([(1 << MARK_BITS) - 1, 0x2_5a5a]) {
            marked = marked.marked(mark);
            assert_eq!((marked.mark(), marked.bytes()), (mark, &[0x91, 7][..]));
            assert!(marked.is_same(&other) && marked.clone().is_same(&other));
            assert_eq!(marked.clone().mark(), 0);
        }
    }

    #[test]
    fn threads_may_drop_owners_at_once() {
        let tuple = Tuple::new(&[0x93, 1, 2, 3]);
        let threads: Vec<_> = (0..3)
            .map(|_| {
                let tuple = tuple.clone();
                std::thread::spawn(move || (0..50).for_each(|_| drop(tuple.clone())))
            })
            .collect();
        drop(tuple);
        threads.into_iter().for_each(|thread| thread.join().expect("no thread panics"));
    }
}

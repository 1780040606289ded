//! Memory for a table's entries: slabs of one page, each cut into pieces of one size.
//!
//! Why not the global allocator: it rounds small sizes up to 16 bytes (a 24-byte entry costs 32),
//! and it pays for atomics when another thread frees an entry. A table is only touched under its
//! partition's lock, so its arena needs neither. Larger pieces come from [`Pieces`], in finer
//! sizes: an entry of 1,030 bytes would take 1,280 from the global allocator.
//!
//! ```text
//! slab (4 KiB, 4 KiB-aligned): [SlabHeader 64 B][piece][piece]...
//! ```
//!
//! # Soundness
//! A piece's slab is found by clearing the low bits of its address, which is right because slabs
//! are aligned to their size and only sizes up to `SMALL_BYTES_MAX` come from slabs. The caller
//! passes the same size to `free` as to `alloc` (entries know their size). A slab stays allocated
//! while any of its pieces lives (`live > 0`). Nothing here is shared between threads without the
//! owner's lock.

use crate::pieces::Pieces;
use crate::pieces::blocks::Blocks;
use allocator_api2::alloc::Allocator;
use std::alloc::{self, Layout};
use std::ptr::{self, NonNull};

const SLAB_BYTES: usize = 4096;
const HEADER_BYTES: usize = 64;
const STEP_BYTES: usize = 8;
/// Above this size, cutting a page wastes too much: each partition has a page of each size.
const SMALL_BYTES_MAX: usize = 128;
const CLASSES: usize = SMALL_BYTES_MAX / STEP_BYTES;

/// The source of slabs and of the tables' segments: memory in pages.
pub(crate) static PAGES: Blocks = Blocks::new(SLAB_BYTES);

/// Moving pieces is worth a walk if more than this fraction of the slabs is free
const SPARSE_SHARE: usize = 3;
/// and more than this many slabs have room, beyond one of each size.
const SPARSE_SLABS: u32 = 2;

#[repr(C)]
struct SlabHeader {
    next: *mut SlabHeader,
    previous: *mut SlabHeader,
    free: *mut u8,
    bump: u32,
    live: u32,
    class: u16,
    listed: bool,
}

const _: () = assert!(size_of::<SlabHeader>() <= HEADER_BYTES);

/// Allocates and frees the pieces of one table.
#[repr(C)]
pub(crate) struct Arena {
    bytes: usize,
    /// Bytes of pieces that are not in slabs.
    large_bytes: usize,
    /// Slabs that have room, beyond one of each size.
    sparse: u32,
    slabs: u32,
    /// A slab without pieces, kept so that one key coming and going is cheap.
    spare: *mut SlabHeader,
    /// Per size class, the slabs that have room.
    partial: [*mut SlabHeader; CLASSES],
}

// SAFETY: the slabs are owned by the arena alone; moving it to another thread moves them all.
unsafe impl Send for Arena {}

impl Arena {
    /// Bytes at its start that every change of an entry's size touches.
    pub(crate) const HOT_BYTES: usize = size_of::<usize>();

    pub(crate) fn new() -> Self {
        Arena {
            partial: [ptr::null_mut(); CLASSES],
            bytes: 0,
            large_bytes: 0,
            sparse: 0,
            slabs: 0,
            spare: ptr::null_mut(),
        }
    }

    /// Bytes handed out, after rounding.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The real size of a piece of `size` bytes.
    #[inline]
    pub(crate) fn rounded(size: usize) -> usize {
        if size > SMALL_BYTES_MAX {
            return Pieces::rounded(size);
        }
        size.next_multiple_of(STEP_BYTES)
    }

    /// A piece of at least `size` bytes (not zero), aligned to 8.
    #[inline]
    pub(crate) fn alloc(&mut self, size: usize) -> NonNull<u8> {
        debug_assert!(size > 0);
        self.bytes += Self::rounded(size);
        if size > SMALL_BYTES_MAX {
            self.large_bytes += Self::rounded(size);
            return large_alloc(size);
        }
        let class = (size - 1) / STEP_BYTES;
        let mut slab = self.partial[class];
        if slab.is_null() {
            slab = self.new_slab(class);
        }
        let piece_bytes = (class + 1) * STEP_BYTES;
        // SAFETY: slabs on the partial list are live and have a free or a never-used piece.
        unsafe {
            let piece = if (*slab).free.is_null() {
                let piece = slab.cast::<u8>().add((*slab).bump as usize);
                (*slab).bump += piece_bytes as u32;
                piece
            } else {
                let piece = (*slab).free;
                (*slab).free = piece.cast::<*mut u8>().read();
                piece
            };
            (*slab).live += 1;
            if (*slab).free.is_null() && (*slab).bump as usize + piece_bytes > SLAB_BYTES {
                self.unlist(slab);
            }
            NonNull::new_unchecked(piece)
        }
    }

    /// Frees a piece.
    ///
    /// # Safety
    /// `piece` came from this arena's `alloc` with a `size` that rounds to the same, and is not
    /// used any more.
    #[inline]
    pub(crate) unsafe fn free(&mut self, piece: NonNull<u8>, size: usize) {
        self.bytes -= Self::rounded(size);
        if size > SMALL_BYTES_MAX {
            self.large_bytes -= Self::rounded(size);
            // SAFETY: by contract, allocated by `large_alloc` with the same rounded size.
            return unsafe { Pieces.deallocate(piece, large_layout(size)) };
        }
        let slab = slab_of(piece);
        // SAFETY: the piece lives in a slab of this arena, see the head of the file.
        unsafe {
            let class = usize::from((*slab).class);
            debug_assert_eq!(class, (size - 1) / STEP_BYTES, "freed as it was allocated");
            debug_assert!((*slab).live > 0, "a piece of a slab without pieces");
            piece.as_ptr().cast::<*mut u8>().write((*slab).free);
            (*slab).free = piece.as_ptr();
            (*slab).live -= 1;
            if !(*slab).listed {
                self.list(slab);
            }
            if (*slab).live == 0 {
                self.unlist(slab);
                let spare = std::mem::replace(&mut self.spare, slab);
                self.give_back(spare);
            }
        }
    }

    /// Whether enough of the slabs is free for moving pieces to be worth a walk.
    pub(crate) fn is_sparse(&self) -> bool {
        self.sparse > SPARSE_SLABS
            && self.free_bytes() > self.slabs as usize * SLAB_BYTES / SPARSE_SHARE
    }

    /// Free bytes of small slabs.
    pub(crate) fn free_bytes(&self) -> usize {
        self.slabs as usize * SLAB_BYTES - (self.bytes - self.large_bytes)
    }

    /// Moves a piece into a slab with less room, if there is one; returns its new address.
    ///
    /// # Safety
    /// As for `free`; if the piece is moved, the caller forgets its old address.
    pub(crate) unsafe fn compact(
        &mut self,
        piece: NonNull<u8>,
        size: usize,
    ) -> Option<NonNull<u8>> {
        // SAFETY: by contract a live piece of this arena; the new one is as long and another's.
        unsafe {
            let is_sparse = if size > SMALL_BYTES_MAX {
                Pieces::is_sparse(piece, size)
            } else {
                self.is_in_sparse_slab(piece)
            };
            if !is_sparse {
                return None;
            }
            let moved = self.alloc(size);
            moved.copy_from_nonoverlapping(piece, size);
            self.free(piece, size);
            Some(moved)
        }
    }

    /// # Safety
    /// A live piece of one of this arena's slabs.
    unsafe fn is_in_sparse_slab(&self, piece: NonNull<u8>) -> bool {
        let slab = slab_of(piece);
        // SAFETY: by contract the slab is live.
        unsafe {
            // Moved pieces go to the head of the list.
            if !(*slab).listed || slab == self.partial[usize::from((*slab).class)] {
                return false;
            }
            let piece_bytes = (usize::from((*slab).class) + 1) * STEP_BYTES;
            let capacity = (SLAB_BYTES - HEADER_BYTES) / piece_bytes;
            (*slab).live as usize <= capacity - capacity / 4
        }
    }

    fn new_slab(&mut self, class: usize) -> *mut SlabHeader {
        let mut slab = std::mem::replace(&mut self.spare, ptr::null_mut());
        if slab.is_null() {
            let Some(block) = PAGES.allocate() else { alloc::handle_alloc_error(slab_layout()) };
            slab = block.cast::<SlabHeader>().as_ptr();
            self.slabs += 1;
        }
        // SAFETY: a new block is nobody's, nor is the spare one; the header fits at the front.
        unsafe {
            // The words of a table keep pointers as integers; see `table/word.rs`.
            slab.expose_provenance();
            slab.write(SlabHeader {
                next: ptr::null_mut(),
                previous: ptr::null_mut(),
                free: ptr::null_mut(),
                bump: HEADER_BYTES as u32,
                live: 0,
                class: class as u16,
                listed: false,
            });
            self.list(slab);
            slab
        }
    }

    /// # Safety
    /// `slab` is null, or a slab of this arena that is not listed and has no pieces.
    unsafe fn give_back(&mut self, slab: *mut SlabHeader) {
        if let Some(block) = NonNull::new(slab.cast::<u8>()) {
            self.slabs -= 1;
            // SAFETY: by contract.
            unsafe { PAGES.free(block) };
        }
    }

    /// # Safety
    /// `slab` is live and not listed.
    unsafe fn list(&mut self, slab: *mut SlabHeader) {
        // SAFETY: listed slabs are live.
        unsafe {
            let head = &mut self.partial[(*slab).class as usize];
            (*slab).next = *head;
            (*slab).previous = ptr::null_mut();
            if !head.is_null() {
                (**head).previous = slab;
                self.sparse += 1;
            }
            *head = slab;
            (*slab).listed = true;
        }
    }

    /// # Safety
    /// `slab` is live and listed.
    unsafe fn unlist(&mut self, slab: *mut SlabHeader) {
        // SAFETY: neighbours on the list are live.
        unsafe {
            if !(*slab).previous.is_null() || !(*slab).next.is_null() {
                self.sparse -= 1;
            }
            if (*slab).previous.is_null() {
                self.partial[(*slab).class as usize] = (*slab).next;
            } else {
                (*(*slab).previous).next = (*slab).next;
            }
            if !(*slab).next.is_null() {
                (*(*slab).next).previous = (*slab).previous;
            }
            (*slab).next = ptr::null_mut();
            (*slab).previous = ptr::null_mut();
            (*slab).listed = false;
        }
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        debug_assert_eq!(self.bytes, 0, "the owner frees its pieces first");
        debug_assert!(self.partial.iter().all(|slab| slab.is_null()));
        let spare = std::mem::replace(&mut self.spare, ptr::null_mut());
        // SAFETY: the spare slab has no pieces.
        unsafe { self.give_back(spare) };
    }
}

#[inline]
fn slab_of(piece: NonNull<u8>) -> *mut SlabHeader {
    piece.as_ptr().map_addr(|address| address & !(SLAB_BYTES - 1)).cast()
}

fn slab_layout() -> Layout {
    // SAFETY: a power of two, and the size is a multiple of it.
    const { unsafe { Layout::from_size_align_unchecked(SLAB_BYTES, SLAB_BYTES) } }
}

fn large_layout(size: usize) -> Layout {
    Layout::from_size_align(Arena::rounded(size), STEP_BYTES).expect("entries are under 4 GiB")
}

fn large_alloc(size: usize) -> NonNull<u8> {
    let layout = large_layout(size);
    let Ok(piece) = Pieces.allocate(layout) else { alloc::handle_alloc_error(layout) };
    let piece = piece.cast::<u8>();
    piece.as_ptr().expose_provenance();
    piece
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_do_not_overlap_and_come_back() {
        let mut arena = Arena::new();
        let mut live: Vec<(NonNull<u8>, usize, u8)> = Vec::new();
        let mut seed = 1u64;
        for round in 0..if cfg!(miri) { 600 } else { 20_000 } {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let random = (seed >> 33) as usize;
            if random % 5 < 3 || live.is_empty() {
                let size = 1 + random % if random.is_multiple_of(8) { 3000 } else { 400 };
                let piece = arena.alloc(size);
                // SAFETY: just allocated with this size.
                unsafe { piece.as_ptr().write_bytes(round as u8, size) };
                live.push((piece, size, round as u8));
            } else {
                let (piece, size, mark) = live.swap_remove(random % live.len());
                // SAFETY: allocated above, freed once.
                unsafe {
                    for index in 0..size {
                        assert_eq!(piece.as_ptr().add(index).read(), mark);
                    }
                    arena.free(piece, size);
                }
            }
        }
        for (piece, size, _) in live {
            // SAFETY: allocated above, freed once.
            unsafe { arena.free(piece, size) };
        }
        assert_eq!(arena.bytes(), 0);
    }
}

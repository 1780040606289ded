//! One lock's worth of slabs: see the head of `mod.rs`, which also says why this is sound.

use super::{GLOBAL_MAX, PIECE_MAX, STEP_BYTES};
use std::alloc::{self, Layout};
use std::ptr::{self, NonNull};

const SLAB_BYTES: usize = 64 << 10;
const HEADER_BYTES: usize = 64;
const CLASSES: usize = (PIECE_MAX - GLOBAL_MAX) / STEP_BYTES;

#[repr(C)]
struct Slab {
    next: *mut Slab,
    previous: *mut Slab,
    free: *mut u8,
    bump: u32,
    live: u32,
    class: u8,
    shard: u8,
    listed: bool,
    /// Whether the allocator was asked to align it.
    asked: bool,
}

const _: () = assert!(size_of::<Slab>() <= HEADER_BYTES && CLASSES <= 1 << 8);

/// Slabs with pieces.
pub(super) struct Shard {
    /// Per size, those that have room.
    partial: [*mut Slab; CLASSES],
    /// One that has no pieces, so that one value coming and going is cheap.
    spare: *mut Slab,
}

// SAFETY: the slabs are owned by the shard alone; moving it to another thread moves them all.
unsafe impl Send for Shard {}

/// The shard that a piece is of.
///
/// # Safety
/// The piece came from a shard's `allocate`, and is not freed.
#[inline]
pub(super) unsafe fn of_piece(piece: NonNull<u8>) -> usize {
    // SAFETY: by contract the slab is live, and the field does not change while it is.
    unsafe { usize::from((&raw const (*slab_of(piece)).shard).read()) }
}

#[inline]
fn slab_of(piece: NonNull<u8>) -> *mut Slab {
    piece.as_ptr().map_addr(|address| address & !(SLAB_BYTES - 1)).cast()
}

fn layout(asked: bool) -> Layout {
    const PAGE_BYTES: usize = 4096;
    let align = if asked { SLAB_BYTES } else { PAGE_BYTES };
    Layout::from_size_align(SLAB_BYTES, align).expect("all are constants")
}

/// Memory of a slab, aligned to its size, and whether that had to be asked for. mimalloc aligns
/// blocks of this size by itself, and takes twice as much for one when it is asked.
fn allocate_slab() -> Option<(*mut Slab, bool)> {
    // SAFETY: the layouts have a size, and what does not fit goes back as it came.
    unsafe {
        let memory = alloc::alloc(layout(false));
        if memory.addr().is_multiple_of(SLAB_BYTES) {
            return (!memory.is_null()).then_some((memory.cast(), false));
        }
        alloc::dealloc(memory, layout(false));
        let memory = alloc::alloc(layout(true));
        (!memory.is_null()).then_some((memory.cast(), true))
    }
}

/// # Safety
/// Made by `allocate_slab`, freed once, and has no pieces.
unsafe fn free_slab(slab: *mut Slab) {
    // SAFETY: by contract.
    unsafe {
        debug_assert_eq!((*slab).live, 0);
        alloc::dealloc(slab.cast(), layout((*slab).asked));
    }
}

impl Shard {
    pub(super) const fn new() -> Shard {
        Shard { partial: [ptr::null_mut(); CLASSES], spare: ptr::null_mut() }
    }

    /// A piece of so many bytes, whose slab says that it is of shard `own`; `None` when there is
    /// no memory.
    pub(super) fn allocate(&mut self, own: u8, bytes: usize) -> Option<NonNull<u8>> {
        let class = (bytes - GLOBAL_MAX - 1) / STEP_BYTES;
        let piece_bytes = GLOBAL_MAX + (class + 1) * STEP_BYTES;
        let mut slab = self.partial[class];
        if slab.is_null() {
            slab = self.new_slab(own, class)?;
        }
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
            Some(NonNull::new_unchecked(piece))
        }
    }

    /// Takes a piece back.
    ///
    /// # Safety
    /// The piece came from this shard's `allocate` and is not used any more.
    pub(super) unsafe fn free(&mut self, piece: NonNull<u8>) {
        let slab = slab_of(piece);
        // SAFETY: the piece lives in a slab of this shard.
        unsafe {
            piece.as_ptr().cast::<*mut u8>().write((*slab).free);
            (*slab).free = piece.as_ptr();
            (*slab).live -= 1;
            if !(*slab).listed {
                self.list(slab);
            }
            if (*slab).live == 0 {
                self.unlist(slab);
                self.give_back(slab);
            }
        }
    }

    fn new_slab(&mut self, own: u8, class: usize) -> Option<*mut Slab> {
        // SAFETY: the spare is live and has no pieces, a new slab is nobody's, and the header fits.
        unsafe {
            let (slab, asked) = if self.spare.is_null() {
                allocate_slab()?
            } else {
                let spare = std::mem::replace(&mut self.spare, ptr::null_mut());
                (spare, (*spare).asked)
            };
            slab.write(Slab {
                next: ptr::null_mut(),
                previous: ptr::null_mut(),
                free: ptr::null_mut(),
                bump: HEADER_BYTES as u32,
                live: 0,
                class: class as u8,
                shard: own,
                listed: false,
                asked,
            });
            self.list(slab);
            Some(slab)
        }
    }

    /// # Safety
    /// `slab` is live, not listed and has no pieces.
    unsafe fn give_back(&mut self, slab: *mut Slab) {
        if self.spare.is_null() {
            self.spare = slab;
        } else {
            // SAFETY: by contract.
            unsafe { free_slab(slab) };
        }
    }

    /// # Safety
    /// `slab` is live and not listed.
    unsafe fn list(&mut self, slab: *mut Slab) {
        // SAFETY: listed slabs are live.
        unsafe {
            let head = &mut self.partial[usize::from((*slab).class)];
            (*slab).next = *head;
            (*slab).previous = ptr::null_mut();
            if !head.is_null() {
                (**head).previous = slab;
            }
            *head = slab;
            (*slab).listed = true;
        }
    }

    /// # Safety
    /// `slab` is live and listed.
    unsafe fn unlist(&mut self, slab: *mut Slab) {
        // SAFETY: listed slabs are live, and so are their neighbours.
        unsafe {
            let (next, previous) = ((*slab).next, (*slab).previous);
            if previous.is_null() {
                self.partial[usize::from((*slab).class)] = next;
            } else {
                (*previous).next = next;
            }
            if !next.is_null() {
                (*next).previous = previous;
            }
            (*slab).listed = false;
        }
    }
}

#[cfg(test)]
impl Shard {
    /// Lets the spare slab go; panics if any other is there.
    pub(super) fn clear(&mut self) {
        assert!(self.partial.iter().all(|slab| slab.is_null()));
        let spare = std::mem::replace(&mut self.spare, ptr::null_mut());
        // SAFETY: live, and without pieces.
        unsafe { free_slab(spare) };
    }
}

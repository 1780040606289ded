//! One lock's worth of slabs: see the head of `mod.rs`, which also says why this is sound.

use super::blocks::Blocks;
use super::classes::{self, CLASSES};
use std::ptr::{self, NonNull};

pub(super) const SLAB_BYTES: usize = 64 << 10;
const HEADER_BYTES: usize = 64;

/// Where slabs come from.
pub(super) static SLABS: Blocks = Blocks::new(SLAB_BYTES);

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
}

const _: () = assert!(size_of::<Slab>() <= HEADER_BYTES && CLASSES <= 1 << 8);

/// Slabs with pieces.
pub(super) struct Shard {
    classes: [Class; CLASSES],
    /// Bytes of pieces in use.
    live: usize,
    slabs: usize,
}

/// Memory of a shard's slabs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    /// Bytes of pieces in use.
    pub(crate) live: usize,
    /// Bytes of slabs that are in no piece.
    pub(crate) free: usize,
    /// Bytes of slabs that would become free if each size's pieces were packed together.
    pub(crate) excess: usize,
}

/// All slabs with pieces of one size.
#[derive(Clone, Copy)]
struct Class {
    /// The slabs that have room.
    partial: *mut Slab,
    slabs: u32,
    live: u32,
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

/// How many pieces a slab holds.
#[inline]
fn capacity(class: usize) -> usize {
    (SLAB_BYTES - HEADER_BYTES) / classes::bytes(class)
}

impl Class {
    /// Number of slabs that would become free if the pieces were packed together.
    #[inline]
    fn excess(&self, class: usize) -> usize {
        self.slabs as usize - (self.live as usize).div_ceil(capacity(class))
    }
}

impl Shard {
    pub(super) const fn new() -> Shard {
        let class = Class { partial: ptr::null_mut(), slabs: 0, live: 0 };
        Shard { classes: [class; CLASSES], live: 0, slabs: 0 }
    }

    /// Sums up the slabs; reads each size.
    pub(super) fn totals(&self) -> Totals {
        self.debug_assert_sums();
        let slabs = self.classes.iter().enumerate().filter(|(_, class)| class.slabs != 0);
        let excess = slabs.map(|(number, class)| class.excess(number)).sum::<usize>() * SLAB_BYTES;
        Totals { live: self.live, free: self.slabs * SLAB_BYTES - self.live, excess }
    }

    /// The sums are those of the sizes.
    fn debug_assert_sums(&self) {
        if cfg!(debug_assertions) {
            let of = |(number, class): (usize, &Class)| {
                let (slabs, live) = (class.slabs as usize, class.live as usize);
                assert!(live <= slabs * capacity(number), "{live} pieces in {slabs} slabs");
                (slabs, live * classes::bytes(number))
            };
            let add = |sum: (usize, usize), more: (usize, usize)| (sum.0 + more.0, sum.1 + more.1);
            let sums = self.classes.iter().enumerate().map(of).fold((0, 0), add);
            assert_eq!(sums, (self.slabs, self.live), "slabs and bytes of all sizes");
        }
    }

    /// A piece of a class, whose slab records shard `own`; `None` if there is no memory.
    pub(super) fn allocate(&mut self, own: u8, class: usize) -> Option<NonNull<u8>> {
        let piece_bytes = classes::bytes(class);
        let mut slab = self.classes[class].partial;
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
            self.classes[class].live += 1;
            self.live += piece_bytes;
            if (*slab).free.is_null() && (*slab).bump as usize + piece_bytes > SLAB_BYTES {
                self.unlist(slab);
            }
            Some(NonNull::new_unchecked(piece))
        }
    }

    /// Frees a piece. Returns its slab if that is now empty. The caller gives the slab to [`SLABS`]
    /// after releasing the shard's lock, because a system call may follow, and a thread of low
    /// priority would hold up all threads that want the lock.
    ///
    /// # Safety
    /// The piece came from this shard's `allocate` and is not used any more.
    #[must_use]
    pub(super) unsafe fn free(&mut self, piece: NonNull<u8>, class: usize) -> Option<NonNull<u8>> {
        let slab = slab_of(piece);
        // SAFETY: the piece lives in a slab of this shard.
        unsafe {
            assert_eq!(class, usize::from((*slab).class), "a piece is freed as it was allocated");
            let piece_bytes = classes::bytes(class);
            piece.as_ptr().cast::<*mut u8>().write((*slab).free);
            (*slab).free = piece.as_ptr();
            (*slab).live -= 1;
            self.classes[class].live -= 1;
            self.live -= piece_bytes;
            if !(*slab).listed {
                self.list(slab);
            }
            if (*slab).live != 0 {
                return None;
            }
            self.unlist(slab);
            self.classes[class].slabs -= 1;
            self.slabs -= 1;
            NonNull::new(slab.cast())
        }
    }

    /// Whether the piece should move: its slab has fewer pieces than others of its size, which have
    /// room for them.
    ///
    /// # Safety
    /// The piece came from this shard's `allocate`, and is not freed.
    pub(super) unsafe fn is_sparse(&self, piece: NonNull<u8>) -> bool {
        let slab = slab_of(piece);
        // SAFETY: the piece lives in a slab of this shard.
        unsafe {
            let number = usize::from((*slab).class);
            let class = &self.classes[number];
            // Moved pieces go to the head of the list.
            (*slab).listed
                && slab != class.partial
                && class.excess(number) != 0
                && u64::from((*slab).live) * u64::from(class.slabs) <= u64::from(class.live)
        }
    }

    fn new_slab(&mut self, own: u8, class: usize) -> Option<*mut Slab> {
        let slab = SLABS.allocate()?.cast::<Slab>().as_ptr();
        // SAFETY: a new slab is nobody's, and the header fits.
        unsafe {
            slab.write(Slab {
                next: ptr::null_mut(),
                previous: ptr::null_mut(),
                free: ptr::null_mut(),
                bump: HEADER_BYTES as u32,
                live: 0,
                class: class as u8,
                shard: own,
                listed: false,
            });
            self.classes[class].slabs += 1;
            self.slabs += 1;
            self.list(slab);
            Some(slab)
        }
    }

    /// # Safety
    /// `slab` is live and not listed.
    unsafe fn list(&mut self, slab: *mut Slab) {
        // SAFETY: listed slabs are live.
        unsafe {
            let head = &mut self.classes[usize::from((*slab).class)].partial;
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
                self.classes[usize::from((*slab).class)].partial = next;
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
    /// Panics if there is any slab.
    pub(super) fn assert_empty(&self) {
        assert!(self.classes.iter().all(|class| class.partial.is_null() && class.slabs == 0));
        assert_eq!(self.totals(), Totals::default());
    }
}

//! One lock's worth of slabs: see the head of `mod.rs`, which also says why this is sound.

use super::{GLOBAL_MAX, PIECE_MAX, STEP_BYTES};
use std::alloc::{self, Layout};
use std::ptr::{self, NonNull};

const SLAB_BYTES: usize = 32 << 10;
const HEADER_BYTES: usize = 64;
/// A size that mimalloc cuts out of 4 MiB without a rest, and aligns to itself; with another, holes
/// lie between regions, which huge pages make resident. It is not asked to align to a slab, for
/// which it would take more: where that is needed, a region has a slab less.
const REGION_BYTES: usize = 512 << 10;
const CLASSES: usize = (PIECE_MAX - GLOBAL_MAX) / STEP_BYTES;

#[repr(C)]
struct Slab {
    next: *mut Slab,
    previous: *mut Slab,
    free: *mut u8,
    region: *mut Region,
    bump: u32,
    live: u32,
    class: u8,
    shard: u8,
    listed: bool,
}

const _: () = assert!(size_of::<Slab>() <= HEADER_BYTES && CLASSES <= 1 << 8);

/// Slabs that are allocated together.
struct Region {
    memory: *mut u8,
    /// The first of them.
    slabs: *mut u8,
    /// A bit for each slab that is in use, ...
    used: u64,
    /// ... and for each that the region has.
    all: u64,
}

/// Slabs with pieces.
pub(super) struct Shard {
    /// Per size, those that have room.
    partial: [*mut Slab; CLASSES],
    /// Those with a slab that is not in use.
    regions: Vec<*mut Region>,
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

fn region_layout() -> Layout {
    Layout::from_size_align(REGION_BYTES, 4096).expect("both are constants")
}

impl Region {
    fn allocate() -> Option<*mut Region> {
        // SAFETY: the layout has a size; the first slab's begin is within it.
        let (memory, slabs) = unsafe {
            let memory = alloc::alloc(region_layout());
            if memory.is_null() {
                return None;
            }
            (memory, memory.add(memory.addr().next_multiple_of(SLAB_BYTES) - memory.addr()))
        };
        let count = (REGION_BYTES - (slabs.addr() - memory.addr())) / SLAB_BYTES;
        Some(Box::into_raw(Box::new(Region { memory, slabs, used: 0, all: (1 << count) - 1 })))
    }

    /// # Safety
    /// Made by `allocate`, freed once, and none of its slabs is in use.
    unsafe fn free(region: *mut Region) {
        // SAFETY: by contract.
        unsafe {
            let region = Box::from_raw(region);
            debug_assert_eq!(region.used, 0);
            alloc::dealloc(region.memory, region_layout());
        }
    }

    fn is_full(&self) -> bool {
        self.used == self.all
    }
}

impl Shard {
    pub(super) const fn new() -> Shard {
        Shard { partial: [ptr::null_mut(); CLASSES], regions: Vec::new() }
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
        if self.regions.is_empty() {
            self.regions.push(Region::allocate()?);
        }
        let region = *self.regions.last()?;
        // SAFETY: regions in the list are live and have a slab that nobody uses.
        unsafe {
            let index = (*region).used.trailing_ones() as usize;
            (*region).used |= 1 << index;
            if (*region).is_full() {
                self.regions.pop();
            }
            let slab = (*region).slabs.add(index * SLAB_BYTES).cast::<Slab>();
            slab.write(Slab {
                next: ptr::null_mut(),
                previous: ptr::null_mut(),
                free: ptr::null_mut(),
                region,
                bump: HEADER_BYTES as u32,
                live: 0,
                class: class as u8,
                shard: own,
                listed: false,
            });
            self.list(slab);
            Some(slab)
        }
    }

    /// # Safety
    /// `slab` is not listed and has no pieces.
    unsafe fn give_back(&mut self, slab: *mut Slab) {
        // SAFETY: a slab's region is live.
        unsafe {
            let region = (*slab).region;
            let index = (slab.addr() - (*region).slabs.addr()) / SLAB_BYTES;
            if (*region).is_full() {
                self.regions.push(region);
            }
            (*region).used &= !(1 << index);
            // The last region stays, so that one value coming and going is cheap.
            if (*region).used == 0 && self.regions.len() > 1 {
                self.regions.retain(|&other| other != region);
                Region::free(region);
            }
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
    /// Slabs in regions that have a free one, and those regions.
    pub(super) fn slabs_and_regions(&self) -> (u32, usize) {
        // SAFETY: regions in the list are live.
        let used = self.regions.iter().map(|&region| unsafe { (*region).used.count_ones() }).sum();
        (used, self.regions.len())
    }

    /// Lets the last region go.
    pub(super) fn clear(&mut self) {
        for region in self.regions.drain(..) {
            // SAFETY: live, and without pieces as the caller says.
            unsafe {
                assert_eq!((*region).used, 0);
                Region::free(region);
            }
        }
    }
}

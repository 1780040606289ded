//! The allocator: mimalloc, fast with many threads; very long allocations have their own pages.
//!
//! mimalloc returns a long allocation to the system some time after it was freed, when a thread
//! allocates. A server that has just lost a value of 512 MB may not allocate, so long allocations
//! are mapped one by one, returned at once, and grown without a copy. When mimalloc moves a growing
//! allocation, the old memory, if it is long, is returned at once as well: the sizes that a buffer
//! outgrows on its way to 4 MiB add up to as much again.
//!
//! mimalloc aligns everything to eight bytes at least. When asked for an alignment, even of one, it
//! reserves a block with room for it, longer than the one asked for, unless the size is a power of
//! two: 24 bytes take 32, and 48 take 56, found by a slower way. So it is asked for larger alignments
//! only.
//!
//! # Soundness
//! The layout alone decides which of the two an allocation came from, and it is the same when the
//! allocation is freed. The old memory of a growing allocation is discarded while its owner, who
//! has copied it, still owns it; a discarded page reads as zeros. mimalloc's blocks begin at
//! multiples of eight, however small they are, and any of its functions may free or move what another
//! has reserved. `mi_collect` takes a flag and no
//! pointer, may be called at any time from any thread, and works on the calling thread's heap and
//! on shared data.

use ladon_platform::pages::{self, PAGE_BYTES};
use ladon_platform::{SystemProcess, Unused};
use libmimalloc_sys::{mi_malloc, mi_realloc, mi_zalloc};
use mimalloc::MiMalloc;
use std::alloc::{GlobalAlloc, Layout};
use std::ptr::{self, NonNull};

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

/// From this size on, the system call for an allocation costs little compared with filling it.
const MAPPED_BYTES_MIN: usize = 4 << 20;

/// The old memory of a growing mimalloc allocation is discarded from this size on; for less, that
/// costs more than the copy.
const LET_GO_BYTES_MIN: usize = 256 << 10;

/// What mimalloc aligns every block to.
const ALIGNED_TO: usize = 8;

struct Allocator;

/// Whether mimalloc need not be asked for the alignment.
#[inline]
fn is_aligned(layout: Layout) -> bool {
    layout.align() <= ALIGNED_TO
}

#[inline]
fn is_mapped(layout: Layout) -> bool {
    layout.size() >= MAPPED_BYTES_MIN && layout.align() <= PAGE_BYTES
}

/// Whether growing to `size` leaves much old memory: mimalloc has four sizes for each doubling, so
/// the allocation will move.
fn leaves_much(layout: Layout, size: usize) -> bool {
    layout.size() >= LET_GO_BYTES_MIN && size >= layout.size() + layout.size() / 4
}

/// Returns the memory of a mimalloc allocation, except the pages that it shares with others.
///
/// # Safety
/// The caller owns the allocation and does not need its content.
unsafe fn let_go(piece: NonNull<u8>, bytes: usize) {
    let begin = piece.addr().get().next_multiple_of(PAGE_BYTES) - piece.addr().get();
    let end = (piece.addr().get() + bytes) / PAGE_BYTES * PAGE_BYTES - piece.addr().get();
    // SAFETY: whole pages within the piece; it is longer than two. If the system refuses, they stay
    // as they are.
    unsafe { pages::discard(piece.add(begin), end - begin) };
}

/// Whole pages; a layout is far from overflowing.
fn paged(bytes: usize) -> usize {
    bytes.next_multiple_of(PAGE_BYTES)
}

// SAFETY: each piece is mapped or mimalloc's, by its layout; see the head of the file.
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if is_mapped(layout) {
            return pages::map(paged(layout.size())).map_or(ptr::null_mut(), NonNull::as_ptr);
        }
        // SAFETY: by contract; any size will do for mimalloc.
        unsafe {
            if is_aligned(layout) {
                mi_malloc(layout.size()).cast()
            } else {
                MiMalloc.alloc(layout)
            }
        }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if is_mapped(layout) {
            return pages::map(paged(layout.size())).map_or(ptr::null_mut(), NonNull::as_ptr);
        }
        // SAFETY: by contract; any size will do for mimalloc.
        unsafe {
            if is_aligned(layout) {
                mi_zalloc(layout.size()).cast()
            } else {
                MiMalloc.alloc_zeroed(layout)
            }
        }
    }

    #[inline]
    unsafe fn dealloc(&self, piece: *mut u8, layout: Layout) {
        // SAFETY: by contract, and its layout says where it came from.
        unsafe {
            match NonNull::new(piece) {
                Some(piece) if is_mapped(layout) => pages::unmap(piece, paged(layout.size())),
                _ => MiMalloc.dealloc(piece, layout),
            }
        }
    }

    #[inline]
    unsafe fn realloc(&self, piece: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: by contract, `size` makes a layout with the same alignment.
        let new = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        // SAFETY: by contract, and its layout says where it came from; the copy is as long as the
        // shorter of the two.
        unsafe {
            match (NonNull::new(piece), is_mapped(layout), is_mapped(new)) {
                (Some(piece), true, true) => {
                    let moved = pages::remap(piece, paged(layout.size()), paged(size));
                    moved.map_or(ptr::null_mut(), NonNull::as_ptr)
                }
                (Some(old), was_mapped, is_mapped)
                    if was_mapped != is_mapped || leaves_much(layout, size) =>
                {
                    let moved = self.alloc(new);
                    if !moved.is_null() {
                        moved.copy_from_nonoverlapping(piece, size.min(layout.size()));
                        if !was_mapped && layout.size() >= LET_GO_BYTES_MIN {
                            let_go(old, layout.size());
                        }
                        self.dealloc(piece, layout);
                    }
                    moved
                }
                _ if is_aligned(layout) => mi_realloc(piece.cast(), size).cast(),
                _ => MiMalloc.realloc(piece, layout, size),
            }
        }
    }
}

/// The process, with this allocator.
pub fn process() -> SystemProcess {
    SystemProcess { allocator: "mimalloc", purge_memory: Some(purge) }
}

fn purge(unused: Unused) {
    ladon_engine::purge_memory(unused == Unused::All);
    // Without force, it returns only memory that was unused for mimalloc's own delay, a second; by
    // itself, it checks only when a thread needs fresh memory.
    // SAFETY: see above.
    unsafe { libmimalloc_sys::mi_collect(unused == Unused::All) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_keep_their_bytes_across_the_border() {
        let mut piece: Vec<u8> = Vec::new();
        for length in [1000, MAPPED_BYTES_MIN - 1, MAPPED_BYTES_MIN, 9 << 20, 64 << 20] {
            let before = piece.len();
            piece.resize(length, (length % 251) as u8);
            piece.shrink_to_fit();
            assert!(piece[before..].iter().all(|&byte| byte == (length % 251) as u8));
            assert!(before == 0 || piece[0] == (1000 % 251) as u8);
        }
        for length in [30 << 20, MAPPED_BYTES_MIN, MAPPED_BYTES_MIN - 1, 10] {
            piece.truncate(length);
            piece.shrink_to_fit();
            assert_eq!(piece[9], (1000 % 251) as u8);
        }
        assert!(vec![0u8; 5 << 20].iter().all(|&byte| byte == 0));
    }

    /// The sizes on which `.cargo/config.toml` and [`is_aligned`] have a say.
    #[test]
    fn small_pieces_take_the_next_multiple_of_eight_bytes() {
        for bytes in 1..=64usize {
            // Several, for the first of a size is found by another way.
            let pieces: Vec<Vec<u8>> = (0..100).map(|_| Vec::with_capacity(bytes)).collect();
            for piece in &pieces {
                // SAFETY: a block of mimalloc's, which lives.
                let taken = unsafe { libmimalloc_sys::mi_usable_size(piece.as_ptr().cast()) };
                assert_eq!(taken, bytes.next_multiple_of(8), "{bytes} bytes");
            }
        }
    }

    #[test]
    fn every_alignment_is_kept() {
        for align in [1, 2, 4, 8, 16, 32, 64, 4096] {
            for size in [1, 8, 24, 40, 48, 100, 1000, 5000] {
                let layout = Layout::from_size_align(size, align).expect("a layout");
                for _ in 0..50 {
                    // SAFETY: the layout is not empty; the piece grows, and is freed as it was
                    // grown.
                    unsafe {
                        let piece = ALLOCATOR.alloc_zeroed(layout);
                        assert_eq!(piece.addr() % align, 0, "{layout:?}");
                        let grown = ALLOCATOR.realloc(piece, layout, 2 * size);
                        assert_eq!(grown.addr() % align, 0, "{layout:?}");
                        let layout = Layout::from_size_align_unchecked(2 * size, align);
                        ALLOCATOR.dealloc(grown, layout);
                    }
                }
            }
        }
    }
}

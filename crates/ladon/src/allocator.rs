//! The allocator: mimalloc, fast with many threads; what is very long has pages of its own.
//!
//! mimalloc returns a long piece of memory to the system some time after it was freed, when a thread
//! comes by that wants some. A server that has just lost a value of 512 MB wants none, so such pieces
//! are mapped one by one, go back at once, and grow without a copy. A piece that is still mimalloc's
//! and grows leaves its old memory behind; if that is long, it goes back at once as well: all that a
//! buffer outgrows on its way to 4 MiB is as much again.
//!
//! # Soundness
//! Which of the two a piece came from follows from its layout alone, which is the same when it is
//! freed. What a growing piece leaves is let go while it is still its owner's, who has copied it; a
//! page that was let go reads as zeros. `mi_collect` takes a flag and no pointer, may be called at any time from any thread, and
//! works on the calling thread's heap and what is shared.

use ladon_platform::pages::{self, PAGE_BYTES};
use ladon_platform::{SystemProcess, Unused};
use mimalloc::MiMalloc;
use std::alloc::{GlobalAlloc, Layout};
use std::ptr::{self, NonNull};

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

/// From here on, what the system takes for a piece is little beside what filling it takes.
const MAPPED_BYTES_MIN: usize = 4 << 20;

/// What a growing piece of mimalloc's leaves is let go from here on; below, that costs more than
/// copying it did.
const LET_GO_BYTES_MIN: usize = 256 << 10;

struct Allocator;

#[inline]
fn is_mapped(layout: Layout) -> bool {
    layout.size() >= MAPPED_BYTES_MIN && layout.align() <= PAGE_BYTES
}

/// Whether a piece that grows to `size` leaves much memory behind: mimalloc has four sizes for each
/// doubling, so that it will move.
fn leaves_much(layout: Layout, size: usize) -> bool {
    layout.size() >= LET_GO_BYTES_MIN && size >= layout.size() + layout.size() / 4
}

/// Gives the memory of a piece of mimalloc's back, but for the pages that it shares with others.
///
/// # Safety
/// The caller owns the piece and does not need what is in it.
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
        // SAFETY: by contract.
        unsafe { MiMalloc.alloc(layout) }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if is_mapped(layout) {
            return pages::map(paged(layout.size())).map_or(ptr::null_mut(), NonNull::as_ptr);
        }
        // SAFETY: by contract.
        unsafe { MiMalloc.alloc_zeroed(layout) }
    }

    #[inline]
    unsafe fn dealloc(&self, piece: *mut u8, layout: Layout) {
        // SAFETY: by contract, and it came from where its layout says.
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
        // SAFETY: by contract, and it came from where its layout says; what moves from one to the
        // other is as long as the shorter of the two.
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
    // Without force it looks only at what its own delay for unused memory, a second, has passed for;
    // but it looks by itself only when a thread needs fresh memory.
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
}

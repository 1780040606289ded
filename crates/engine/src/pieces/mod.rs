//! Memory for packed values and for longer entries, in sizes that fit.
//!
//! General-purpose allocators have four sizes for each doubling, so that a value of 540 bytes takes
//! 640, and one of 1,030 takes 1,280. Such values are most of what a server of hashes, lists and
//! documents holds, and each keeps its piece for long; here pieces come in steps of sixteen bytes up
//! to 2 KiB, and of a sixteenth up to 32 KiB. Smaller and larger ones come from the global allocator.
//!
//! Slabs know how full they are, so that what is left of data that has shrunk can be moved together
//! (`compact.rs`): [`Pieces::is_sparse`] says what had better lie elsewhere.
//!
//! ```text
//! shard    a lock, and per size the slabs with room; threads are dealt out over the shards
//! slab     64 KiB, aligned to its size: [header 64 B][piece][piece]...      all of one size
//! ```
//!
//! # Soundness
//! A piece's slab is found by clearing the low bits of its address, which is right because slabs
//! are aligned to their size and the size that `deallocate` is told is the one that `allocate` was
//! told, so that both know alike whether the piece is of a slab. A slab's `shard` is written before
//! its first piece is handed out and stays until the last one is back, so it may be read without
//! the lock by whoever owns a piece; all else in a header is read and written under the lock of
//! that shard. A slab stays allocated while any of its pieces lives; once it is off its shard's lists it
//! belongs to the thread that freed the last piece.

pub(crate) mod blocks;
mod classes;
mod shard;

use allocator_api2::alloc::{AllocError, Allocator, Global, Layout};
use blocks::Blocks;
use classes::{GLOBAL_MAX, PIECE_MAX, STEP_BYTES};
use parking_lot::Mutex;
use shard::{SLABS, Shard};
use std::cell::Cell;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

pub(crate) use shard::Totals;

/// More would only spread slabs that are not full over more threads.
const SHARDS: usize = 16;

static ALL: [Mutex<Shard>; SHARDS] = [const { Mutex::new(Shard::new()) }; SHARDS];

/// Hands out the memory of packed values.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pieces;

impl Pieces {
    /// What a request for so many bytes takes: to ask for less is to waste the rest.
    pub(crate) fn rounded(bytes: usize) -> usize {
        /// Sizes as mimalloc has them: every eighth byte up to 64, then four for each doubling.
        const FINE_MAX: usize = 64;
        match bytes {
            0..=FINE_MAX => bytes.next_multiple_of(8),
            _ if is_piece(bytes) => classes::bytes(classes::of_bytes(bytes)),
            _ => bytes.checked_next_multiple_of(global_step(bytes)).unwrap_or(bytes),
        }
    }

    /// Whether memory would be saved if this piece's bytes lay elsewhere, and somewhere there is
    /// room for them. Never for what the global allocator gave.
    ///
    /// # Safety
    /// The piece came from `allocate` with a size that rounds to the same, and is not freed.
    pub(crate) unsafe fn is_sparse(piece: NonNull<u8>, bytes: usize) -> bool {
        // SAFETY: by contract, a live piece of the shard that its slab names.
        is_piece(bytes) && unsafe { ALL[shard::of_piece(piece)].lock().is_sparse(piece) }
    }

    /// What all slabs take; some microseconds.
    pub(crate) fn totals() -> Totals {
        ALL.iter().fold(Totals::default(), |sum, shard| {
            let shard = shard.lock().totals();
            Totals {
                live: sum.live + shard.live,
                free: sum.free + shard.free,
                excess: sum.excess + shard.excess,
            }
        })
    }

    /// Where the slabs come from.
    pub(crate) fn blocks() -> &'static Blocks {
        &SLABS
    }
}

#[inline]
fn is_piece(bytes: usize) -> bool {
    bytes > GLOBAL_MAX && bytes <= PIECE_MAX
}

/// How far the global allocator's sizes are apart there.
#[inline]
fn global_step(bytes: usize) -> usize {
    1 << (bytes - 1).ilog2().saturating_sub(2)
}

/// The shard that this thread takes pieces from.
fn own_shard() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local!(static OWN: Cell<usize> = const { Cell::new(usize::MAX) });
    OWN.with(|own| {
        if own.get() == usize::MAX {
            own.set(NEXT.fetch_add(1, Relaxed) % SHARDS);
        }
        own.get()
    })
}

// SAFETY: a piece stays where it is until it is deallocated, by a copy of `Pieces` as good as any
// other; see the head of the file. What is no piece is the global allocator's.
unsafe impl Allocator for Pieces {
    fn allocate(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
        if !is_piece(layout.size()) || layout.align() > STEP_BYTES {
            return Global.allocate(layout);
        }
        let own = own_shard();
        let class = classes::of_bytes(layout.size());
        let piece = ALL[own].lock().allocate(own as u8, class).ok_or(AllocError)?;
        Ok(NonNull::slice_from_raw_parts(piece, layout.size()))
    }

    unsafe fn deallocate(&self, piece: NonNull<u8>, layout: Layout) {
        // SAFETY: by contract the layout is that of `allocate`, so this is where it came from.
        unsafe {
            if !is_piece(layout.size()) || layout.align() > STEP_BYTES {
                return Global.deallocate(piece, layout);
            }
            let empty = ALL[shard::of_piece(piece)].lock().free(piece);
            if let Some(slab) = empty {
                SLABS.free(slab);
            }
        }
    }
}

#[cfg(test)]
mod tests;

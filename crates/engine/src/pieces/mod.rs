//! Memory for packed values and for longer entries, in fine-grained sizes.
//!
//! General-purpose allocators have four sizes for each doubling, so that a value of 540 bytes takes
//! 640, and one of 1,030 takes 1,280. A server of hashes, lists and documents holds mostly such
//! values, and keeps them for long. Here pieces come in steps of sixteen bytes up to 2 KiB, and of
//! a sixteenth up to 32 KiB. Smaller and larger ones come from the global allocator.
//!
//! Slabs know how full they are, so that the remains of shrunken data can be moved together
//! (`compact.rs`): [`Pieces::is_sparse`] says which pieces should move.
//!
//! ```text
//! shard    a lock, and per size the slabs with room; threads are distributed over the shards
//! slab     64 KiB, aligned to its size: [header 64 B][piece][piece]...      all of one size
//! ```
//!
//! # Soundness
//! A piece's slab is found by clearing the low bits of its address. That is right because slabs are
//! aligned to their size, and `deallocate` gets the same size as `allocate`, so that both agree
//! whether the piece is in a slab. A slab's `shard` is written before its first piece is handed out
//! and stays until the last one is back, so the owner of a piece may read it without the lock.
//! Everything else in a header is read and written under the lock of that shard. A slab stays
//! allocated while any of its pieces lives. Once it is off its shard's lists, it belongs to the
//! thread that freed the last piece.

pub(crate) mod blocks;
mod classes;
mod shard;
mod touch_ahead;

use allocator_api2::alloc::{AllocError, Allocator, Global, Layout};
use blocks::Blocks;
use classes::{GLOBAL_MAX, PIECE_MAX, STEP_BYTES};
use parking_lot::Mutex;
use shard::{SLABS, Shard};
use std::cell::Cell;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

pub(crate) use shard::Totals;
pub(crate) use touch_ahead::touch_ahead;

/// More shards would only spread partly filled slabs over more threads.
const SHARDS: usize = 16;

static ALL: [Mutex<Shard>; SHARDS] = [const { Mutex::new(Shard::new()) }; SHARDS];

/// Allocates the memory of packed values.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pieces;

impl Pieces {
    /// The real size of an allocation of this many bytes; a smaller request would waste the rest.
    pub(crate) fn rounded(bytes: usize) -> usize {
        /// mimalloc's sizes: every eighth byte up to 64, then four for each doubling.
        const FINE_MAX: usize = 64;
        match bytes {
            0..=FINE_MAX => bytes.next_multiple_of(8),
            _ if is_piece(bytes) => classes::bytes(classes::of_bytes(bytes)),
            _ => bytes.checked_next_multiple_of(global_step(bytes)).unwrap_or(bytes),
        }
    }

    /// Whether moving this piece's bytes would save memory, and other slabs have room for them.
    /// Never for memory from the global allocator.
    ///
    /// # Safety
    /// The piece came from `allocate` with a size that rounds to the same, and is not freed.
    pub(crate) unsafe fn is_sparse(piece: NonNull<u8>, bytes: usize) -> bool {
        // SAFETY: by contract, a live piece of the shard that its slab names.
        is_piece(bytes) && unsafe { ALL[shard::of_piece(piece)].lock().is_sparse(piece) }
    }

    /// Memory of all slabs; takes some microseconds.
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

    /// The source of the slabs.
    pub(crate) fn blocks() -> &'static Blocks {
        &SLABS
    }
}

#[inline]
fn is_piece(bytes: usize) -> bool {
    bytes > GLOBAL_MAX && bytes <= PIECE_MAX
}

/// Distance between the global allocator's sizes at this size.
#[inline]
fn global_step(bytes: usize) -> usize {
    1 << (bytes - 1).ilog2().saturating_sub(2)
}

/// The shard from which this thread allocates.
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
            let class = classes::of_bytes(layout.size());
            let empty = ALL[shard::of_piece(piece)].lock().free(piece, class);
            if let Some(slab) = empty {
                SLABS.free(slab);
            }
        }
    }
}

#[cfg(test)]
mod tests;

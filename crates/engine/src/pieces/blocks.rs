//! Blocks of one size for slabs and segments. The memory of unused blocks returns to the system one
//! by one.
//!
//! Why not the global allocator: it cuts blocks of this size out of its own pages of up to 4 MiB,
//! and returns such a page only when all of its blocks are free. After nine of ten keys were
//! deleted at random, hardly any page is.
//!
//! ```text
//! region  64 MiB of address space: [block][block]...[never used yet]
//! dirty   free blocks that still have their memory, a few MiB at most; reused first, newest first
//! clean   free blocks without memory
//! ```
//!
//! A region has huge pages, which make it faster to read, until the first of its blocks is
//! discarded: the system would fill the holes again to restore the huge pages.
//!
//! # Soundness
//! A block has one user at a time: it is taken from a list, or from the end of the region, under
//! the lock. Only blocks that are on no list are discarded, before they are put on the list of
//! clean ones. Under Miri, which has no address space to reserve, blocks come from the global
//! allocator.

use parking_lot::Mutex;
use std::alloc::Layout;
#[cfg(not(miri))]
use std::collections::BTreeSet;
use std::ptr::NonNull;
#[cfg(test)]
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Free blocks keep their memory up to this total, so that blocks that come and go cause no page
/// faults.
const DIRTY_BYTES_MAX: usize = 2 << 20;
/// Number of blocks discarded together.
const DISCARDED_AT_ONCE: usize = 16;
#[cfg(not(miri))]
const REGION_BYTES: usize = 64 << 20;

/// Hands out blocks of `block_bytes`, aligned to that.
pub(crate) struct Blocks {
    block_bytes: usize,
    state: Mutex<State>,
    #[cfg(test)]
    taken: AtomicUsize,
}

struct State {
    dirty: Vec<Block>,
    clean: Vec<Block>,
    /// Smallest number of dirty blocks since the last `purge`.
    fewest: usize,
    /// The part of the region that was never used.
    #[cfg(not(miri))]
    unused: Option<(NonNull<u8>, usize)>,
    /// Regions from which nothing was ever discarded; these have huge pages.
    #[cfg(not(miri))]
    huge: BTreeSet<usize>,
}

#[derive(Clone, Copy)]
struct Block(NonNull<u8>);

// SAFETY: a block on a list is nobody's; whoever takes it off has it alone.
unsafe impl Send for Block {}
#[cfg(not(miri))]
// SAFETY: as above, of the region's rest.
unsafe impl Send for State {}

impl Blocks {
    pub(crate) const fn new(block_bytes: usize) -> Blocks {
        let state = State {
            dirty: Vec::new(),
            clean: Vec::new(),
            fewest: 0,
            #[cfg(not(miri))]
            unused: None,
            #[cfg(not(miri))]
            huge: BTreeSet::new(),
        };
        Blocks {
            block_bytes,
            state: Mutex::new(state),
            #[cfg(test)]
            taken: AtomicUsize::new(0),
        }
    }

    /// A block with arbitrary content; `None` if there is no memory.
    pub(crate) fn allocate(&self) -> Option<NonNull<u8>> {
        self.take().map(|(block, _)| block)
    }

    /// A block of zeros.
    pub(crate) fn allocate_zeroed(&self) -> Option<NonNull<u8>> {
        let (block, is_zero) = self.take()?;
        if !is_zero {
            // SAFETY: just taken, and so long.
            unsafe { block.write_bytes(0, self.block_bytes) };
        }
        Some(block)
    }

    /// Frees a block.
    ///
    /// # Safety
    /// It came from these blocks and is not used any more.
    pub(crate) unsafe fn free(&self, block: NonNull<u8>) {
        #[cfg(test)]
        self.taken.fetch_sub(1, Relaxed);
        if cfg!(miri) {
            // SAFETY: by contract, and under Miri that is where it came from.
            return unsafe { std::alloc::dealloc(block.as_ptr(), self.layout()) };
        }
        let mut state = self.state.lock();
        state.dirty.push(Block(block));
        if state.dirty.len() * self.block_bytes > DIRTY_BYTES_MAX {
            let oldest: Vec<Block> = state.dirty.drain(..DISCARDED_AT_ONCE).collect();
            state.fewest = state.fewest.saturating_sub(DISCARDED_AT_ONCE);
            drop(state);
            self.discard(oldest);
        }
    }

    /// Returns the memory of all free blocks, or of those unused since the last call.
    pub(crate) fn purge(&self, all: bool) {
        let unwanted = {
            let mut state = self.state.lock();
            let count = if all { state.dirty.len() } else { state.fewest };
            let unwanted: Vec<Block> = state.dirty.drain(..count).collect();
            state.fewest = state.dirty.len();
            unwanted
        };
        if !unwanted.is_empty() {
            self.discard(unwanted);
        }
    }

    /// Bytes of the blocks that are in use.
    #[cfg(test)]
    pub(crate) fn taken_bytes(&self) -> usize {
        self.taken.load(Relaxed) * self.block_bytes
    }

    /// Bytes of free blocks that still have their memory.
    pub(crate) fn dirty_bytes(&self) -> usize {
        self.state.lock().dirty.len() * self.block_bytes
    }

    fn layout(&self) -> Layout {
        Layout::from_size_align(self.block_bytes, self.block_bytes).expect("a power of two")
    }

    /// A block, and whether it is all zeros.
    fn take(&self) -> Option<(NonNull<u8>, bool)> {
        let block = if cfg!(miri) {
            // SAFETY: the layout has a size.
            NonNull::new(unsafe { std::alloc::alloc(self.layout()) }).map(|block| (block, false))
        } else {
            self.state.lock().take(self.block_bytes)
        };
        #[cfg(test)]
        self.taken.fetch_add(usize::from(block.is_some()), Relaxed);
        block
    }

    /// Discards blocks that are on no list, neighbours together, and lists them. No system call is
    /// made under the lock, because the calling thread may have a low priority.
    fn discard(&self, mut blocks: Vec<Block>) {
        blocks.sort_unstable_by_key(|block| block.0);
        #[cfg(not(miri))]
        for run in blocks.chunk_by(|a, b| a.0.addr().get() + self.block_bytes == b.0.addr().get()) {
            // SAFETY: whole blocks of a region, one after the other, which are nobody's now.
            let is_zero =
                unsafe { ladon_platform::pages::discard(run[0].0, run.len() * self.block_bytes) };
            let regions = self.state.lock().take_huge(run);
            for region in regions {
                // The system must not fill the holes.
                ladon_platform::pages::forbid_huge(region, REGION_BYTES);
            }
            let mut state = self.state.lock();
            let list = if is_zero { &mut state.clean } else { &mut state.dirty };
            list.extend_from_slice(run);
        }
    }
}

impl State {
    #[cfg(miri)]
    fn take(&mut self, _: usize) -> Option<(NonNull<u8>, bool)> {
        None
    }

    /// The regions of these blocks that have huge pages, which they now lose.
    #[cfg(not(miri))]
    fn take_huge(&mut self, blocks: &[Block]) -> Vec<NonNull<u8>> {
        let mut regions = Vec::new();
        for block in blocks {
            let offset = block.0.addr().get() % REGION_BYTES;
            if self.huge.remove(&(block.0.addr().get() - offset)) {
                // SAFETY: regions are aligned to their size, and this one is listed as a whole.
                regions.push(unsafe { block.0.sub(offset) });
            }
        }
        regions
    }

    #[cfg(not(miri))]
    fn take(&mut self, block_bytes: usize) -> Option<(NonNull<u8>, bool)> {
        if let Some(Block(block)) = self.dirty.pop() {
            self.fewest = self.fewest.min(self.dirty.len());
            return Some((block, false));
        }
        if let Some(Block(block)) = self.clean.pop() {
            return Some((block, true));
        }
        let (begin, left) = match self.unused {
            Some(unused) => unused,
            None => match ladon_platform::pages::reserve(REGION_BYTES, REGION_BYTES) {
                Some(begin) => {
                    self.huge.insert(begin.addr().get());
                    (begin, REGION_BYTES)
                }
                // Address space is scarce.
                None => {
                    let bytes = 16 * block_bytes;
                    (ladon_platform::pages::reserve(bytes, block_bytes)?, bytes)
                }
            },
        };
        begin.as_ptr().expose_provenance();
        let left = left - block_bytes;
        // SAFETY: `left` bytes of the region follow this block.
        self.unused = (left != 0).then(|| (unsafe { begin.add(block_bytes) }, left));
        Some((begin, true))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As 64 KiB blocks of the slabs.
    const BYTES: usize = 64 << 10;

    #[test]
    fn blocks_do_not_overlap_and_come_back_as_they_shall() {
        let blocks = Blocks::new(BYTES);
        let count = if cfg!(miri) { 5 } else { 100 };
        let mut all: Vec<NonNull<u8>> = (0..count).map(|_| blocks.allocate().unwrap()).collect();
        for (number, block) in all.iter().enumerate() {
            assert!(block.as_ptr().addr().is_multiple_of(BYTES));
            // SAFETY: taken above.
            unsafe { block.write_bytes(number as u8 + 1, BYTES) };
        }
        all.sort();
        assert!(all.windows(2).all(|pair| pair[0].addr().get() + BYTES <= pair[1].addr().get()));
        assert_eq!(blocks.taken_bytes(), count * BYTES);
        // SAFETY: taken above, freed once.
        all.drain(..).for_each(|block| unsafe { blocks.free(block) });
        assert_eq!(blocks.taken_bytes(), 0);
        assert!(blocks.dirty_bytes() <= DIRTY_BYTES_MAX);
        for _ in 0..count {
            let block = blocks.allocate_zeroed().unwrap();
            // SAFETY: just taken.
            let bytes = unsafe { std::slice::from_raw_parts(block.as_ptr(), BYTES) };
            assert!(bytes.iter().all(|&byte| byte == 0));
            all.push(block);
        }
        // SAFETY: taken above, freed once.
        all.drain(..).for_each(|block| unsafe { blocks.free(block) });
    }

    #[test]
    #[cfg_attr(miri, ignore = "nothing is kept there")]
    fn what_nobody_wants_is_given_back_at_the_second_look() {
        let blocks = Blocks::new(BYTES);
        let taken: Vec<_> = (0..10).map(|_| blocks.allocate().unwrap()).collect();
        // SAFETY: taken above, freed once.
        taken.into_iter().for_each(|block| unsafe { blocks.free(block) });
        blocks.purge(false);
        assert_eq!(blocks.dirty_bytes(), 10 * BYTES, "they may be wanted in a moment");
        let in_use = blocks.allocate().unwrap();
        blocks.purge(false);
        assert_eq!(blocks.dirty_bytes(), 0);
        // SAFETY: taken above, freed once.
        unsafe { blocks.free(in_use) };
        blocks.purge(true);
        assert_eq!(blocks.dirty_bytes(), 0);
    }
}

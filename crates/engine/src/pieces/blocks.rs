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
//! The first touch of a huge page clears 2 MiB: a quarter of a millisecond, and twenty times that
//! on a virtual machine whose host has not backed the memory yet. So another thread touches the
//! next huge page before a client's thread needs it (`touch_ahead.rs`).
//!
//! # Soundness
//! A block has one user at a time: it is taken from a list, or from the end of the region, under
//! the lock. Only blocks that are on no list are discarded, before they are put on the list of
//! clean ones. Under Miri, which has no address space to reserve, blocks come from the global
//! allocator.

#[cfg(not(miri))]
use super::touch_ahead;
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
/// A huge page, of all processors that matter here.
#[cfg(not(miri))]
const HUGE_BYTES: usize = 2 << 20;
/// The next huge page is touched when less than this of the last one is unused: the time to load
/// this much is what the other thread has.
#[cfg(not(miri))]
const TOUCHED_BYTES_MIN: usize = HUGE_BYTES / 2;

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
    unused: Option<Unused>,
    /// The region after that, reserved when all of the last one is touched.
    #[cfg(not(miri))]
    next: Option<Unused>,
    /// Regions from which nothing was ever discarded; these have huge pages.
    #[cfg(not(miri))]
    huge: BTreeSet<usize>,
}

/// Memory of a region that was never used.
#[cfg(not(miri))]
#[derive(Clone, Copy)]
struct Unused {
    begin: NonNull<u8>,
    bytes: usize,
    /// How many bytes from `begin` on were touched, or are being touched: up to the end of a huge
    /// page.
    touched: usize,
}

#[derive(Clone, Copy)]
struct Block(NonNull<u8>);

// SAFETY: a block on a list is nobody's; the thread that takes it off has it alone.
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
            next: None,
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
            self.take_of_region()
        };
        #[cfg(test)]
        self.taken.fetch_add(usize::from(block.is_some()), Relaxed);
        block
    }

    #[cfg(miri)]
    fn take_of_region(&self) -> Option<(NonNull<u8>, bool)> {
        None
    }

    #[cfg(not(miri))]
    fn take_of_region(&self) -> Option<(NonNull<u8>, bool)> {
        let mut state = self.state.lock();
        let (block, is_zero, is_new) = state.take(self.block_bytes)?;
        let is_late = is_new && state.wants_touch();
        drop(state);
        if is_late {
            touch_ahead::request();
        }
        Some((block, is_zero))
    }

    /// Touches the next huge page if it will be needed soon. `false` if there is nothing to do now.
    #[cfg(not(miri))]
    pub(super) fn touch_next(&self) -> bool {
        let mut state = self.state.lock();
        if !state.wants_touch() {
            return false;
        }
        let page = state.touch_next();
        drop(state);
        let Some(page) = page else {
            let region = Unused::reserve();
            let mut state = self.state.lock();
            state.next = region;
            state.huge.extend(region.map(|region| region.begin.addr().get()));
            return region.is_some();
        };
        // If the system refuses, the first use of the page pays for it.
        ladon_platform::pages::populate(page, HUGE_BYTES);
        true
    }

    #[cfg(miri)]
    pub(super) fn touch_next(&self) -> bool {
        false
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

    /// A block, whether it is all zeros, and whether it was never used before.
    #[cfg(not(miri))]
    fn take(&mut self, block_bytes: usize) -> Option<(NonNull<u8>, bool, bool)> {
        if let Some(Block(block)) = self.dirty.pop() {
            self.fewest = self.fewest.min(self.dirty.len());
            return Some((block, false, false));
        }
        if let Some(Block(block)) = self.clean.pop() {
            return Some((block, true, false));
        }
        let mut unused = match self.unused.take().or_else(|| self.next.take()) {
            Some(unused) => unused,
            None => match Unused::reserve() {
                Some(unused) => {
                    self.huge.insert(unused.begin.addr().get());
                    unused
                }
                // Address space is scarce.
                None => {
                    let bytes = 16 * block_bytes;
                    let begin = ladon_platform::pages::reserve(bytes, block_bytes)?;
                    begin.as_ptr().expose_provenance();
                    Unused { begin, bytes, touched: bytes }
                }
            },
        };
        let block = unused.begin;
        // SAFETY: `bytes` bytes of the region begin here, and they are whole blocks.
        unused.begin = unsafe { block.add(block_bytes) };
        unused.bytes -= block_bytes;
        // Who uses the first block of a huge page that is untouched touches all of it.
        unused.touched = match unused.touched {
            0 => HUGE_BYTES - block_bytes,
            touched => touched - block_bytes,
        };
        self.unused = (unused.bytes != 0).then_some(unused);
        Some((block, true, true))
    }

    /// Whether the next huge page should be touched now.
    #[cfg(not(miri))]
    fn wants_touch(&self) -> bool {
        let touched = |unused: &Option<Unused>| unused.map_or(0, |unused| unused.touched);
        // Small pages, of a region that has lost its huge ones, are touched quickly.
        let is_huge = self.unused.is_none_or(|unused| self.huge.contains(&unused.region()));
        let has_begun = !self.huge.is_empty();
        has_begun && is_huge && touched(&self.unused) + touched(&self.next) < TOUCHED_BYTES_MIN
    }

    /// The next untouched huge page, which counts as touched from now on. `None` if all of the
    /// regions are.
    #[cfg(not(miri))]
    fn touch_next(&mut self) -> Option<NonNull<u8>> {
        let regions = [self.unused.as_mut(), self.next.as_mut()];
        let region = regions.into_iter().flatten().find(|region| region.touched < region.bytes)?;
        // SAFETY: less than the region's bytes.
        let page = unsafe { region.begin.add(region.touched) };
        debug_assert!(page.addr().get().is_multiple_of(HUGE_BYTES), "whole huge pages are touched");
        region.touched += HUGE_BYTES;
        Some(page)
    }
}

#[cfg(not(miri))]
impl Unused {
    fn reserve() -> Option<Unused> {
        let begin = ladon_platform::pages::reserve(REGION_BYTES, REGION_BYTES)?;
        begin.as_ptr().expose_provenance();
        Some(Unused { begin, bytes: REGION_BYTES, touched: 0 })
    }

    /// The address of its region.
    fn region(&self) -> usize {
        self.begin.addr().get() / REGION_BYTES * REGION_BYTES
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

    /// What takes blocks touches no huge page for the first time but the very first one, if the
    /// other thread keeps up. Beyond one page, nothing is touched ahead.
    #[test]
    #[cfg(not(miri))]
    fn the_next_huge_page_is_touched_before_it_is_needed() {
        let blocks = Blocks::new(BYTES);
        assert!(!blocks.touch_next(), "nothing was taken yet");
        let count = 2 * REGION_BYTES / BYTES + 1;
        let mut taken = Vec::new();
        for number in 0..count {
            let touched = blocks.state.lock().unused.map_or(0, |unused| unused.touched);
            let next = blocks.state.lock().next.map_or(0, |unused| unused.touched);
            assert!(number == 0 || touched + next > 0, "block {number} is the first of its page");
            assert!(touched + next <= HUGE_BYTES + TOUCHED_BYTES_MIN);
            let block = blocks.allocate_zeroed().unwrap();
            // SAFETY: just taken.
            assert_eq!(unsafe { block.add(BYTES - 1).read() }, 0);
            // SAFETY: likewise. Touching ahead must not change what is used.
            unsafe { block.write(7) };
            taken.push(block);
            while blocks.touch_next() {}
        }
        // SAFETY: taken above.
        assert!(taken.iter().all(|block| unsafe { block.read() } == 7));
        // SAFETY: taken above, freed once.
        taken.into_iter().for_each(|block| unsafe { blocks.free(block) });
    }

    /// Without the other thread, blocks come as before.
    #[test]
    #[cfg(not(miri))]
    fn nobody_waits_for_the_next_page() {
        let blocks = Blocks::new(BYTES);
        let count = REGION_BYTES / BYTES + HUGE_BYTES / BYTES;
        let taken: Vec<_> = (0..count).map(|_| blocks.allocate().unwrap()).collect();
        let unused = blocks.state.lock().unused.unwrap();
        assert_eq!(unused.touched % HUGE_BYTES, 0);
        assert_eq!(unused.bytes, REGION_BYTES - HUGE_BYTES);
        // SAFETY: taken above, freed once.
        taken.into_iter().for_each(|block| unsafe { blocks.free(block) });
    }
}

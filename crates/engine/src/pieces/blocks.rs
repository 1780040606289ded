//! Blocks of one size for slabs and segments. The memory of unused blocks returns to the system one
//! by one.
//!
//! Why not the global allocator: it cuts blocks of this size out of its own pages of up to 4 MiB,
//! and returns such a page only when all of its blocks are free. After nine of ten keys were
//! deleted at random, hardly any page is.
//!
//! ```text
//! dirty   free blocks that still have their memory, a few MiB at most; reused first, newest first
//! clean   free blocks without memory
//! fresh   memory that was never used, with a huge page if one is ready (`fresh.rs`)
//! ```
//!
//! A huge page makes memory faster to read. Of the parts with small pages, one at a time moves into
//! a huge page once no new parts are begun. An IO thread does that, because whoever accesses the
//! part meanwhile must wait, and a thread of low priority could take long. The 2 MiB to move to are
//! those that the touching thread made ready, so that the move takes less than a millisecond.
//!
//! # Soundness
//! A block has one user at a time: it is taken from a list, or from fresh memory, under the lock.
//! Only blocks that are on no list are discarded, before they are put on the list of clean ones.
//! Under Miri, which has no address space to reserve, blocks come from the global allocator.

use super::fresh::{Fresh, FreshBlock, HUGE_BYTES};
use super::touch_ahead::Ahead;
use ladon_platform::pages;
use parking_lot::Mutex;
use std::alloc::Layout;
use std::io::ErrorKind;
use std::ptr::NonNull;
#[cfg(test)]
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Free blocks keep their memory up to this total, so that blocks that come and go cause no page
/// faults.
const DIRTY_BYTES_MAX: usize = 2 << 20;
/// Number of blocks discarded together.
const DISCARDED_AT_ONCE: usize = 16;

/// Hands out blocks of `block_bytes`, aligned to that.
pub(crate) struct Blocks {
    block_bytes: usize,
    state: Mutex<State>,
    ahead: Ahead,
    #[cfg(test)]
    taken: AtomicUsize,
}

struct State {
    dirty: Vec<Block>,
    clean: Vec<Block>,
    /// Smallest number of dirty blocks since the last `purge`.
    fewest: usize,
    fresh: Fresh,
}

#[derive(Clone, Copy)]
struct Block(NonNull<u8>);

// SAFETY: a block on a list is nobody's; whoever takes it off has it alone.
unsafe impl Send for Block {}

impl Blocks {
    pub(crate) const fn new(block_bytes: usize) -> Blocks {
        let fresh = Fresh::new();
        let state = State { dirty: Vec::new(), clean: Vec::new(), fewest: 0, fresh };
        Blocks {
            block_bytes,
            state: Mutex::new(state),
            ahead: Ahead::new(),
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

    fn take_of_region(&self) -> Option<(NonNull<u8>, bool)> {
        let mut state = self.state.lock();
        if let Some(listed) = state.take_listed() {
            return Some(listed);
        }
        let FreshBlock { block, ready, is_late } =
            state.fresh.take(self.block_bytes, &self.ahead)?;
        drop(state);
        if let Some(part) = ready {
            self.ahead.settle(part);
        }
        if is_late {
            self.ahead.ask();
        }
        Some((block, true))
    }

    /// What the touching thread works on.
    pub(super) fn ahead(&self) -> &Ahead {
        &self.ahead
    }

    /// Whether parts with small pages could have huge ones.
    pub(crate) fn has_small_parts(&self) -> bool {
        self.state.lock().fresh.has_small()
    }

    /// Moves a part with small pages into a huge page, if one is ready and no new parts are begun.
    /// Takes up to a millisecond.
    pub(crate) fn enlarge_pages(&self) {
        if !self.has_small_parts() || !pages::has_huge() {
            return;
        }
        let Some(ready) = self.ahead.take() else {
            return self.ahead.ask();
        };
        let Some(part) = self.state.lock().fresh.take_small() else {
            return self.ahead.put_back();
        };
        // The system uses the page that was returned last for what is allocated next.
        // SAFETY: whoever takes it has all of it alone.
        unsafe { pages::discard(ready, HUGE_BYTES) };
        pages::allow_huge(part, HUGE_BYTES);
        let moved = pages::collapse(part, HUGE_BYTES);
        pages::forbid_huge(part, HUGE_BYTES);
        self.ahead.recycle(ready);
        match moved.map_err(|error| error.kind()) {
            Err(ErrorKind::InvalidInput | ErrorKind::Unsupported) => {
                self.state.lock().fresh.forget_small();
            }
            _ if self.has_small_parts() => self.ahead.ask(),
            _ => (),
        }
    }

    /// Discards blocks that are on no list, neighbours together, and lists them. No system call is
    /// made under the lock, because the calling thread may have a low priority.
    fn discard(&self, mut blocks: Vec<Block>) {
        blocks.sort_unstable_by_key(|block| block.0);
        self.state.lock().forget(&blocks);
        for run in blocks.chunk_by(|a, b| a.0.addr().get() + self.block_bytes == b.0.addr().get()) {
            // SAFETY: whole blocks of a region, one after the other, which are nobody's now.
            let is_zero = unsafe { pages::discard(run[0].0, run.len() * self.block_bytes) };
            let mut state = self.state.lock();
            let list = if is_zero { &mut state.clean } else { &mut state.dirty };
            list.extend_from_slice(run);
        }
    }
}

impl State {
    /// The memory of these blocks goes, so their parts keep small pages.
    fn forget(&mut self, blocks: &[Block]) {
        blocks.iter().for_each(|block| self.fresh.forget(block.0));
    }

    /// A free block, and whether it is all zeros.
    fn take_listed(&mut self) -> Option<(NonNull<u8>, bool)> {
        if let Some(Block(block)) = self.dirty.pop() {
            self.fewest = self.fewest.min(self.dirty.len());
            return Some((block, false));
        }
        self.clean.pop().map(|Block(block)| (block, true))
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

    fn fresh<T>(blocks: &Blocks, read: impl FnOnce(&Fresh) -> T) -> T {
        read(&blocks.state.lock().fresh)
    }

    /// Without the touching thread, or while it is late, blocks come with small pages.
    #[test]
    #[cfg_attr(miri, ignore = "there are no parts")]
    fn nobody_waits_for_the_next_part() {
        let blocks = Blocks::new(BYTES);
        let count = 70 << 20 >> BYTES.ilog2();
        let taken: Vec<_> = (0..count).map(|_| blocks.allocate().unwrap()).collect();
        assert_eq!(fresh(&blocks, Fresh::small_parts), 35);
        // SAFETY: taken above, freed once.
        taken.into_iter().for_each(|block| unsafe { blocks.free(block) });
        assert!(fresh(&blocks, Fresh::small_parts) <= 1, "what was discarded keeps small pages");
    }

    /// If the touching thread keeps up, the very first part alone has small pages.
    #[test]
    #[cfg_attr(miri, ignore = "there are no parts")]
    fn parts_that_are_ready_are_used() {
        let blocks = Blocks::new(BYTES);
        let mut taken = Vec::new();
        for _ in 0..(140 << 20 >> BYTES.ilog2()) {
            let block = blocks.allocate_zeroed().unwrap();
            // SAFETY: just taken. Touching ahead must not change what is used.
            unsafe {
                assert_eq!(block.add(BYTES - 1).read(), 0);
                block.write(7);
            }
            taken.push(block);
            blocks.ahead.touch();
            assert!(!blocks.ahead.touch(), "no more than one part is touched ahead");
        }
        assert_eq!(fresh(&blocks, Fresh::small_parts), 1);
        // SAFETY: taken above.
        assert!(taken.iter().all(|block| unsafe { block.read() } == 7));
        // SAFETY: taken above, freed once.
        taken.into_iter().for_each(|block| unsafe { blocks.free(block) });
    }

    /// Whether this system can do it at all.
    fn can_collapse() -> bool {
        let part = pages::reserve(HUGE_BYTES, HUGE_BYTES).unwrap();
        // SAFETY: just reserved.
        unsafe { part.write(1) };
        pages::allow_huge(part, HUGE_BYTES);
        pages::collapse(part, HUGE_BYTES).is_ok()
    }

    /// How much of the memory around this address is in huge pages, in KiB.
    fn huge_kib(address: usize) -> u64 {
        let smaps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let mut is_inside = false;
        for line in smaps.lines() {
            let begin_end = line.split(' ').next().and_then(|range| range.split_once('-'));
            let hex = |number| usize::from_str_radix(number, 16).ok();
            if let Some((Some(begin), Some(end))) = begin_end.map(|(a, b)| (hex(a), hex(b))) {
                is_inside = (begin..end).contains(&address);
            } else if let Some(kib) = line.strip_prefix("AnonHugePages:")
                && is_inside
            {
                return kib.trim().trim_end_matches(" kB").parse().unwrap();
            }
        }
        panic!("nothing is mapped there")
    }

    /// What was filled with small pages gets huge ones once memory no longer grows, and keeps its
    /// content.
    #[test]
    #[cfg_attr(miri, ignore = "there are no parts")]
    fn small_pages_become_huge_ones() {
        let blocks = Blocks::new(BYTES);
        let count = 5 * HUGE_BYTES / BYTES;
        let taken: Vec<_> = (0..count).map(|_| blocks.allocate().unwrap()).collect();
        for (number, block) in taken.iter().enumerate() {
            // SAFETY: taken above.
            unsafe { block.write_bytes(number as u8, BYTES) };
        }
        let address = taken[0].addr().get();
        assert_eq!((huge_kib(address), fresh(&blocks, Fresh::small_parts)), (0, 5));
        let is_possible = pages::has_huge() && can_collapse();
        let mut rounds = 0;
        while is_possible && blocks.has_small_parts() {
            blocks.enlarge_pages();
            blocks.ahead.touch();
            rounds += 1;
            assert!(rounds < 20);
        }
        for (number, block) in taken.iter().enumerate() {
            // SAFETY: taken above.
            let bytes = unsafe { std::slice::from_raw_parts(block.as_ptr(), BYTES) };
            assert!(bytes.iter().all(|&byte| byte == number as u8), "block {number}");
        }
        assert!(!is_possible || huge_kib(address) > 0, "after {rounds} rounds");
        // SAFETY: taken above, freed once.
        taken.into_iter().for_each(|block| unsafe { blocks.free(block) });
    }
}

//! Memory that was never used, in parts of 2 MiB.
//!
//! A part has a huge page if the thread of `touch_ahead.rs` has one ready, and small pages
//! otherwise: a small page is cleared in a microsecond, so that nobody waits for long. Parts that
//! began with small pages get huge ones later (`blocks.rs`), unless a block of theirs was discarded.
//!
//! ```text
//! region  64 MiB of address space: [part][part]...[part that is used][never used yet]
//! ```
//!
//! Parts that are touched ahead come from regions of their own.

use super::touch_ahead::Ahead;
use std::collections::BTreeSet;
use std::ptr::{self, NonNull};

/// What is reserved at once.
pub(super) const REGION_BYTES: usize = 64 << 20;
/// A huge page, of all processors that matter here.
pub(super) const HUGE_BYTES: usize = 2 << 20;
/// A part is touched ahead when less than this of the last one is unused: the time to load this
/// much is what the thread has.
const UNUSED_BYTES_MIN: usize = HUGE_BYTES / 2;

/// Where new blocks come from.
pub(super) struct Fresh {
    /// The rest of the part that is used.
    part: Option<Unused>,
    /// The rest of the region of small pages.
    region: Option<Unused>,
    /// Addresses of parts with small pages that are used up, and of which nothing was discarded.
    small: BTreeSet<usize>,
    /// How many parts were begun.
    begun: u64,
    /// The same when [`Fresh::take_small`] was last called.
    begun_before: u64,
}

/// Memory that was never used.
#[derive(Clone, Copy)]
struct Unused {
    begin: NonNull<u8>,
    bytes: usize,
    /// Its pages do not change later: they are huge, or some were discarded.
    is_settled: bool,
}

/// A block that was never used.
pub(super) struct FreshBlock {
    pub(super) block: NonNull<u8>,
    /// The part that was taken from [`Ahead`] and must be settled.
    pub(super) ready: Option<NonNull<u8>>,
    /// The next part will be needed soon.
    pub(super) is_late: bool,
}

// SAFETY: memory that was never used is the structure's alone.
unsafe impl Send for Fresh {}

impl Fresh {
    pub(super) const fn new() -> Fresh {
        Fresh { part: None, region: None, small: BTreeSet::new(), begun: 0, begun_before: 0 }
    }

    /// A block of zeros; `None` if there is no memory.
    pub(super) fn take(&mut self, block_bytes: usize, ahead: &Ahead) -> Option<FreshBlock> {
        let mut ready = None;
        let mut part = match self.part {
            Some(part) => part,
            None => {
                self.begun += 1;
                ready = ahead.take();
                match ready {
                    Some(begin) => Unused::new(begin, HUGE_BYTES, true),
                    None => self.begin_small(block_bytes)?,
                }
            }
        };
        let block = part.cut(block_bytes);
        self.part = (part.bytes != 0).then_some(part);
        if part.bytes == 0 && !part.is_settled {
            self.small.insert(part.begin.addr().get() - HUGE_BYTES);
        }
        Some(FreshBlock { block, ready, is_late: part.bytes < UNUSED_BYTES_MIN })
    }

    /// The block's memory was discarded, so its part keeps small pages.
    pub(super) fn forget(&mut self, block: NonNull<u8>) {
        let begin = block.addr().get() & !(HUGE_BYTES - 1);
        self.small.remove(&begin);
        if let Some(part) = &mut self.part
            && part.begin.addr().get() & !(HUGE_BYTES - 1) == begin
        {
            part.is_settled = true;
        }
    }

    /// A part that could have a huge page, if no part was begun since the last call.
    pub(super) fn take_small(&mut self) -> Option<NonNull<u8>> {
        if self.begun != std::mem::replace(&mut self.begun_before, self.begun) {
            return None;
        }
        let part = self.small.pop_first()?;
        NonNull::new(ptr::with_exposed_provenance_mut(part))
    }

    pub(super) fn has_small(&self) -> bool {
        !self.small.is_empty()
    }

    #[cfg(test)]
    pub(super) fn small_parts(&self) -> usize {
        self.small.len()
    }

    /// The system makes no huge pages.
    pub(super) fn forget_small(&mut self) {
        self.small.clear();
    }

    fn begin_small(&mut self, block_bytes: usize) -> Option<Unused> {
        let Some(mut region) = self.region.take().or_else(Unused::reserve) else {
            // Address space is scarce.
            let bytes = 16 * block_bytes;
            let begin = ladon_platform::pages::reserve(bytes, block_bytes)?;
            return Some(Unused::new(begin, bytes, true));
        };
        let begin = region.cut(HUGE_BYTES);
        self.region = (region.bytes != 0).then_some(region);
        Some(Unused::new(begin, HUGE_BYTES, false))
    }
}

impl Unused {
    fn new(begin: NonNull<u8>, bytes: usize, is_settled: bool) -> Unused {
        Unused { begin, bytes, is_settled }
    }

    fn reserve() -> Option<Unused> {
        let begin = ladon_platform::pages::reserve(REGION_BYTES, REGION_BYTES)?;
        begin.as_ptr().expose_provenance();
        Some(Unused::new(begin, REGION_BYTES, false))
    }

    fn cut(&mut self, bytes: usize) -> NonNull<u8> {
        let begin = self.begin;
        // SAFETY: the rest consists of such pieces, and is not empty.
        self.begin = unsafe { begin.add(bytes) };
        self.bytes -= bytes;
        begin
    }
}

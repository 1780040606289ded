//! A thread that touches the huge page that will be needed next: see `blocks.rs`.

use super::shard::SLABS;
use crate::table::arena::PAGES;
use std::sync::OnceLock;
use std::thread::{self, Thread};

/// The thread that touches memory ahead, once there is one.
static TOUCHER: OnceLock<Thread> = OnceLock::new();

/// Touches memory ahead of all other threads of this process, on the calling thread, for ever.
/// Returns at once if another thread does this already.
pub fn touch_memory_ahead() {
    if TOUCHER.set(thread::current()).is_err() {
        return;
    }
    loop {
        for blocks in [&SLABS, &PAGES] {
            while blocks.touch_next() {}
        }
        thread::park();
    }
}

#[cfg(not(miri))]
/// Wakes the thread. A request that comes while it works is not lost.
pub(super) fn request() {
    if let Some(toucher) = TOUCHER.get() {
        toucher.unpark();
    }
}

//! Which thread touches the huge page that will be needed next: see `blocks.rs`.

use super::blocks::Blocks;
use std::sync::OnceLock;
use std::thread::{self, Thread};

/// The thread that touches memory ahead, once there is one.
static TOUCHER: OnceLock<Thread> = OnceLock::new();

/// Touches memory ahead of those who take from these blocks, on the calling thread, for ever.
/// Returns at once if another thread of this process does so already.
pub(crate) fn touch_ahead(all: &[&Blocks]) {
    if TOUCHER.set(thread::current()).is_err() {
        return;
    }
    loop {
        for blocks in all {
            while blocks.touch_next() {}
        }
        thread::park();
    }
}

/// Wakes the thread. A request that comes while it works is not lost.
#[cfg(not(miri))]
pub(super) fn request() {
    if let Some(toucher) = TOUCHER.get() {
        toucher.unpark();
    }
}

//! How far memory compaction has come; `compact.rs` does it.

use crate::table::LocalHash;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64};

/// Progress of compaction.
#[derive(Default)]
pub(crate) struct Compaction {
    pub(crate) state: Mutex<State>,
    pub(crate) is_allowed: AtomicBool,
    pub(crate) is_running: AtomicBool,
    /// Monotonic time of the next slice.
    pub(crate) next_ns: AtomicU64,
    pub(crate) slack_bytes: AtomicU64,
}

#[derive(Default)]
pub(crate) struct State {
    /// Bytes free within tables' slabs of small entries, in the last pass and so far in this one.
    pub(crate) small_free: usize,
    pub(crate) small_free_so_far: usize,
    pub(crate) partition: usize,
    pub(crate) db: usize,
    pub(crate) at: LocalHash,
    /// Whether all tables are visited, not only those with sparse slabs of their own.
    pub(crate) everything: bool,
    pub(crate) moved_in_pass: usize,
    /// The free bytes after a pass that moved almost nothing. Until that number has changed much,
    /// another pass would move as little.
    pub(crate) futile_at: usize,
    /// The state of memory when the last pass began, and the time of that.
    pub(crate) seen: (u64, usize),
    pub(crate) looked_ms: u64,
}

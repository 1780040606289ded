//! What eviction remembers between two commands: a thread's part, and the node's.

use ladon_engine::Evictor;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A thread's state of eviction.
pub(crate) struct Eviction {
    pub(crate) evictor: Evictor,
    /// When nothing evictable was found (Unix milliseconds), and under which generation of the
    /// settings. Searching everywhere again for every refused command would be a waste.
    pub(crate) nothing_at: Option<(u64, u64)>,
}

impl Eviction {
    pub(crate) fn new(seed: u64) -> Eviction {
        Eviction { evictor: Evictor::new(seed), nothing_at: None }
    }
}

/// Since when the data has exceeded the limit, and for how long in total.
#[derive(Debug, Default)]
pub struct Exceeded {
    /// Start of the present period in Unix milliseconds; 0 if there is none.
    since_ms: AtomicU64,
    /// Sum of earlier periods.
    total_ms: AtomicU64,
}

/// Milliseconds for which the data exceeded the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExceededTimes {
    /// All periods.
    pub total: u64,
    /// The present period.
    pub current: u64,
}

impl Exceeded {
    /// The times until now.
    pub fn times_ms(&self, now_ms: u64) -> ExceededTimes {
        let since = self.since_ms.load(Relaxed);
        let current = if since == 0 { 0 } else { now_ms.saturating_sub(since) };
        ExceededTimes { total: self.total_ms.load(Relaxed) + current, current }
    }

    /// Back to the state at the start.
    pub(crate) fn reset(&self) {
        self.since_ms.store(0, Relaxed);
        self.total_ms.store(0, Relaxed);
    }

    #[inline]
    pub(crate) fn ended(&self, now_ms: u64) {
        if self.since_ms.load(Relaxed) != 0 {
            let since = self.since_ms.swap(0, Relaxed);
            if since != 0 {
                self.total_ms.fetch_add(now_ms.saturating_sub(since), Relaxed);
            }
        }
    }

    pub(crate) fn began(&self, now_ms: u64) {
        let _ = self.since_ms.compare_exchange(0, now_ms, Relaxed, Relaxed);
    }
}

//! Who waits before changing a space. Nothing depends on whether they do but how soon what they wait
//! for succeeds, so who ignores it does no harm.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// How long others wait for who has asked them to, and does not ask again, in milliseconds.
const STILL_MS: u64 = 50;

/// Until when others wait, in Unix milliseconds.
#[derive(Default)]
pub(super) struct Stillness {
    writers_until_ms: AtomicU64,
    definitions: Mutex<Claim>,
    queue: Mutex<Queue>,
}

/// Definitions that take long, in the order in which they came.
#[derive(Default)]
struct Queue {
    next: u64,
    /// Until when others wait for one that came earlier. Who has missed that keeps its number.
    until_ms: BTreeMap<u64, u64>,
}

/// A place in the queue of definitions of a space that take long; left when it is dropped.
pub struct DefinitionTurn {
    of: Arc<Stillness>,
    number: u64,
}

impl DefinitionTurn {
    /// A new place, at the end.
    pub(super) fn queue(of: &Arc<Stillness>) -> DefinitionTurn {
        let queue = &mut *of.queue.lock();
        queue.next += 1;
        DefinitionTurn { of: Arc::clone(of), number: queue.next }
    }

    /// Whether nobody is before it. Others wait for it as long as it asks.
    pub fn has_come(&self, now_ms: u64) -> bool {
        let until_ms = &mut self.of.queue.lock().until_ms;
        until_ms.insert(self.number, now_ms + STILL_MS);
        while let Some(first) = until_ms.first_entry() {
            if *first.key() == self.number {
                return true;
            }
            if is_before(now_ms, *first.get()) {
                return false;
            }
            first.remove();
        }
        true
    }
}

impl Drop for DefinitionTurn {
    fn drop(&mut self) {
        self.of.queue.lock().until_ms.remove(&self.number);
    }
}

/// Who alone defines something of the space.
#[derive(Default)]
struct Claim {
    owner: u64,
    until_ms: u64,
}

impl Stillness {
    pub(super) fn hold_writers(&self, now_ms: u64) {
        self.writers_until_ms.store(now_ms + STILL_MS, Relaxed);
    }

    pub(super) fn release_writers(&self) {
        self.writers_until_ms.store(0, Relaxed);
    }

    #[inline]
    pub(super) fn holds_writers(&self, now_ms: u64) -> bool {
        is_before(now_ms, self.writers_until_ms.load(Relaxed))
    }

    /// Claims definitions for `owner`, unless another has.
    pub(super) fn claim(&self, owner: u64, now_ms: u64) -> bool {
        let mut claim = self.definitions.lock();
        if claim.owner != owner && is_before(now_ms, claim.until_ms) {
            return false;
        }
        *claim = Claim { owner, until_ms: now_ms + STILL_MS };
        true
    }

    pub(super) fn is_claimed_beside(&self, owner: u64, now_ms: u64) -> bool {
        let claim = self.definitions.lock();
        claim.owner != owner && is_before(now_ms, claim.until_ms)
    }

    pub(super) fn end_claim(&self, owner: u64) {
        let mut claim = self.definitions.lock();
        if claim.owner == owner {
            claim.until_ms = 0;
        }
    }
}

/// The clock may have been set back since `until_ms` was set.
#[inline]
fn is_before(now_ms: u64, until_ms: u64) -> bool {
    now_ms < until_ms && until_ms - now_ms <= STILL_MS
}

//! Who waits before changing a space. Nothing depends on whether they do but how soon what they wait
//! for succeeds, so who ignores it does no harm.

use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// How long others wait for who has asked them to, and does not ask again, in milliseconds.
const STILL_MS: u64 = 50;

/// Until when others wait, in Unix milliseconds.
#[derive(Default)]
pub(super) struct Stillness {
    writers_until_ms: AtomicU64,
    definitions: Mutex<Claim>,
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

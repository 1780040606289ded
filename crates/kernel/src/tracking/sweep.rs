//! Forgets clients that have left, some keys at a time: an invalidation would skip them, but the
//! table keeps their numbers.

use super::registry::Tracking;
use super::tracker_set::Bits;
use std::sync::atomic::Ordering::Relaxed;

/// Keys that one step looks at; about twenty microseconds.
const KEYS_PER_STEP: usize = 256;

/// Parts without keys that one step passes.
const PARTS_PER_STEP: usize = 64;

/// How far the present sweep has got.
#[derive(Debug, Default)]
pub(super) struct Sweep {
    /// Whom it forgets; nobody between two sweeps.
    numbers: Vec<u32>,
    gone: Bits,
    part: usize,
    /// The keys of this part before this one are left to look at.
    end: usize,
}

impl Tracking {
    /// Does a step of the sweep, if there is one to do and no other thread is at it. Returns
    /// whether there is more to do.
    #[cold]
    pub(super) fn sweep(&self) -> bool {
        let Some(mut sweep) = self.sweep.try_lock() else { return false };
        if sweep.numbers.is_empty() {
            let numbers = std::mem::take(&mut self.numbers.lock().departed);
            let mut gone = Bits::default();
            numbers.iter().for_each(|&number| {
                gone.insert(number);
            });
            *sweep = Sweep { numbers, gone, part: 0, end: usize::MAX };
        }
        let mut left = KEYS_PER_STEP;
        for _ in 0..PARTS_PER_STEP {
            if sweep.part == self.table.parts() {
                let swept = std::mem::take(&mut sweep.numbers);
                self.departed.fetch_sub(swept.len(), Relaxed);
                self.numbers.lock().release(swept.into_iter());
                return self.departed.load(Relaxed) != 0;
            }
            let (before, end) = self.table.sweep(sweep.part, sweep.end, left, &sweep.gone);
            left -= before - end;
            sweep.end = end;
            if end == 0 {
                (sweep.part, sweep.end) = (sweep.part + 1, usize::MAX);
            }
            if left == 0 {
                break;
            }
        }
        true
    }
}

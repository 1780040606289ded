//! How long the disk takes to make data durable.

use crate::statistics::histogram::{Durations, HistogramSum};
use parking_lot::Mutex;

/// How long syncs of files and directories took. The log's writer and checkpoints make them.
#[derive(Debug, Default)]
pub struct SyncTimes(Mutex<Durations>);

impl SyncTimes {
    /// Counts a sync.
    pub fn record(&self, nanoseconds: u64) {
        self.0.lock().record(nanoseconds);
    }

    /// How many of each length, and the sum of their nanoseconds.
    pub fn sum(&self) -> (HistogramSum, u64) {
        let durations = self.0.lock();
        let mut sum = HistogramSum::default();
        sum.add(&durations.counts);
        (sum, durations.nanoseconds.get())
    }

    /// Back to nothing (`CONFIG RESETSTAT`).
    pub fn reset(&self) {
        self.0.lock().reset();
    }
}

//! How much of the preparation of a definition is done at once.

/// How much is done at once. Work is measured in short tuples, or their changes.
#[derive(Clone, Copy, Debug)]
pub struct PreparationLimits {
    /// With no more tuples, everything is done at once.
    pub tuples_at_once: u64,
    /// A slice.
    pub slice_work: usize,
    /// With no more changes left, a definition may take effect.
    pub ready_work: usize,
    /// Changes that writers may make before they have to wait for slices.
    pub granted_at_first: usize,
    /// Testing only: changes are passed over instead of followed, which the simulator must notice.
    pub misses_changes: bool,
}

impl Default for PreparationLimits {
    /// The usual ones.
    fn default() -> PreparationLimits {
        PreparationLimits {
            // Some ten microseconds.
            tuples_at_once: 256,
            // Some hundred microseconds.
            slice_work: 128,
            ready_work: 64,
            granted_at_first: 1 << 16,
            misses_changes: false,
        }
    }
}

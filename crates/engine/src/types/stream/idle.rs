//! Pending entries in the order of their last deliveries: who claims what is idle wants the oldest.
//!
//! Only groups of which somebody claims by time have this index. It is no part of a stream's form
//! in the log, and a copied group does without it until the next claim builds it again.

use super::StreamId;
use std::collections::BTreeSet;

/// About what an entry takes in a tree that is not full.
const ENTRY_BYTES: usize = size_of::<(u64, StreamId)>() * 3 / 2;

/// Times of the last delivery, Unix milliseconds, and ids.
#[derive(Default)]
pub(super) struct ByTime(Option<BTreeSet<(u64, StreamId)>>);

impl Clone for ByTime {
    fn clone(&self) -> ByTime {
        ByTime(None)
    }
}

impl ByTime {
    pub(super) fn bytes(&self) -> usize {
        self.0.as_ref().map_or(0, |index| index.len() * ENTRY_BYTES)
    }

    /// Builds the index, if there is none, from all pending entries.
    pub(super) fn build(&mut self, all: impl Iterator<Item = (u64, StreamId)>) {
        self.0.get_or_insert_with(|| all.collect());
    }

    #[inline]
    pub(super) fn insert(&mut self, delivered_ms: u64, id: StreamId) {
        if let Some(index) = &mut self.0 {
            index.insert((delivered_ms, id));
        }
    }

    #[inline]
    pub(super) fn remove(&mut self, delivered_ms: u64, id: StreamId) {
        if let Some(index) = &mut self.0 {
            index.remove(&(delivered_ms, id));
        }
    }

    /// All of them, the oldest first; `None` without an index.
    pub(super) fn iter(&self) -> Option<impl Iterator<Item = (u64, StreamId)>> {
        self.0.as_ref().map(|index| index.iter().copied())
    }
}

//! One connection's tracking.

use std::collections::BTreeSet;
use std::ops::Bound::{Excluded, Included, Unbounded};
use std::sync::Arc;

/// Memory of a prefix besides its bytes: the connection's entry, its thread's, and a share of the
/// registry's.
const PREFIX_BYTES: usize = 192;

/// How a client is tracked, as it asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Modes {
    /// Invalidations by prefix, whatever it reads (`BCAST`).
    pub broadcast: bool,
    /// Only reads after `CLIENT CACHING YES` are noted.
    pub opt_in: bool,
    /// Reads after `CLIENT CACHING NO` are not noted.
    pub opt_out: bool,
    /// Nothing about its own changes.
    pub no_loop: bool,
}

/// One connection's tracking; present from its first `CLIENT TRACKING ON` on.
#[derive(Debug, Default)]
pub struct TrackingState {
    /// It is on.
    pub on: bool,
    /// How; all off while it is not on.
    pub modes: Modes,
    /// The connection that gets the invalidations instead; 0 for none.
    pub redirect: u64,
    /// That one is gone.
    pub is_broken: bool,
    /// `CLIENT CACHING` came before this command.
    pub caching: bool,
    /// Its number in the table, which it keeps.
    pub(super) number: Option<u32>,
    /// Prefixes of keys in broadcasting mode, in order.
    pub(super) prefixes: BTreeSet<Arc<[u8]>>,
    /// Memory that these take.
    pub bytes: usize,
}

impl TrackingState {
    /// The number under which the keys of the present command are noted, if they are.
    pub(crate) fn notes_reads(&self) -> Option<u32> {
        let Modes { broadcast, opt_in, opt_out, .. } = self.modes;
        let skips = opt_in && !self.caching || opt_out && self.caching;
        self.number.filter(|_| self.on && !broadcast && !skips)
    }

    /// The state of a client whose reads are noted under this number, and nothing else of it.
    pub(crate) fn of_number(number: u32) -> TrackingState {
        TrackingState { on: true, number: Some(number), ..TrackingState::default() }
    }

    /// Its prefixes.
    pub fn prefixes(&self) -> impl ExactSizeIterator<Item = &Arc<[u8]>> {
        self.prefixes.iter()
    }

    /// A prefix of its own that overlaps with this one.
    pub fn overlapping(&self, prefix: &[u8]) -> Option<&[u8]> {
        // Besides itself, the shorter ones come before it and the longer ones after, and they do
        // not overlap with each other; an empty one, which may be added to others, is the first.
        let longer = self.prefixes.range::<[u8], _>((Included(prefix), Unbounded)).next();
        let shorter = self.prefixes.range::<[u8], _>((Unbounded, Excluded(prefix))).next_back();
        let empty = self.prefixes.first().filter(|first| first.is_empty());
        let longer = longer.filter(|longer| longer.starts_with(prefix));
        let shorter = shorter.filter(|shorter| prefix.starts_with(shorter));
        empty.or(shorter).or(longer).map(|other| &**other)
    }

    pub(super) fn add_prefix(&mut self, prefix: &Arc<[u8]>) -> bool {
        let is_new = self.prefixes.insert(Arc::clone(prefix));
        self.bytes += if is_new { PREFIX_BYTES + prefix.len() } else { 0 };
        is_new
    }

    pub(super) fn take_prefixes(&mut self) -> BTreeSet<Arc<[u8]>> {
        self.bytes = 0;
        std::mem::take(&mut self.prefixes)
    }
}

//! What one connection subscribes to.

use super::published::Kind;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Memory of a subscription besides its name: the connection's entry, its thread's, and a share of
/// the registry's.
const SUBSCRIPTION_BYTES: usize = 224;

/// Memory of a compiled pattern for each of its bytes, at most (`Glob`).
const COMPILED_BYTES: usize = 10;

/// What one connection subscribes to.
#[derive(Debug, Default)]
pub struct Subscriptions {
    names: [BTreeSet<Arc<[u8]>>; 3],
    /// Memory that they take.
    pub bytes: usize,
}

impl Subscriptions {
    /// Number of subscriptions of a kind.
    pub fn count(&self, kind: Kind) -> usize {
        self.names[kind.index()].len()
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.names.iter().all(BTreeSet::is_empty)
    }

    /// The names of a kind, in order.
    pub fn names(&self, kind: Kind) -> Vec<Arc<[u8]>> {
        self.names[kind.index()].iter().map(Arc::clone).collect()
    }

    /// Removes any name; `None` if there is none left.
    pub(crate) fn pop(&mut self) -> Option<(Kind, Arc<[u8]>)> {
        Kind::ALL.into_iter().find_map(|kind| Some((kind, self.names[kind.index()].pop_first()?)))
    }

    /// Adds a name; returns whether it is new.
    pub(crate) fn add(&mut self, kind: Kind, name: &Arc<[u8]>) -> bool {
        let is_new = self.names[kind.index()].insert(Arc::clone(name));
        self.bytes += if is_new { bytes(kind, name) } else { 0 };
        is_new
    }

    /// Removes a name; returns whether it was there.
    pub(crate) fn remove(&mut self, kind: Kind, name: &[u8]) -> bool {
        let was_there = self.names[kind.index()].remove(name);
        self.bytes -= if was_there { bytes(kind, name) } else { 0 };
        was_there
    }
}

/// Memory of a subscription.
fn bytes(kind: Kind, name: &[u8]) -> usize {
    let compiled = if kind == Kind::Pattern { COMPILED_BYTES } else { 0 };
    SUBSCRIPTION_BYTES + name.len() * (1 + compiled)
}

//! How long replies waited at the gate, for the metrics.

use ladon_kernel::node::Node;
use ladon_kernel::statistics::histogram::Durations;

/// Counts the waits that end at one moment. Reads the clock once, and only if a wait has ended.
pub(crate) struct GateWaits<'a> {
    node: &'a Node,
    waits: &'a Durations,
    now_ns: Option<u64>,
}

impl<'a> GateWaits<'a> {
    /// The moment begins with the first wait that is counted. `waits` is the calling thread's.
    #[inline]
    pub(crate) fn new(node: &'a Node, waits: &'a Durations) -> GateWaits<'a> {
        GateWaits { node, waits, now_ns: None }
    }

    /// Replies made at `since_ns`, monotonic nanoseconds, have passed the gate.
    pub(crate) fn count(&mut self, since_ns: u64) {
        let now_ns = *self.now_ns.get_or_insert_with(|| self.node.clock.monotonic_ns());
        self.waits.record(now_ns.saturating_sub(since_ns));
    }
}

//! What an operator should find in the server's log, and no single request says: the log's state,
//! evictions, refusals for want of memory. The checkpointer's thread looks, about once a second.

use ladon_kernel::node::Node;
use ladon_log::{Log, LogState};
use std::sync::Arc;

/// How often a count that goes on growing is reported, milliseconds.
const COUNTS_EVERY_MS: u64 = 60_000;

/// What was last reported.
pub(crate) struct Reports {
    node: Arc<Node>,
    log: Arc<Log>,
    has_failed: bool,
    evicted: Count,
    refused: Count,
}

/// A counter that only grows, unless `CONFIG RESETSTAT` sets it back.
#[derive(Debug, Default)]
struct Count {
    reported: u64,
    reported_ms: u64,
}

impl Count {
    /// How many have come since the last report, if there are some and it is time for another one.
    fn news(&mut self, total: u64, now_ms: u64) -> Option<u64> {
        if total < self.reported {
            self.reported = 0;
        }
        let is_due = now_ms.abs_diff(self.reported_ms) >= COUNTS_EVERY_MS;
        if total == self.reported || !is_due {
            return None;
        }
        self.reported_ms = now_ms;
        Some(total - std::mem::replace(&mut self.reported, total))
    }
}

impl Reports {
    pub(crate) fn new(node: Arc<Node>, log: Arc<Log>) -> Reports {
        let (evicted, refused) = (Count::default(), Count::default());
        Reports { node, log, has_failed: false, evicted, refused }
    }

    /// Reports what is new.
    pub(crate) fn look(&mut self) {
        self.look_at_log();
        let (node, now_ms) = (&self.node, self.node.clock.unix_ms());
        let evicted = node.stats.iter().map(|stats| stats.evicted_keys.get()).sum();
        if let Some(count) = self.evicted.news(evicted, now_ms) {
            tracing::info!("evicted {count} keys: {}", memory(node));
        }
        let refused = |errors: &std::collections::BTreeMap<String, u64>| errors.get("OOM").copied();
        let refused = node.stats.iter().filter_map(|stats| refused(&stats.errors.lock())).sum();
        if let Some(count) = self.refused.news(refused, now_ms) {
            tracing::warn!("refused {count} commands for want of memory (OOM): {}", memory(node));
        }
    }

    fn look_at_log(&mut self) {
        let has_failed = !self.log.accepts_writes();
        if has_failed == self.has_failed {
            return;
        }
        match self.log.state() {
            LogState::Healthy => {
                tracing::info!("the log can be written again: writes are accepted")
            }
            LogState::WriteFailed { error, .. } | LogState::SyncFailed { error } => {
                tracing::error!("{error}");
            }
        }
        self.has_failed = has_failed;
    }
}

fn memory(node: &Node) -> String {
    format!(
        "{} bytes of memory are used, maxmemory is {}, maxmemory-policy {}",
        node.used_memory(),
        node.settings.maxmemory(),
        node.settings.get(&["maxmemory-policy"]).first().map_or("", |(_, policy)| policy)
    )
}

#[cfg(test)]
mod tests {
    use super::Count;

    #[test]
    fn a_growing_count_is_reported_at_once_and_then_once_a_minute() {
        let mut count = Count::default();
        let begin = 1_800_000_000_000;
        for (total, after_ms, expected) in [
            (0, 0, None),
            (3, 1_000, Some(3)),
            (9, 2_000, None),
            (12, 61_000, Some(9)),
            (12, 200_000, None),
            // `CONFIG RESETSTAT`.
            (2, 300_000, Some(2)),
        ] {
            assert_eq!(count.news(total, begin + after_ms), expected, "{total} at {after_ms}");
        }
    }
}

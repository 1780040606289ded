//! How many entries a trim removes.

use super::{Stream, StreamId};

/// Up to where a stream is trimmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threshold {
    /// It keeps this many entries.
    Length(u64),
    /// It keeps the entries from this id on.
    Id(StreamId),
}

/// A trim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trim {
    /// Up to where.
    pub threshold: Threshold,
    /// Only whole nodes are removed.
    pub approximate: bool,
    /// Maximum number of entries to remove; 0 for any.
    pub limit: u64,
}

impl Stream {
    /// Number of entries at the beginning that the trim removes.
    pub fn trimmed(&self, trim: &Trim) -> usize {
        let length = self.len();
        let mut removed = 0;
        for (node_id, node) in self.0.nodes.iter() {
            let count = node.count();
            if let Threshold::Length(kept) = trim.threshold
                && (length - removed) as u64 <= kept
            {
                break;
            }
            if trim.limit != 0 && (removed + count) as u64 > trim.limit {
                break;
            }
            let is_whole = match trim.threshold {
                Threshold::Length(kept) => (length - removed - count) as u64 >= kept,
                Threshold::Id(first) => node.last() < first,
            };
            if is_whole {
                removed += count;
                continue;
            }
            if !trim.approximate {
                removed += match trim.threshold {
                    Threshold::Length(kept) => length - removed - kept as usize,
                    Threshold::Id(first) => node.count_before(*node_id, first),
                };
            }
            break;
        }
        removed
    }
}

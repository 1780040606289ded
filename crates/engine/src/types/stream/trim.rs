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
    /// Whether the stream's length alone says that the trim removes nothing, as with most of the
    /// trims that come with an entry that is added.
    #[inline]
    pub(crate) fn is_short_enough(&self, trim: &Trim) -> bool {
        let Threshold::Length(kept) = trim.threshold else { return false };
        let extra = (self.len() as u64).saturating_sub(kept);
        let first = || self.0.nodes.first().map_or(0, |(_, node)| u64::from(node.count));
        extra == 0 || (trim.approximate && extra < first())
    }

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

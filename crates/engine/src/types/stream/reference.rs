//! Which entries groups still need, and removing entries with what refers to them.
//!
//! A group refers to an entry that is pending in it, and needs one that it has yet to deliver.

use super::{Group, Stream, StreamId, Threshold, Trim};
use std::ops::ControlFlow::{Break, Continue};

/// Maximum of looks that a trim takes to spare what groups need, an entry in a group being one: a
/// few milliseconds.
const LOOKS_MAX: usize = 1 << 20;

/// What a removal does about groups that refer to an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum References {
    /// They keep it pending, as a mere id.
    Keep,
    /// It is no longer pending.
    Remove,
    /// The entry stays as long as a group needs it.
    Spare,
}

/// What a trim that spares entries removes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spared {
    /// Number of entries at the stream's beginning.
    pub first: usize,
    /// Entries behind one that is spared.
    pub others: Vec<StreamId>,
}

impl Stream {
    /// Whether a group has this entry pending, or has yet to deliver it.
    pub fn is_needed(&self, id: StreamId) -> bool {
        self.groups().any(|(_, group)| group.needs(id))
    }

    /// The names of the groups in which an entry is pending, which need not exist any more.
    pub fn groups_with(&self, id: StreamId) -> Vec<Vec<u8>> {
        let with = self.groups().filter(|(_, group)| group.pending_entry(id).is_some());
        with.map(|(name, _)| name.to_vec()).collect()
    }

    /// What is pending of the first `count` entries, by group.
    pub fn pending_of_first(&self, count: usize) -> Vec<(Vec<u8>, Vec<StreamId>)> {
        let Some(last) = count.checked_sub(1).and_then(|at| self.nth(at)) else {
            return Vec::new();
        };
        let first = self.first_entry_id();
        let of_group = |(name, group): (&[u8], &Group)| {
            let until = group.pending_from(first).map(|(id, _)| *id).take_while(|id| *id <= last);
            let ids: Vec<StreamId> = until.filter(|id| self.contains(*id)).collect();
            (!ids.is_empty()).then(|| (name.to_vec(), ids))
        };
        self.groups().filter_map(of_group).collect()
    }

    /// The id of an entry, counted from 0.
    fn nth(&self, mut at: usize) -> Option<StreamId> {
        for (node_id, node) in self.0.nodes.iter() {
            match at.checked_sub(node.count()) {
                Some(rest) => at = rest,
                None => return node.iter(*node_id).nth(at).map(|entry| entry.id),
            }
        }
        None
    }

    /// What a trim removes that spares the entries that groups need. It ends early if it had to
    /// take too many looks; with a limit, it examines no more entries than that.
    pub fn trimmed_sparing(&self, trim: &Trim) -> Spared {
        let mut spared = Spared::default();
        // All entries that some group has yet to deliver are behind this one.
        let Some(delivered) = self.groups().map(|(_, group)| group.last_id).min() else {
            return Spared { first: self.trimmed(trim), others: Vec::new() };
        };
        let start = self.first_entry_id();
        let mut pending: Vec<_> = self
            .groups()
            .filter(|(_, group)| group.pending() != 0)
            .map(|(_, group)| group.pending_from(start).map(|(id, _)| *id).peekable())
            .collect();
        let mut left = match trim.threshold {
            Threshold::Length(kept) => (self.len() as u64).saturating_sub(kept),
            Threshold::Id(_) => u64::MAX,
        };
        let last = match trim.threshold {
            Threshold::Id(first) => first.previous().map(|last| last.min(delivered)),
            Threshold::Length(_) => Some(delivered),
        };
        let Some(last) = last else { return spared };
        let mut looks = LOOKS_MAX;
        let mut examined = 0;
        let mut is_first = true;
        let _ = self.walk(start, last, |entry| {
            if left == 0 || looks == 0 || (trim.limit != 0 && examined == trim.limit) {
                return Break(());
            }
            examined += 1;
            let mut is_pending = false;
            for ids in &mut pending {
                // Ids of entries that are gone are passed on the way.
                looks = looks.saturating_sub(1);
                while ids.next_if(|id| *id < entry.id).is_some() {
                    if looks == 0 {
                        return Break(());
                    }
                    looks -= 1;
                }
                is_pending |= ids.peek() == Some(&entry.id);
            }
            looks = looks.saturating_sub(1);
            if is_pending {
                is_first = false;
                return Continue(());
            }
            left -= 1;
            if is_first {
                spared.first += 1;
            } else {
                spared.others.push(entry.id);
            }
            Continue(())
        });
        spared
    }
}

impl Group {
    /// Whether it has this entry pending, or has yet to deliver it.
    fn needs(&self, id: StreamId) -> bool {
        id > self.last_id || self.pending_entry(id).is_some()
    }
}

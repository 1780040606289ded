//! Where the group's entries are in the log: eight bytes for each.

use crate::entry::{Extent, Member, Payload};
use crate::frame::reign;
use crate::state::MembersChange;
use crate::storage::StoredEntry;
use crate::types::{EntryId, MemberId};
use ladon_record::Lsn;
use openraft::Membership;
use std::collections::{BTreeMap, VecDeque};

/// Set in an entry's end if it is a leader's first one. Positions have 56 bits.
const BLANK: u64 = 1 << 63;

/// The entries from one on, in order, without gaps.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Index {
    /// The last one that is not here any more, and where it ends.
    purged: Option<EntryId>,
    purged_end: Lsn,
    /// Index of the first entry that is here.
    first: u64,
    ends: VecDeque<u64>,
    /// The first index of each term.
    terms: BTreeMap<u64, u64>,
    members: BTreeMap<u64, Membership<MemberId, Member>>,
}

impl Index {
    /// No entries; the first one will follow `purged`, which ends at `end`.
    pub fn after(purged: Option<EntryId>, end: Lsn) -> Index {
        let first = purged.map_or(0, |purged| purged.index + 1);
        Index { purged, purged_end: end, first, ..Index::default() }
    }

    /// The last entry that is not here any more.
    pub fn purged(&self) -> Option<EntryId> {
        self.purged
    }

    /// The last entry.
    pub fn last(&self) -> Option<EntryId> {
        match self.ends.len() {
            0 => self.purged,
            count => self.id(self.first + count as u64 - 1),
        }
    }

    /// End of the last entry; what follows in the log belongs to none.
    pub fn end(&self) -> Lsn {
        self.ends.back().map_or(self.purged_end, |end| Lsn(end & !BLANK))
    }

    /// Where the first entry that is here begins.
    pub fn begin(&self) -> Lsn {
        self.purged_end
    }

    /// Whether the log had data before the group, which no entry has: nobody else may be sent the
    /// first entry, but a checkpoint that covers it.
    pub fn lacks_begin(&self) -> bool {
        self.purged.is_none() && self.purged_end > Lsn::ZERO
    }

    /// Term and index of an entry that is here, or of the one before the first.
    pub fn id(&self, index: u64) -> Option<EntryId> {
        if let Some(purged) = self.purged.filter(|purged| purged.index == index) {
            return Some(purged);
        }
        self.position(index)?;
        let term = *self.terms.range(..=index).next_back()?.1;
        Some(EntryId::new(reign(term), index))
    }

    /// Adds the entry that follows the last one, and ends at `end`.
    ///
    /// # Panics
    /// If another one would follow.
    pub fn push(&mut self, id: EntryId, payload: &Payload, end: Lsn) -> Extent {
        let next = self.first + self.ends.len() as u64;
        assert_eq!(id.index, next, "the entry {id} is not the next one");
        let extent = Extent { from: self.end(), to: end };
        assert!(extent.from < extent.to, "the entry {id} ends at {end}, before it begins");
        let term = id.leader_id.term;
        if self.last().is_none_or(|last| last.leader_id.term != term) || self.ends.is_empty() {
            self.terms.insert(id.index, term);
        }
        if let Payload::Membership(members) = payload {
            self.members.insert(id.index, members.clone());
        }
        let blank = if matches!(payload, Payload::Blank) { BLANK } else { 0 };
        self.ends.push_back(end.0 | blank);
        extent
    }

    /// The entry, if it is here.
    pub fn entry(&self, index: u64) -> Option<StoredEntry> {
        let at = self.position(index)?;
        let end = self.ends[at];
        let from = match at.checked_sub(1) {
            Some(before) => Lsn(self.ends[before] & !BLANK),
            None => self.purged_end,
        };
        let payload = match self.members.get(&index) {
            Some(members) => Payload::Membership(members.clone()),
            None if end & BLANK != 0 => Payload::Blank,
            None => Payload::Normal(crate::Cut),
        };
        let extent = Extent { from, to: Lsn(end & !BLANK) };
        Some(StoredEntry { id: self.id(index)?, payload, extent })
    }

    /// End of an entry that is here, or of the one before the first.
    pub fn end_of(&self, index: u64) -> Option<Lsn> {
        if self.purged.is_some_and(|purged| purged.index == index) {
            return Some(self.purged_end);
        }
        self.entry(index).map(|entry| entry.extent.to)
    }

    /// The entry in which a position is: the last purged one, if it is in that or in front of it.
    /// What was in the log before the group is in none.
    pub fn covering(&self, lsn: Lsn) -> Option<EntryId> {
        if lsn <= self.purged_end {
            return self.purged;
        }
        let at = self.ends.partition_point(|end| end & !BLANK < lsn.0);
        self.id(self.first + at as u64)
    }

    /// The last change of the members up to this entry, as far as it is here.
    pub fn members_upto(&self, last: EntryId) -> Option<MembersChange> {
        let (&index, members) = self.members.range(..=last.index).next_back()?;
        Some((self.id(index)?, members.clone()))
    }

    /// Forgets all entries behind `last`, which must be here or the last purged one.
    pub fn truncate_after(&mut self, last: Option<EntryId>) {
        let kept = last.map_or(0, |last| (last.index + 1).saturating_sub(self.first));
        assert!(kept <= self.ends.len() as u64, "{last:?} is not here");
        self.ends.truncate(kept as usize);
        let next = self.first + kept;
        self.terms.split_off(&next);
        self.members.split_off(&next);
        assert_eq!(self.last(), last, "truncated behind another entry");
    }

    /// Forgets the entries up to this one, which must be here or purged already.
    pub fn purge(&mut self, upto: EntryId) {
        let Some(at) = self.position(upto.index) else {
            assert!(self.purged >= Some(upto), "{upto} is not here");
            return;
        };
        assert_eq!(self.id(upto.index), Some(upto), "another entry is here");
        let term_behind = self.id(upto.index + 1).map(|id| id.leader_id.term);
        self.purged_end = Lsn(self.ends[at] & !BLANK);
        self.purged = Some(upto);
        self.first = upto.index + 1;
        self.ends.drain(..=at);
        self.terms = self.terms.split_off(&self.first);
        if let Some(term) = term_behind {
            self.terms.insert(self.first, term);
        }
        self.members = self.members.split_off(&self.first);
    }

    /// Bytes that it takes.
    pub fn memory_bytes(&self) -> usize {
        self.ends.capacity() * size_of::<u64>()
    }

    fn position(&self, index: u64) -> Option<usize> {
        let at = usize::try_from(index.checked_sub(self.first)?).ok()?;
        (at < self.ends.len()).then_some(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cut;
    use ladon_testkit::Random;

    fn payload(random: &mut Random) -> Payload {
        match random.below(10) {
            0 => Payload::Blank,
            1 => {
                let nodes = [(random.below(3), Member::default())];
                Payload::Membership(Membership::from(BTreeMap::from(nodes)))
            }
            _ => Payload::Normal(Cut),
        }
    }

    /// Against a plain list of entries.
    #[test]
    fn it_is_a_list_of_entries() {
        for seed in 0..300 {
            let mut random = Random::new(seed);
            let mut index = Index::after(None, Lsn(5));
            let (mut all, mut purged): (Vec<StoredEntry>, usize) = (Vec::new(), 0);
            let (mut term, mut end) = (1, 5);
            for _ in 0..200 {
                match random.below(12) {
                    0 => term += 1,
                    1 => {
                        let from = all.len().max(purged);
                        let kept = purged + random.below((from - purged) as u64 + 1) as usize;
                        all.truncate(kept);
                        index.truncate_after(all.last().map(|entry| entry.id));
                        end = all.last().map_or(5, |entry| entry.extent.to.0);
                        term += 1;
                    }
                    2 if all.len() > purged => {
                        purged += 1 + random.below((all.len() - purged) as u64) as usize;
                        index.purge(all[purged - 1].id);
                    }
                    _ => {
                        let id = EntryId::new(reign(term), all.len() as u64);
                        let payload = payload(&mut random);
                        let from = Lsn(end);
                        end += 1 + random.below(100);
                        let extent = index.push(id, &payload, Lsn(end));
                        assert_eq!(extent, Extent { from, to: Lsn(end) });
                        all.push(StoredEntry { id, payload, extent });
                    }
                }
                assert_eq!(index.last(), all.last().map(|entry| entry.id));
                assert_eq!(index.end(), Lsn(end));
                for (at, entry) in all.iter().enumerate() {
                    let expected = (at >= purged).then(|| entry.clone());
                    assert_eq!(index.entry(at as u64), expected, "seed {seed}");
                }
                assert_eq!(index.entry(all.len() as u64), None);
                let last_purged = purged.checked_sub(1).map(|last| all[last].id);
                assert_eq!(index.purged(), last_purged);
            }
        }
    }
}

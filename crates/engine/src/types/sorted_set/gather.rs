//! Scores by member, without an order yet: the intermediate result of unions and intersections.

use super::indexed::{Indexed, init, score_of};
use super::packed::Packed;
use super::{Repr, SortedSet, SortedSetLimits};
use crate::table::Table;
use ladon_record::KeyHasher;

/// Members and scores; becomes a sorted set, which costs less than keeping order all the time.
pub struct Gathered {
    table: Table,
    longest: usize,
}

impl Default for Gathered {
    fn default() -> Self {
        Gathered { table: Table::new(0), longest: 0 }
    }
}

impl Gathered {
    /// Number of members.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Gives a member the score that `score` makes of the one it has; neither is ever NaN.
    pub fn set(
        &mut self,
        hasher: &KeyHasher,
        member: &[u8],
        score: impl FnOnce(Option<f64>) -> f64,
    ) {
        let hash = hasher.hash(member).0;
        match self.table.get_mut(hash, member) {
            Some(mut slot) => {
                let new = score(Some(score_of(slot.get())));
                slot.set(0, init(new));
            }
            None => {
                self.longest = self.longest.max(member.len());
                self.table.insert(hasher, hash, member, 0, init(score(None)), 0);
            }
        }
    }

    /// Takes a member out.
    pub fn remove(&mut self, hasher: &KeyHasher, member: &[u8]) {
        if let Some(slot) = self.table.get_mut(hasher.hash(member).0, member) {
            slot.remove(hasher);
        }
    }

    /// All of it in order, packed if the limits allow.
    pub fn into_sorted_set(self, limits: SortedSetLimits) -> SortedSet {
        let few = self.table.len() <= limits.entries && self.longest <= limits.value;
        let indexed = Indexed::of_table(self.table);
        if !few {
            return SortedSet(Repr::Indexed(Box::new(indexed)));
        }
        let mut packed = Packed::default();
        indexed.for_each(0..indexed.len(), |member, score| packed.insert(score, member));
        packed.shrink_to_fit();
        SortedSet(Repr::Packed(packed))
    }
}

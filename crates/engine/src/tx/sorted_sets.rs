//! What a transaction does to sorted sets.

use super::Tx;
use crate::key::Key;
use crate::types::collection::{Env, WrongType};
use crate::types::sorted_set::{SortedSet, SortedSetLimits, put_removed, put_score};
use ladon_record::DbId;
use std::ops::Range;

/// A sorted set whose scores are being set; changes are logged.
pub struct Scores<'a> {
    set: &'a mut SortedSet,
    op: &'a mut Vec<u8>,
    env: Env<'a>,
    limits: SortedSetLimits,
}

impl Scores<'_> {
    /// Sets a member's score to what `decide` computes from the present one; `None` keeps it.
    /// Returns the old score.
    #[inline]
    pub fn update(
        &mut self,
        member: &[u8],
        decide: impl FnOnce(Option<f64>) -> Option<f64>,
    ) -> Option<f64> {
        let mut new = None;
        let old = self.set.update(self.env.hasher, self.limits, member, |old| {
            new = decide(old);
            new
        });
        if let Some(score) = new.filter(|&score| old != Some(score)) {
            put_score(self.op, member, score);
        }
        old
    }
}

impl Tx<'_> {
    /// Sizes up to which sorted sets stay packed.
    pub fn sorted_set_limits(&self) -> SortedSetLimits {
        self.keyspace.limits().of_sorted_sets()
    }

    /// Sets scores in the key's sorted set, creating it for about `expected` members like one of
    /// `bytes` bytes.
    #[inline]
    pub fn sorted_set_upsert<R>(
        &mut self,
        db: DbId,
        key: Key<'_>,
        (expected, bytes): (usize, usize),
        change: impl FnOnce(&mut Scores<'_>) -> R,
    ) -> Result<R, WrongType> {
        let limits = self.sorted_set_limits();
        let create = |_: Env<'_>| SortedSet::for_members(expected, bytes, limits);
        self.upsert_value(db, key, create, |set: &mut SortedSet, op, env| {
            set.expect(env.hasher, limits, expected);
            change(&mut Scores { set, op, env, limits })
        })
    }

    /// Sets scores in the key's sorted set; `None` if there is none.
    #[inline]
    pub fn sorted_set_change<R>(
        &mut self,
        db: DbId,
        key: Key<'_>,
        change: impl FnOnce(&mut Scores<'_>) -> R,
    ) -> Result<Option<R>, WrongType> {
        let limits = self.sorted_set_limits();
        self.change_value(db, key, |set: &mut SortedSet, op, env| {
            change(&mut Scores { set, op, env, limits })
        })
    }

    /// Removes members from the key's sorted set, and the key with the last one; returns how many
    /// existed.
    pub fn sorted_set_remove<'m>(
        &mut self,
        db: DbId,
        key: Key<'_>,
        members: impl Iterator<Item = &'m [u8]>,
    ) -> Result<usize, WrongType> {
        self.remove_members(db, key, members, |set: &mut SortedSet, op, env, member| {
            let found = set.remove(env.hasher, member).is_some();
            if found {
                put_removed(op, member);
            }
            found
        })
    }

    /// Removes the members whose ranks `choose` returns, and the key with the last one; `visit`
    /// sees them in order. Returns how many.
    pub fn sorted_set_remove_ranks(
        &mut self,
        db: DbId,
        key: Key<'_>,
        choose: impl FnOnce(&SortedSet) -> Range<usize>,
        mut visit: impl FnMut(&[u8], f64),
    ) -> Result<usize, WrongType> {
        let mut is_all = false;
        let removed = self.change_value(db, key, |set: &mut SortedSet, op, env| {
            let ranks = choose(set);
            if !ranks.is_empty() && ranks == (0..set.len()) {
                // The key is removed as a whole, which needs no record of its members.
                set.for_each(ranks, &mut visit);
                is_all = true;
                return set.len();
            }
            let count = ranks.len();
            set.remove_ranks(env.hasher, ranks, |member, score| {
                put_removed(op, member);
                visit(member, score);
            });
            count
        })?;
        if is_all {
            self.delete(db, key);
        }
        Ok(removed.unwrap_or(0))
    }
}

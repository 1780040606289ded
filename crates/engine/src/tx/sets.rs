//! What a transaction does to sets.

use super::Tx;
use crate::key::Key;
use crate::types::collection::{Collection, WrongType};
use crate::types::element_prefetch::ElementsAhead;
use crate::types::set::edit::SetEdit;
use crate::types::set::{Member, OP_ADD, OP_REMOVE, SetLimits, SetValue, put_member};
use ladon_record::DbId;

/// If the removed members outnumber the remaining ones by this factor, `set_pop` searches the
/// remaining ones.
const POP_KEEP_FACTOR: usize = 5;

impl Tx<'_> {
    /// Sizes up to which sets stay packed.
    pub fn set_limits(&self) -> SetLimits {
        self.keyspace.limits().of_sets()
    }

    /// Adds members to the key's set, creating it; returns how many were new.
    pub fn set_add<'m>(
        &mut self,
        db: DbId,
        key: Key<'_>,
        members: impl ExactSizeIterator<Item = &'m [u8]> + Clone,
    ) -> Result<usize, WrongType> {
        let limits = self.set_limits();
        let expected = members.len();
        let first: &[u8] = members.clone().next().unwrap_or_default();
        self.upsert_value(
            db,
            key,
            |_| SetValue::for_members(first, expected, limits),
            |set, op, env| {
                set.expect(env.hasher, limits, expected);
                let mut ahead = ElementsAhead::of(expected);
                let mut further_on = members.clone();
                let mut added = 0;
                for (at, member) in members.enumerate() {
                    if let Some(ahead) = &mut ahead {
                        ahead.advance(expected, at, |_, guard| {
                            let member = further_on.next().unwrap_or_default();
                            set.prefetch_element(env.hasher.hash(member), guard)
                        });
                    }
                    if set.add(env.hasher, limits, member) {
                        put_member(op, OP_ADD, member);
                        added += 1;
                    }
                }
                added
            },
        )
    }

    /// Runs `edit` on the key's set; `None` if there is none. An empty set is removed with its key.
    pub fn edit_set<R>(
        &mut self,
        db: DbId,
        key: Key<'_>,
        edit: impl FnOnce(&mut SetEdit<'_>) -> R,
    ) -> Result<Option<R>, WrongType> {
        let limits = self.set_limits();
        self.change_value(db, key, |set, op, env| {
            edit(&mut SetEdit { set, op, hasher: env.hasher, limits })
        })
    }

    /// As `edit_set`, creating the set if there is none, for `members` to be put into it.
    pub fn edit_or_create_set<R>(
        &mut self,
        db: DbId,
        key: Key<'_>,
        members: &[&[u8]],
        edit: impl FnOnce(&mut SetEdit<'_>) -> R,
    ) -> Result<R, WrongType> {
        let limits = self.set_limits();
        let first = members.first().copied().unwrap_or_default();
        self.upsert_value(
            db,
            key,
            |_| SetValue::for_members(first, members.len(), limits),
            |set: &mut SetValue, op, env| {
                edit(&mut SetEdit { set, op, hasher: env.hasher, limits })
            },
        )
    }

    /// Removes members from the key's set, and the key with the last one; returns how many existed.
    pub fn set_remove<'m>(
        &mut self,
        db: DbId,
        key: Key<'_>,
        members: impl Iterator<Item = &'m [u8]>,
    ) -> Result<usize, WrongType> {
        self.remove_members(db, key, members, |set: &mut SetValue, op, env, member| {
            let found = set.remove(env.hasher, member);
            if found {
                put_member(op, OP_REMOVE, member);
            }
            found
        })
    }

    /// Removes up to `count` random members of the key's set; `visit` sees each. Returns whether
    /// there was a set.
    pub fn set_pop(
        &mut self,
        db: DbId,
        key: Key<'_>,
        count: usize,
        mut random: impl FnMut() -> u64,
        mut visit: impl FnMut(Member<'_>),
    ) -> Result<bool, WrongType> {
        let limits = self.set_limits();
        let mut kept = None;
        let popped = self.change_value(db, key, |set: &mut SetValue, op, env| {
            let stay = set.len().saturating_sub(count);
            if stay == 0 {
                set.members().for_each(&mut visit);
                kept = Some(SetValue::of_ints());
                return;
            }
            // Members that stay keep their times, which the other way does by itself.
            let is_few = stay.saturating_mul(POP_KEEP_FACTOR) <= count;
            if count > 1 && is_few && !set.is_timed() {
                let mut rest =
                    if set.is_of_ints() { SetValue::of_ints() } else { SetValue::packed() };
                for _ in 0..stay {
                    set.pop(env.hasher, &mut random, |member| {
                        member.with_bytes(|bytes| rest.add(env.hasher, limits, bytes))
                    });
                }
                set.members().for_each(&mut visit);
                rest.shrink_to_fit();
                kept = Some(rest);
                return;
            }
            set.pop_many(env.hasher, count, &mut random, |member| {
                member.with_bytes(|bytes| put_member(op, OP_REMOVE, bytes));
                visit(member);
            });
        })?;
        if kept.as_ref().is_some_and(SetValue::is_empty) {
            self.delete(db, key);
        } else if let Some(kept) = kept {
            if self.scratch.undoable {
                // The members that stay have left the old value, which nothing says otherwise.
                let mut op = Vec::new();
                kept.members()
                    .for_each(|it| it.with_bytes(|it| put_member(&mut op, OP_REMOVE, it)));
                self.scratch.undo().changed(db, key, &op);
            }
            let expire_at = self.peek(db, key).map_or(0, |entry| entry.expire_at());
            self.put_value(db, key, kept, expire_at);
        }
        Ok(popped.is_some())
    }
}

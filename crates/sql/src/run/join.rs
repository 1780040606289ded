//! Joins: nested loops in the planned order, by indexes and hashes where there are some.

use super::index::{Bounded, KeyPart, Reached, Side, key_part};
use super::keep::{Kept, RowHash, canonical};
use super::{Env, Row, Run, Seen, Slot};
use crate::error::{self, Error};
use crate::operators::order;
use crate::tree::{Access, Core, Ex, Source, Step};
use crate::value::Value;
use ladon_space::{FieldType, IteratorType, Selection, Space, Tuple};
use smallvec::{SmallVec, smallvec};
use std::rc::Rc;

/// Takes what the tables show. Says whether to go on.
pub(super) type Joined<'j, 'r> = dyn FnMut(&[Slot<'r>]) -> Result<bool, Error> + 'j;

/// What the tables of a join show; most joins have few.
pub(super) type Slots<'r> = SmallVec<[Slot<'r>; 4]>;

/// Rows of one table.
pub(super) enum Rows<'s> {
    One(Option<&'s Tuple>),
    All(Box<Selection<'s>>),
    Bounded(Box<Bounded<'s>>),
    /// One selection after the other.
    Keys(Box<(std::vec::IntoIter<Selection<'s>>, Option<Selection<'s>>)>),
    Made(Rc<Vec<Row>>, usize),
    Hashed(Rc<RowHash<'s>>, Option<u32>),
}

impl<'s> Iterator for Rows<'s> {
    type Item = Slot<'s>;

    #[inline]
    fn next(&mut self) -> Option<Slot<'s>> {
        match self {
            Rows::One(tuple) => tuple.take().map(Slot::Tuple),
            Rows::All(selection) => selection.next().map(Slot::Tuple),
            Rows::Bounded(bounded) => bounded.next(),
            Rows::Keys(keys) => loop {
                let (rest, current) = &mut **keys;
                if let Some(tuple) = current.as_mut().and_then(Iterator::next) {
                    return Some(Slot::Tuple(tuple));
                }
                *current = Some(rest.next()?);
            },
            Rows::Made(rows, at) => {
                *at += 1;
                rows.get(*at - 1).map(|row| Slot::Row(Row::clone(row)))
            }
            Rows::Hashed(hash, place) => {
                let (row, next) = hash.row((*place)?)?;
                *place = next;
                Some(row)
            }
        }
    }
}

impl<'r> Run<'r> {
    /// Joins the tables from a step on, and passes on what they show. Returns whether to go on.
    pub(super) fn join(
        &self,
        core: &Core,
        at: usize,
        slots: &mut Slots<'r>,
        outer: Option<&Env<'_>>,
        sink: &mut Joined<'_, 'r>,
    ) -> Result<bool, Error> {
        let Some(step) = core.steps.get(at) else { return sink(slots) };
        let mut is_matched = false;
        let (rows, is_helped) = self.rows(core, step, slots, outer)?;
        for slot in rows {
            self.budget.step()?;
            slots[step.slot] = slot;
            let env = Env { slots, aggregates: &[], outer };
            if !self.all_hold(&step.filter, &env)?
                || !is_helped && !self.all_hold(&step.seen_to, &env)?
            {
                continue;
            }
            is_matched = true;
            if !self.all_hold(&step.after, &env)? {
                continue;
            }
            let goes_on = if at + 1 == core.steps.len() {
                sink(slots)?
            } else {
                self.join(core, at + 1, slots, outer, sink)?
            };
            if !goes_on {
                return Ok(false);
            }
        }
        slots[step.slot] = Slot::Nothing;
        if step.is_left && !is_matched {
            let env = Env { slots, aggregates: &[], outer };
            if self.all_hold(&step.after, &env)? {
                return self.join(core, at + 1, slots, outer, sink);
            }
        }
        Ok(true)
    }

    fn space(&self, id: u32) -> Result<&'r Space, Error> {
        self.spaces.get(id).ok_or_else(|| error::no_space(&id.to_string()))
    }

    /// The rows that a step looks at, and whether its access helped.
    pub(super) fn rows(
        &self,
        core: &Core,
        step: &Step,
        slots: &[Slot<'r>],
        outer: Option<&Env<'_>>,
    ) -> Result<(Rows<'r>, bool), Error> {
        let env = Env { slots, aggregates: &[], outer };
        let source = &core.sources[step.slot];
        let all = || Ok((self.all(source, &env)?, false));
        match &step.access {
            Access::Hash { own, known, place } => {
                let hash = self.hash(source, (own, *place), step.slot, slots.len(), &env)?;
                let mut key = Vec::new();
                for ex in known {
                    match self.see(ex, &env)? {
                        Seen::Null => return Ok((Rows::One(None), true)),
                        value => join_key(value, &mut key),
                    }
                }
                let first = hash.first(&key);
                Ok((Rows::Hashed(hash, first), true))
            }
            Access::Index(access) => {
                let Source::Table(id) = source else { return all() };
                match self.bounded(self.space(*id)?, access, &env)? {
                    Reached::Nothing => Ok((Rows::One(None), true)),
                    Reached::One(found) => Ok((Rows::One(found), true)),
                    Reached::Bounded(bounded) => Ok((Rows::Bounded(bounded), true)),
                    Reached::Unusable => all(),
                }
            }
            Access::Keys { index, kind, list } => {
                let Source::Table(id) = source else { return all() };
                match self.keys(self.space(*id)?, (*index, *kind), list, &env)? {
                    Some(selections) => {
                        Ok((Rows::Keys(Box::new((selections.into_iter(), None))), true))
                    }
                    None => all(),
                }
            }
            Access::All => all(),
        }
    }

    fn all(&self, source: &Source, env: &Env<'_>) -> Result<Rows<'r>, Error> {
        Ok(match source {
            Source::Table(id) => {
                let space = self.space(*id)?;
                if space.index(0).is_none() {
                    return Ok(Rows::One(None));
                }
                let all = space.select(0, IteratorType::All, &[0x90], 0, u64::MAX, None)?;
                Rows::All(Box::new(all))
            }
            Source::Query(sub) => Rows::Made(self.sub_rows(sub, env, None)?, 0),
            Source::Recursive(recursion) => Rows::Made(self.recursion(recursion, env)?, 0),
            Source::LastRound(place) => match self.kept(*place) {
                Kept::Rows(rows) => Rows::Made(rows, 0),
                _ => Rows::One(None),
            },
        })
    }

    /// The selections of a list of keys: each key once, in their order. `None` if the index does not
    /// help.
    fn keys(
        &self,
        space: &'r Space,
        (index, kind): (u32, FieldType),
        list: &[Ex],
        env: &Env<'_>,
    ) -> Result<Option<Vec<Selection<'r>>>, Error> {
        let mut values: Vec<Value> = Vec::new();
        for ex in list {
            match key_part(&self.eval(ex, env)?, kind, Side::Exact) {
                KeyPart::Exact(value) => values.push(value),
                KeyPart::Never => {}
                KeyPart::Unusable => return Ok(None),
            }
        }
        values.sort_by(|a, b| order(a, b, 0));
        values.dedup_by(|a, b| order(a, b, 0).is_eq());
        values
            .iter()
            .map(|value| self.keyed(space, index, value))
            .collect::<Result<_, _>>()
            .map(Some)
    }

    /// A table's rows by a hash of what they are joined by, made at the first look.
    fn hash(
        &self,
        source: &Source,
        (own, place): (&[Ex], usize),
        slot: usize,
        count: usize,
        env: &Env<'_>,
    ) -> Result<Rc<RowHash<'r>>, Error> {
        if let Kept::Hash(hash) = self.kept(place) {
            return Ok(hash);
        }
        let mut hash = RowHash::default();
        let mut slots: Slots<'r> = smallvec![Slot::Nothing; count];
        let mut key = Vec::new();
        'rows: for row in self.all(source, env)? {
            self.budget.step()?;
            slots[slot] = row.clone();
            let own_env = Env { slots: &slots, aggregates: &[], outer: env.outer };
            key.clear();
            for ex in own {
                match self.see(ex, &own_env)? {
                    Seen::Null => continue 'rows,
                    value => join_key(value, &mut key),
                }
            }
            self.budget.take(RowHash::ROW_BYTES)?;
            hash.add(&key, row);
        }
        let hash = Rc::new(hash);
        if is_fixed(source) {
            self.keep(place, Kept::Hash(Rc::clone(&hash)));
        }
        Ok(hash)
    }
}

/// Whether a source has the same rows as long as the statement runs.
fn is_fixed(source: &Source) -> bool {
    match source {
        Source::Table(_) => true,
        Source::Query(sub) => sub.kept.is_some(),
        Source::Recursive(_) | Source::LastRound(_) => false,
    }
}

/// Appends what a value is joined by. A text that is a number equals the number where it is
/// compared with one; what does not is sorted out when the condition itself is looked at.
fn join_key(value: Seen<'_>, key: &mut Vec<u8>) {
    match value.text().and_then(crate::value::parse_number) {
        Some(number) => canonical(&number, 0, key),
        None => value.canonical(0, key),
    }
}

//! Groups and their aggregates.

use super::core::{Sink, empty};
use super::keep::{ByBytes, canonical_row};
use super::query::row_bytes;
use super::scan::Scan;
use super::{Budget, Env, Run, Seen, Slot};
use crate::aggregate::{Aggregate, State};
use crate::error::Error;
use crate::operators::order;
use crate::tree::{AggregateCall, Core, Group};
use crate::value::Value;
use std::cmp::Ordering;
use std::collections::HashSet;

/// A group so far.
pub(super) struct Grouped<'r> {
    keys: Vec<Value>,
    pub(super) states: Vec<State>,
    /// Values that aggregates of DISTINCT have seen.
    seen: Vec<HashSet<Vec<u8>>>,
    /// The row that columns outside of aggregates show.
    pub(super) slots: Vec<Slot<'r>>,
}

impl<'r> Grouped<'r> {
    pub(super) fn new(keys: Vec<Value>, group: &Group, slots: &[Slot<'r>]) -> Grouped<'r> {
        Grouped {
            keys,
            states: group.aggregates.iter().map(|call| State::new(call.of)).collect(),
            seen: group.aggregates.iter().map(|_| HashSet::new()).collect(),
            slots: if group.shows_row { slots.to_vec() } else { Vec::new() },
        }
    }
}

/// The groups so far, by the bytes of their keys.
#[derive(Default)]
pub(super) struct Groups<'r> {
    places: ByBytes<usize>,
    all: Vec<Grouped<'r>>,
}

impl<'r> Groups<'r> {
    /// The place of the group with these keys; without keys there is one.
    #[inline]
    pub(super) fn find(&self, keys: &[u8]) -> Option<usize> {
        if keys.is_empty() {
            return (!self.all.is_empty()).then_some(0);
        }
        self.places.get(keys).copied()
    }

    /// Adds a group that is not there. Returns its place.
    pub(super) fn add(
        &mut self,
        budget: &Budget,
        keys: &[u8],
        one: Grouped<'r>,
    ) -> Result<usize, Error> {
        if !keys.is_empty() {
            budget.take(row_bytes(&one.keys) + keys.len() + 256)?;
            self.places.insert(keys.to_vec(), self.all.len());
        }
        self.all.push(one);
        Ok(self.all.len() - 1)
    }

    #[inline]
    pub(super) fn at(&mut self, place: usize) -> &mut Grouped<'r> {
        &mut self.all[place]
    }
}

impl<'r> Run<'r> {
    pub(super) fn grouped(
        &self,
        core: &Core,
        outer: Option<&Env<'_>>,
        sink: &mut Sink<'_>,
    ) -> Result<(), Error> {
        let Some(group) = &core.group else { return Ok(()) };
        let nothing = Env { slots: &[], aggregates: &[], outer };
        let collations: Vec<u32> = group.keys.iter().map(|(_, id)| *id).collect();
        let mut groups = Groups::default();
        if self.all_hold(&core.filter, &nothing)? {
            let scan = Scan::of(core, group);
            let is_done = match &scan {
                Some(scan) => self.scanned((core, group, scan), outer, &mut groups)?,
                None => false,
            };
            if !is_done {
                self.group_joined(core, group, outer, &mut groups)?;
            }
        }
        let mut groups = groups.all;
        if group.keys.is_empty() && groups.is_empty() {
            let slots = empty(core);
            groups.push(Grouped::new(Vec::new(), group, &slots));
        }
        groups.sort_by(|a, b| {
            let pairs = a.keys.iter().zip(&b.keys).zip(&collations);
            let orders = pairs.map(|((a, b), collation)| order(a, b, *collation));
            orders.fold(Ordering::Equal, Ordering::then)
        });
        for one in groups {
            if !self.show(core, group, one, outer, sink)? {
                break;
            }
        }
        Ok(())
    }

    /// Takes all rows of a join into their groups.
    fn group_joined(
        &self,
        core: &Core,
        group: &Group,
        outer: Option<&Env<'_>>,
        groups: &mut Groups<'r>,
    ) -> Result<(), Error> {
        let mut bytes = Vec::new();
        let mut slots = empty(core);
        self.join(core, 0, &mut slots, outer, &mut |slots| {
            let env = Env { slots, aggregates: &[], outer };
            bytes.clear();
            for (ex, collation) in &group.keys {
                self.see(ex, &env)?.canonical(*collation, &mut bytes);
            }
            let at = match groups.find(&bytes) {
                Some(at) => at,
                None => {
                    let keys: Result<Vec<Value>, Error> =
                        group.keys.iter().map(|(ex, _)| self.eval(ex, &env)).collect();
                    groups.add(self.budget, &bytes, Grouped::new(keys?, group, slots))?
                }
            };
            self.take_in(group, groups.at(at), slots, &env)?;
            Ok(true)
        })?;
        Ok(())
    }

    fn take_in(
        &self,
        group: &Group,
        into: &mut Grouped<'r>,
        slots: &[Slot<'r>],
        env: &Env<'_>,
    ) -> Result<(), Error> {
        let mut shows = true;
        for (at, call) in group.aggregates.iter().enumerate() {
            let is_extreme = matches!(call.of, Aggregate::Min | Aggregate::Max);
            let taken = self.take_one(call, (&mut into.states[at], &mut into.seen[at]), env)?;
            // The last MIN or MAX says which row is shown.
            if is_extreme {
                shows = taken;
            }
        }
        if shows && group.shows_row {
            into.slots.clone_from_slice(slots);
        }
        Ok(())
    }

    #[inline]
    fn take_one(
        &self,
        call: &AggregateCall,
        (state, seen): (&mut State, &mut HashSet<Vec<u8>>),
        env: &Env<'_>,
    ) -> Result<bool, Error> {
        if let ([ex], false) = (&call.arguments[..], call.is_distinct) {
            return self.take_seen(call, state, self.see(ex, env)?);
        }
        if call.arguments.is_empty() {
            return state.take(&[], call.collation);
        }
        let values: Result<Vec<Value>, Error> =
            call.arguments.iter().map(|ex| self.eval(ex, env)).collect();
        let values = values?;
        if call.is_distinct {
            let key = canonical_row(&values[..values.len().min(1)], &[call.collation]);
            let bytes = key.len() + 32;
            if !seen.insert(key) {
                return Ok(false);
            }
            self.budget.take(bytes)?;
        }
        self.take_values(call, state, &values)
    }

    #[inline]
    pub(super) fn take_seen(
        &self,
        call: &AggregateCall,
        state: &mut State,
        seen: Seen<'_>,
    ) -> Result<bool, Error> {
        if let Seen::Int(number) = &seen
            && state.take_integer(*number)?
        {
            return Ok(false);
        }
        let value = seen.into_value();
        self.take_values(call, state, std::slice::from_ref(&value))
    }

    fn take_values(
        &self,
        call: &AggregateCall,
        state: &mut State,
        values: &[Value],
    ) -> Result<bool, Error> {
        let before = state.bytes();
        let taken = state.take(values, call.collation)?;
        self.budget.take(state.bytes().saturating_sub(before))?;
        Ok(taken)
    }

    fn show(
        &self,
        core: &Core,
        group: &Group,
        one: Grouped<'_>,
        outer: Option<&Env<'_>>,
        sink: &mut Sink<'_>,
    ) -> Result<bool, Error> {
        let aggregates: Vec<Value> = one.states.into_iter().map(State::result).collect();
        let env = Env { slots: &one.slots, aggregates: &aggregates, outer };
        if let Some(having) = &group.having
            && !self.holds(having, &env)?
        {
            return Ok(true);
        }
        let row = self.row(&core.results, &env)?;
        let keys = self.row(&core.sort_keys, &env)?;
        sink(row, keys)
    }
}

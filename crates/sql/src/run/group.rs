//! Groups and their aggregates.

use super::core::{Sink, empty};
use super::keep::canonical_row;
use super::query::row_bytes;
use super::{Env, Run, Seen, Slot};
use crate::aggregate::{Aggregate, State};
use crate::error::Error;
use crate::operators::order;
use crate::tree::{AggregateCall, Core, Group};
use crate::value::Value;
use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};

/// A group so far.
struct Grouped<'r> {
    keys: Vec<Value>,
    states: Vec<State>,
    /// Values that aggregates of DISTINCT have seen.
    seen: Vec<HashSet<Vec<u8>>>,
    /// The row that columns outside of aggregates show.
    slots: Vec<Slot<'r>>,
}

impl<'r> Grouped<'r> {
    fn new(keys: Vec<Value>, group: &Group, slots: &[Slot<'r>]) -> Grouped<'r> {
        Grouped {
            keys,
            states: group.aggregates.iter().map(|call| State::new(call.of)).collect(),
            seen: group.aggregates.iter().map(|_| HashSet::new()).collect(),
            slots: if group.shows_row { slots.to_vec() } else { Vec::new() },
        }
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
        let mut places: HashMap<Vec<u8>, usize> = HashMap::new();
        let mut groups: Vec<Grouped<'r>> = Vec::new();
        let mut bytes = Vec::new();
        if self.all_hold(&core.filter, &nothing)? {
            let mut slots = empty(core);
            self.join(core, 0, &mut slots, outer, &mut |slots| {
                let env = Env { slots, aggregates: &[], outer };
                if group.keys.is_empty() {
                    if groups.is_empty() {
                        groups.push(Grouped::new(Vec::new(), group, slots));
                    }
                    self.take_in(group, &mut groups[0], slots, &env)?;
                    return Ok(true);
                }
                bytes.clear();
                for (ex, collation) in &group.keys {
                    self.see(ex, &env)?.canonical(*collation, &mut bytes);
                }
                let at = match places.get(&bytes) {
                    Some(at) => *at,
                    None => {
                        let keys: Result<Vec<Value>, Error> =
                            group.keys.iter().map(|(ex, _)| self.eval(ex, &env)).collect();
                        let keys = keys?;
                        self.budget.take(row_bytes(&keys) + bytes.len() + 256)?;
                        groups.push(Grouped::new(keys, group, slots));
                        places.insert(bytes.clone(), groups.len() - 1);
                        groups.len() - 1
                    }
                };
                self.take_in(group, &mut groups[at], slots, &env)?;
                Ok(true)
            })?;
        }
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
            if is_extreme && group.aggregates.len() == 1 {
                shows = taken;
            }
        }
        if shows && group.shows_row {
            into.slots.clone_from_slice(slots);
        }
        Ok(())
    }

    fn take_one(
        &self,
        call: &AggregateCall,
        (state, seen): (&mut State, &mut HashSet<Vec<u8>>),
        env: &Env<'_>,
    ) -> Result<bool, Error> {
        if let ([ex], false) = (&call.arguments[..], call.is_distinct) {
            let seen = self.see(ex, env)?;
            if let Seen::Int(number) = seen
                && state.take_integer(number)?
            {
                return Ok(false);
            }
            let value = seen.into_value();
            return self.take_values(call, state, std::slice::from_ref(&value));
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

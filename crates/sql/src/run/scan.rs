//! Groups of one table's rows whose keys and aggregates are of plain columns: nothing is computed
//! between a tuple and its aggregates.

use super::core::empty;
use super::group::{Grouped, Groups};
use super::{Env, Run, Seen, see_field};
use crate::aggregate::Aggregate;
use crate::error::Error;
use crate::tree::{Core, Ex, Group, Place, Source, Step};
use smallvec::SmallVec;

/// What is read of each tuple.
pub(super) struct Scan<'c> {
    step: &'c Step,
    /// Fields that rows are grouped by, with their collations.
    keys: SmallVec<[(u32, u32); 2]>,
    /// The field that each aggregate is of; `COUNT(*)` is of none.
    arguments: SmallVec<[Option<u32>; 4]>,
}

impl<'c> Scan<'c> {
    /// The scan that a core is, if it is one.
    pub(super) fn of(core: &'c Core, group: &Group) -> Option<Scan<'c>> {
        let [step] = &core.steps[..] else { return None };
        let is_plain = step.filter.is_empty() && step.after.is_empty() && !step.is_left;
        if !is_plain || !matches!(core.sources[step.slot], Source::Table(_)) {
            return None;
        }
        let field = |ex: &Ex| match ex {
            Ex::Column(Place { up: 0, slot, field }) if *slot == step.slot => Some(*field),
            _ => None,
        };
        let keys = group.keys.iter().map(|(ex, collation)| Some((field(ex)?, *collation)));
        let arguments = group.aggregates.iter().map(|call| {
            // MIN and MAX say which row is shown.
            if call.is_distinct || matches!(call.of, Aggregate::Min | Aggregate::Max) {
                return None;
            }
            match &call.arguments[..] {
                [] => Some(None),
                [ex] => field(ex).map(Some),
                _ => None,
            }
        });
        Some(Scan {
            step,
            keys: keys.collect::<Option<_>>()?,
            arguments: arguments.collect::<Option<_>>()?,
        })
    }
}

impl<'r> Run<'r> {
    /// Takes all rows of a scan into their groups. False, with nothing done, where its access does
    /// not help, so that conditions have to be looked at.
    pub(super) fn scanned(
        &self,
        (core, group, scan): (&Core, &Group, &Scan<'_>),
        outer: Option<&Env<'_>>,
        groups: &mut Groups<'r>,
    ) -> Result<bool, Error> {
        let mut slots = empty(core);
        let (rows, is_helped) = self.rows(core, scan.step, &slots, outer)?;
        if !is_helped && !scan.step.seen_to.is_empty() {
            return Ok(false);
        }
        let mut bytes = Vec::new();
        for slot in rows {
            self.budget.step()?;
            slots[scan.step.slot] = slot;
            let Some(tuple) = slots[scan.step.slot].tuple() else { continue };
            bytes.clear();
            for (field, collation) in &scan.keys {
                see_field(tuple, *field).canonical(*collation, &mut bytes);
            }
            let at = match groups.find(&bytes) {
                Some(at) => at,
                None => {
                    let keys = scan.keys.iter().map(|(field, _)| see_field(tuple, *field));
                    let keys = keys.map(Seen::into_value).collect();
                    groups.add(self.budget, &bytes, Grouped::new(keys, group, &slots))?
                }
            };
            let into = groups.at(at);
            for ((call, field), state) in
                group.aggregates.iter().zip(&scan.arguments).zip(&mut into.states)
            {
                match field {
                    Some(field) => self.take_seen(call, state, see_field(tuple, *field))?,
                    None => state.take(&[], call.collation)?,
                };
            }
            if group.shows_row {
                into.slots.clone_from_slice(&slots);
            }
        }
        Ok(true)
    }
}

//! Rows of one SELECT: joined, filtered, grouped, distinct.

use super::join::Slots;
use super::keep::canonical_row;
use super::{Env, Row, Run, Slot};
use crate::error::Error;
use crate::tree::{Core, Ex};
use crate::value::Value;
use std::collections::HashSet;

/// Takes a row and the keys that it is sorted by. Says whether to go on.
pub(super) type Sink<'s> = dyn FnMut(Row, Row) -> Result<bool, Error> + 's;

/// The tables of a core before the first row.
pub(super) fn empty<'r>(core: &Core) -> Slots<'r> {
    smallvec::smallvec![Slot::Nothing; core.sources.len()]
}

impl Run<'_> {
    /// Passes the rows of a core on.
    pub(super) fn core(
        &self,
        core: &Core,
        outer: Option<&Env<'_>>,
        sink: &mut Sink<'_>,
    ) -> Result<(), Error> {
        let collations = &core.collations;
        if !core.is_distinct {
            return self.undoubled(core, outer, sink);
        }
        let mut seen = HashSet::new();
        self.undoubled(core, outer, &mut |row, keys| {
            let key = canonical_row(&row, collations);
            let bytes = key.len() + 32;
            if !seen.insert(key) {
                return Ok(true);
            }
            self.budget.take(bytes)?;
            sink(row, keys)
        })
    }

    fn undoubled(
        &self,
        core: &Core,
        outer: Option<&Env<'_>>,
        sink: &mut Sink<'_>,
    ) -> Result<(), Error> {
        let nothing = Env { slots: &[], aggregates: &[], outer };
        if !core.values.is_empty() {
            for row in &core.values {
                self.budget.step()?;
                if !sink(self.row(row, &nothing)?, Row::from([]))? {
                    break;
                }
            }
            return Ok(());
        }
        if core.group.is_some() {
            return self.grouped(core, outer, sink);
        }
        if !self.all_hold(&core.filter, &nothing)? {
            return Ok(());
        }
        let mut slots = empty(core);
        self.join(core, 0, &mut slots, outer, &mut |slots| {
            let env = Env { slots, aggregates: &[], outer };
            let row = self.row(&core.results, &env)?;
            let keys = self.row(&core.sort_keys, &env)?;
            sink(row, keys)
        })?;
        Ok(())
    }

    /// Visits what the tables of a core show, each row that its conditions select.
    pub(crate) fn each_joined(
        &self,
        core: &Core,
        outer: Option<&Env<'_>>,
        visit: &mut dyn FnMut(&Env<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        if !self.all_hold(&core.filter, &Env { outer, ..Env::NOTHING })? {
            return Ok(());
        }
        let mut slots = empty(core);
        self.join(core, 0, &mut slots, outer, &mut |slots| {
            visit(&Env { slots, aggregates: &[], outer })?;
            Ok(true)
        })?;
        Ok(())
    }

    pub(super) fn row(&self, all: &[Ex], env: &Env<'_>) -> Result<Row, Error> {
        let values: Result<Vec<Value>, Error> = all.iter().map(|ex| self.eval(ex, env)).collect();
        Ok(values?.into())
    }
}

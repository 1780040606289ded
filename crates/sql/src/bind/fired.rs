//! Which triggers a change of rows fires.

use super::Binder;
use crate::ast::{CreateTrigger, Event};
use crate::catalog::Table;
use crate::error::{self, Error};
use crate::programs::{Fired, parsed};
use std::sync::Arc;

/// Triggers that one statement may fire, those of other triggers among them.
const PROGRAMS_MAX: usize = 1_000;
/// Triggers that fire each other: as in Tarantool.
const CHAIN_MAX: usize = 30;

impl Binder<'_> {
    /// The triggers that an event fires, the latest first. `set` has the columns that an UPDATE
    /// sets.
    pub(crate) fn fired(
        &mut self,
        table: &Arc<Table>,
        event: Event,
        set: &[usize],
    ) -> Result<Vec<Fired>, Error> {
        let mut fired = Vec::new();
        for trigger in table.triggers.iter().rev() {
            let created = parsed(trigger)?;
            let is_of = |name: &String| table.column(name).is_some_and(|at| set.contains(&at));
            let is_set = created.columns.is_empty() || created.columns.iter().any(is_of);
            if created.event == event && is_set {
                let timing = created.timing;
                let program = self.program(&trigger.name, created, table)?;
                fired.push(Fired { timing, program });
            }
        }
        Ok(fired)
    }

    fn program(
        &mut self,
        name: &str,
        created: Box<CreateTrigger>,
        table: &Arc<Table>,
    ) -> Result<usize, Error> {
        if let Some(at) = self.programs.names.iter().position(|known| known == name) {
            return Ok(at);
        }
        let at = self.programs.names.len();
        if at >= PROGRAMS_MAX {
            return Err(error::limit("The number of triggers", at + 1, PROGRAMS_MAX));
        }
        if self.programs.depth + 1 >= CHAIN_MAX {
            let message = "Maximum number of chained trigger activations exceeded.";
            return Err(error::generic(message));
        }
        self.programs.depths.push(self.programs.depth + 1);
        self.programs.names.push(name.to_owned());
        self.programs.pending.push((at, created, Arc::clone(table)));
        Ok(at)
    }
}

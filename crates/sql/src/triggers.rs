//! Triggers: what a change of rows fires, bound with the change.
//!
//! ```text
//! INSERT INTO t ...  -> Changing { .., triggers: [program 0, ..] }
//!                         program 0: WHEN, statements -> Changing { .., triggers: [program 0, ..] }
//! ```
//!
//! A program is bound once, whoever fires it: programs may fire each other in a circle. OLD and NEW
//! are the two tables of a query around its statements.

use crate::ast::{CreateTrigger, Event, Statement};
use crate::bind::{Binder, NEW, OLD};
use crate::catalog::Table;
use crate::changes::{self, Changing};
use crate::error::{self, Error};
use crate::tree::{Ex, Query};
use std::sync::Arc;

/// What a trigger does.
#[derive(Default)]
pub(crate) struct Program {
    pub(crate) when: Option<Ex>,
    pub(crate) steps: Vec<ProgramStep>,
    /// The spaces that WHEN reads.
    pub(crate) reads: Vec<u32>,
}

pub(crate) enum ProgramStep {
    /// A query, and the spaces that it reads.
    Rows(Query, Vec<u32>),
    Changes(Box<Changing>),
}

impl Binder<'_> {
    /// Binds the programs that the statement fires, and those that they fire.
    pub(crate) fn bind_programs(&mut self) -> Result<Vec<Program>, Error> {
        let mut programs = Vec::new();
        while let Some((at, created, table)) = self.programs.pending.pop() {
            self.programs.depth = self.programs.depths[at];
            let program = self.bind_program(&created, &table)?;
            if programs.len() <= at {
                programs.resize_with(at + 1, Program::default);
            }
            programs[at] = program;
        }
        Ok(programs)
    }

    fn bind_program(
        &mut self,
        created: &CreateTrigger,
        table: &Arc<Table>,
    ) -> Result<Program, Error> {
        let has_old = created.event != Event::Insert;
        let has_new = created.event != Event::Delete;
        let rows = [(OLD, has_old), (NEW, has_new)];
        self.with_trigger_rows(table, rows, |binder| {
            let (when, reads) = binder.reading(|binder| {
                let bind = |expr| binder.with_nothing(|binder| binder.expr(expr));
                Ok(created.when.as_ref().map(bind).transpose()?.map(|(ex, _)| ex))
            })?;
            let steps: Result<Vec<ProgramStep>, Error> =
                created.body.iter().map(|step| binder.program_step(step)).collect();
            Ok(Program { when, steps: steps?, reads })
        })
    }

    fn program_step(&mut self, statement: &Statement) -> Result<ProgramStep, Error> {
        Ok(match statement {
            Statement::Select(select) => {
                let (query, reads) = self.reading(|binder| binder.query(select))?;
                ProgramStep::Rows(query, reads)
            }
            Statement::Insert(insert) => {
                ProgramStep::Changes(Box::new(changes::bind_insert(self, insert)?))
            }
            Statement::Update(update) => {
                ProgramStep::Changes(Box::new(changes::bind_update(self, update)?))
            }
            Statement::Delete(delete) => {
                ProgramStep::Changes(Box::new(changes::bind_delete(self, delete)?))
            }
            _ => return Err(error::unsupported("this statement in a trigger")),
        })
    }
}

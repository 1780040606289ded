//! The triggers that a statement fires, before they are bound.

use crate::ast::{CreateTrigger, Statement, Timing};
use crate::catalog::{Table, Trigger};
use crate::error::{self, Error};
use crate::parser;
use std::sync::Arc;

/// A trigger that a change fires.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fired {
    pub(crate) timing: Timing,
    /// Its place among the statement's programs.
    pub(crate) program: usize,
}

/// The programs of a statement.
#[derive(Default)]
pub(crate) struct Programs {
    pub(crate) names: Vec<String>,
    /// Those that are to be bound, with their tables.
    pub(crate) pending: Vec<(usize, Box<CreateTrigger>, Arc<Table>)>,
    /// How many others fire the one that is being bound, one after the other.
    pub(crate) depth: usize,
    /// The same of each program.
    pub(crate) depths: Vec<usize>,
}

/// What the text of a trigger says.
pub(crate) fn parsed(trigger: &Trigger) -> Result<Box<CreateTrigger>, Error> {
    match parser::parse(trigger.text.as_bytes())?.statement {
        Statement::CreateTrigger(created) => Ok(created),
        _ => Err(error::generic("the text of a trigger is no CREATE TRIGGER")),
    }
}

//! CHECK: expressions over one tuple, which every writer of a space obeys.
//!
//! The definition of a space has them as the option `sql_checks`: a map of names and texts. The
//! engine compiles them when a space gets its definition.

use crate::ast::Expr;
use crate::bind::Binder;
use crate::catalog::{Catalog, Column, Table};
use crate::error::{self, Error};
use crate::functions::Around;
use crate::parser::statement::expression;
use crate::run::{Budget, Env, Run, Slot, Spaces};
use crate::tree::Ex;
use crate::value::Value;
use ladon_space::fields::Fields;
use ladon_space::{BoxError, ErrorCode, SpaceDef, TupleCheck};
use std::sync::Arc;

/// `ER_CREATE_CK_CONSTRAINT`.
const CREATE_CHECK: ErrorCode = ErrorCode(195);
/// `ER_CK_CONSTRAINT_FAILED`.
const CHECK_FAILED: ErrorCode = ErrorCode(196);
/// Steps that all checks of a tuple may take: they run under locks.
const STEPS_MAX: u64 = 10_000;
/// Bytes that they may take.
const BYTES_MAX: usize = 1 << 20;
/// What differs from one call to the next.
const UNSTEADY: [&str; 5] = ["NOW", "RANDOM", "RANDOMBLOB", "ROW_COUNT", "UUID"];

/// The checks of a space.
struct Checks {
    table: String,
    checks: Vec<Check>,
}

struct Check {
    name: String,
    text: String,
    /// The condition and the places that it keeps; what is wrong with it, if it cannot be compiled:
    /// then nothing may be written.
    condition: Result<(Ex, usize), Error>,
}

/// Knows nothing but one table, which the binder has already.
struct Nothing;

impl Catalog for Nothing {
    fn table(&mut self, _: &str) -> Result<Option<Arc<Table>>, Error> {
        Ok(None)
    }

    fn table_of_space(&mut self, _: u32) -> Result<Option<Arc<Table>>, Error> {
        Ok(None)
    }

    fn trigger_table(&mut self, _: &str) -> Result<Option<String>, Error> {
        Ok(None)
    }

    fn collation(&mut self, _: &str) -> Option<u32> {
        None
    }
}

/// Compiles the checks of a space; none, if it has no checks.
pub fn tuple_checks(def: &SpaceDef) -> Option<Arc<dyn TupleCheck>> {
    if def.sql_checks.is_empty() {
        return None;
    }
    let compile = |(name, text): &(String, String)| Check {
        name: name.clone(),
        text: text.clone(),
        condition: compiled(def, text),
    };
    let checks = def.sql_checks.iter().map(compile).collect();
    Some(Arc::new(Checks { table: def.name.clone(), checks }))
}

/// Checks that a definition's checks can be compiled, and that a space that has tuples gets no new
/// ones.
///
/// # Errors
/// `ER_CREATE_CK_CONSTRAINT`.
pub fn check_definition(
    old: Option<&SpaceDef>,
    new: &SpaceDef,
    is_empty: bool,
) -> Result<(), Error> {
    for (at, check) in new.sql_checks.iter().enumerate() {
        let (name, text) = check;
        if new.sql_checks[..at].iter().any(|(other, _)| other == name) {
            return Err(exists(name, &new.name));
        }
        compiled(new, text).map_err(|error| refused(name, &error.message))?;
        let is_kept = old.is_some_and(|old| old.sql_checks.contains(check));
        if !is_kept && !is_empty {
            return Err(refused(name, "referencing space must be empty"));
        }
    }
    Ok(())
}

pub(crate) fn exists(name: &str, table: &str) -> Error {
    let message = format!("CHECK constraint '{name}' already exists in space '{table}'");
    error::make(ErrorCode(170), message)
}

pub(crate) fn refused(name: &str, why: &str) -> Error {
    error::make(CREATE_CHECK, format!("Failed to create check constraint '{name}': {why}"))
}

/// The condition, and how many places it needs.
fn compiled(def: &SpaceDef, text: &str) -> Result<(Ex, usize), Error> {
    let expr = expression(text)?;
    check_parts(&expr, text)?;
    let mut nothing = Nothing;
    let mut binder = Binder::new(&mut nothing);
    let column = |field: &ladon_space::Field| Column {
        name: field.name.clone(),
        kind: field.kind,
        is_nullable: field.is_nullable,
        collation: 0,
        default: None,
    };
    let table = Arc::new(Table {
        id: def.id,
        name: def.name.clone(),
        columns: def.format.fields.iter().map(column).collect(),
        indexes: Vec::new(),
        autoincrement: None,
        view: None,
        triggers: Vec::new(),
        definition: Vec::new(),
    });
    let (condition, _) = binder.with_table(&table, |binder| binder.expr(&expr))?;
    Ok((condition, binder.places))
}

/// Refuses what may not be in a check.
fn check_parts(expr: &Expr, text: &str) -> Result<(), Error> {
    let mut refused = None;
    expr.each(&mut |part| {
        let why = match part {
            Expr::Select(_) | Expr::Exists(_) | Expr::InSelect(..) => {
                Some(error::generic("Subqueries are prohibited in a ck constraint definition"))
            }
            Expr::Parameter(_) => {
                let place = text.chars().count() + 1;
                Some(error::generic(format!(
                    "At line 1 at or near position {place}: bindings are not allowed in DDL"
                )))
            }
            Expr::Collate(..) => Some(error::unsupported("COLLATE in CHECK")),
            Expr::Call(call) if UNSTEADY.contains(&&call.name[..]) => {
                Some(error::unsupported(&format!("{}() in CHECK", call.name)))
            }
            _ => None,
        };
        refused = refused.take().or(why);
    });
    refused.map_or(Ok(()), Err)
}

impl TupleCheck for Checks {
    fn check(&self, tuple: &[u8]) -> Result<(), BoxError> {
        let row: Vec<Value> = Fields::of(tuple).map(Value::unpack).collect();
        let slots = [Slot::Row(row.into())];
        let env = Env { slots: &slots, aggregates: &[], outer: None };
        let budget = Budget::new(STEPS_MAX, BYTES_MAX, Box::new(|| None));
        let around = Around { random: 1, ..Around::default() };
        for check in &self.checks {
            let (condition, places) = match &check.condition {
                Ok((condition, places)) => (condition, *places),
                Err(error) => {
                    let message = format!(
                        "check constraint '{}' of space '{}' cannot be compiled: {}",
                        check.name, self.table, error.message
                    );
                    return Err(error::make(CHECK_FAILED, message));
                }
            };
            let run = Run::new(Spaces::default(), &[], around, &budget, places);
            // Unknown is no failure.
            if crate::convert::to_truth(&run.eval(condition, &env)?)? == Some(false) {
                let Check { name, text, .. } = check;
                let message = format!("Check constraint failed '{name}': {text}");
                return Err(error::make(CHECK_FAILED, message));
            }
        }
        Ok(())
    }
}

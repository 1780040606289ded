//! What a session keeps of SQL: statements that it prepared, plans, the last number of changed rows.

use super::reply;
use ladon_space::{BoxError, ErrorCode};
use ladon_sql::{Prepared, Table};
use std::collections::HashMap;
use std::sync::Arc;

/// `ER_SQL_EXECUTE`.
pub(super) const SQL_EXECUTE: ErrorCode = ErrorCode(159);
/// `ER_WRONG_QUERY_ID`.
const WRONG_QUERY_ID: ErrorCode = ErrorCode(211);
/// `ER_NO_SUCH_SESSION_SETTING`.
pub(super) const NO_SUCH_SESSION_SETTING: ErrorCode = ErrorCode(207);
/// `ER_SQL_PREPARE`.
const SQL_PREPARE: ErrorCode = ErrorCode(210);

/// Plans that a session keeps.
const PLANS_MAX: usize = 64;
/// Tables that a session keeps; with more, all are forgotten.
const TABLES_MAX: usize = 16;
/// Longest text whose plan is kept: a longer one is rarely sent twice.
const PLAN_TEXT_BYTES_MAX: usize = 4 << 10;
/// Statements that a session may have prepared.
const STATEMENTS_MAX: usize = 1_000;
/// Bytes of all their texts.
const STATEMENT_BYTES_MAX: usize = 5 << 20;

/// A statement that is ready to run.
pub(super) struct Plan {
    pub(super) prepared: Arc<Prepared>,
    /// The metadata of its rows, unless that depends on its parameters.
    pub(super) metadata: Option<Box<[u8]>>,
}

impl Plan {
    pub(super) fn new(prepared: Prepared) -> Arc<Plan> {
        let is_fixed = prepared.columns().iter().all(|column| column.parameter.is_none());
        let metadata = is_fixed.then(|| {
            let mut metadata = Vec::new();
            reply::metadata(&mut metadata, prepared.columns(), &[], None);
            metadata.into()
        });
        Arc::new(Plan { prepared: Arc::new(prepared), metadata })
    }
}

/// A prepared statement.
struct Statement {
    text: Arc<[u8]>,
    /// Its plan, once it has run.
    plan: Option<Arc<Plan>>,
}

/// A session's part of SQL.
#[derive(Default)]
pub(crate) struct State {
    statements: HashMap<u64, Statement>,
    statement_bytes: usize,
    /// Plans by text.
    plans: HashMap<Box<[u8]>, Arc<Plan>>,
    /// Tables by their spaces: to make one of its definition costs as much as a short text's plan.
    tables: HashMap<u32, Arc<Table>>,
    /// The version of the definitions that all plans and tables were made with.
    version: u64,
    /// Rows that the last statement changed.
    pub(super) row_count: u64,
}

pub(super) fn sql_error(code: ErrorCode, message: impl Into<String>) -> BoxError {
    BoxError::new(code, message)
}

pub(super) fn no_such_statement(id: u64) -> BoxError {
    BoxError::new(WRONG_QUERY_ID, format!("Prepared statement with id {id} does not exist"))
}

/// FNV-1a, of 32 bits: a statement's number is that of its text.
fn hash(text: &[u8]) -> u64 {
    let step = |hash: u32, byte: &u8| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
    text.iter().fold(0x811c_9dc5, step).into()
}

impl State {
    /// The text of a prepared statement.
    pub(super) fn text(&self, id: u64) -> Option<Arc<[u8]>> {
        self.statements.get(&id).map(|statement| Arc::clone(&statement.text))
    }

    /// The plan of a prepared statement, if it is still of use.
    pub(super) fn plan_of(&mut self, id: u64, version: u64) -> Option<Arc<Plan>> {
        self.forget_older(version);
        self.statements.get(&id)?.plan.clone()
    }

    pub(super) fn keep_plan_of(&mut self, id: u64, plan: &Arc<Plan>) {
        if let Some(statement) = self.statements.get_mut(&id) {
            statement.plan = Some(Arc::clone(plan));
        }
    }

    /// Prepares a text. Returns its number.
    pub(super) fn keep(&mut self, text: &[u8]) -> Result<u64, BoxError> {
        let mut id = hash(text);
        while self.statements.get(&id).is_some_and(|other| *other.text != *text) {
            id += 1;
        }
        if self.statements.contains_key(&id) {
            return Ok(id);
        }
        let bytes = self.statement_bytes + text.len();
        if self.statements.len() >= STATEMENTS_MAX || bytes > STATEMENT_BYTES_MAX {
            let message = "Failed to prepare SQL statement: the session has prepared too many";
            return Err(BoxError::new(SQL_PREPARE, message));
        }
        self.statement_bytes = bytes;
        self.statements.insert(id, Statement { text: text.into(), plan: None });
        Ok(id)
    }

    pub(super) fn forget(&mut self, id: u64) -> Result<(), BoxError> {
        let statement = self.statements.remove(&id).ok_or_else(|| no_such_statement(id))?;
        self.statement_bytes -= statement.text.len();
        Ok(())
    }

    /// The plan of a text, if it is still of use.
    pub(super) fn plan(&mut self, text: &[u8], version: u64) -> Option<Arc<Plan>> {
        self.forget_older(version);
        self.plans.get(text).cloned()
    }

    /// A space's table, if its definition is what it was.
    pub(super) fn table(&mut self, space: u32, version: u64) -> Option<Arc<Table>> {
        self.forget_older(version);
        self.tables.get(&space).cloned()
    }

    /// Keeps a table that was made with the version last asked for.
    pub(super) fn keep_table(&mut self, space: u32, table: &Arc<Table>) {
        if self.tables.len() >= TABLES_MAX {
            self.tables.clear();
        }
        self.tables.insert(space, Arc::clone(table));
    }

    /// Forgets plans and tables that were made with other definitions.
    fn forget_older(&mut self, version: u64) {
        if self.version != version {
            self.plans.clear();
            self.tables.clear();
            self.statements.values_mut().for_each(|statement| statement.plan = None);
            self.version = version;
        }
    }

    pub(super) fn keep_plan(&mut self, text: &[u8], plan: &Arc<Plan>) {
        if text.len() > PLAN_TEXT_BYTES_MAX {
            return;
        }
        if self.plans.len() >= PLANS_MAX {
            // Any of them: to note which was of use last would cost more than a plan.
            let one = self.plans.keys().next().cloned();
            one.and_then(|text| self.plans.remove(&text));
        }
        self.plans.insert(text.into(), Arc::clone(plan));
    }
}

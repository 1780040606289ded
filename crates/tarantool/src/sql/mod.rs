//! EXECUTE and PREPARE: SQL over the spaces.
//!
//! ```text
//! text --> state.rs: a plan, kept while the definitions stay as they are
//!      --> read.rs   a SELECT: of one space under its lock if it is short, else of copies;
//!                    long ones on a thread of their own (aside.rs)
//!      --> write.rs  changes: computed and written under the locks, or in a transaction on copies
//!                    (steps.rs: in slices)
//!      --> define.rs tuples of the system spaces
//! ```

mod aside;
mod binds;
mod catalog;
mod define;
mod read;
mod reply;
mod savepoint;
mod state;
mod steps;
mod write;

pub(crate) use aside::Aside;
pub(crate) use state::State;
pub(crate) use steps::Steps;
pub(crate) use write::Change;

use crate::error;
use crate::statements::{Ended, Running};
use binds::Values;
use ladon_iproto::request::{Execute, Statement};
use ladon_sql::{Action, Value};
use state::Plan;

impl Running<'_, '_> {
    /// EXECUTE.
    pub(crate) fn execute_sql(
        &mut self,
        execute: &Execute<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), Ended> {
        let plan = match execute.statement {
            Statement::Text(text) => self.plan(text),
            Statement::Id(id) => self.plan_of(id),
        };
        let plan = plan.inspect_err(|_| self.forget_long())?;
        let values = binds::values(execute.bind, plan.prepared.parameters())?;
        self.run_sql(&plan, values, out)
    }

    /// Ends what the statement has begun: nobody waits for it, or its tables are gone.
    fn forget_long(&mut self) {
        // Its thread ends.
        self.session.sql_aside = None;
        self.session.sql_steps = None;
        if let Some(change) = self.session.sql_change.take() {
            change.roll_back(self.thread.scratch);
        }
    }

    /// PREPARE: of a text, a number by which the session may ask for it; of a number, its end.
    pub(crate) fn prepare_sql(
        &mut self,
        execute: &Execute<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), Ended> {
        match execute.statement {
            Statement::Text(text) => {
                let plan = self.plan(text)?;
                let id = self.session.sql.keep(text)?;
                reply::prepared(out, (self.sync, self.schema_version), id, &plan.prepared)?;
            }
            Statement::Id(id) => {
                self.session.sql.forget(id)?;
                ladon_iproto::reply::ok(out, self.sync, self.schema_version);
            }
        }
        Ok(())
    }

    fn run_sql(&mut self, plan: &Plan, values: Values, out: &mut Vec<u8>) -> Result<(), Ended> {
        let is_long = self.session.sql_aside.is_some()
            || self.session.sql_change.is_some()
            || self.session.sql_steps.is_some();
        if self.session.has_left && is_long {
            self.forget_long();
            return Err(error::client_has_left().into());
        }
        let prepared = &plan.prepared;
        let (count, ids) = match prepared.action() {
            Action::Rows => return self.select_sql(plan, values, out),
            Action::Changes(space) => {
                let done = self.change_sql(prepared, space, values)?;
                (done.count, done.ids)
            }
            Action::Define(definable) => (self.define_sql(prepared, &definable)?, Vec::new()),
            Action::Begin | Action::Commit | Action::Rollback => {
                self.transact_sql(&prepared.action())?;
                (0, Vec::new())
            }
            Action::Savepoint(_) | Action::Release(_) | Action::RollbackTo(_) => {
                self.savepoint_sql(&prepared.action())?;
                (0, Vec::new())
            }
            Action::Set(name, value) => {
                self.set_sql(name, value)?;
                (1, Vec::new())
            }
        };
        self.session.sql.row_count = count;
        reply::changed(out, (self.sync, self.schema_version), count, &ids)?;
        Ok(())
    }

    /// START TRANSACTION, COMMIT and ROLLBACK, in a stream.
    fn transact_sql(&mut self, action: &Action<'_>) -> Result<(), Ended> {
        let missing = |verb: &str| {
            let message = format!(
                "Failed to execute SQL statement: cannot {verb} - no transaction is active"
            );
            state::sql_error(state::SQL_EXECUTE, message)
        };
        if self.stream == 0 {
            return Err(match action {
                Action::Begin => error::unsupported("START TRANSACTION outside of a stream"),
                Action::Commit => missing("commit"),
                _ => missing("rollback"),
            }
            .into());
        }
        match action {
            Action::Begin => self.begin(&ladon_iproto::request::Begin::default())?,
            Action::Commit if self.session.transactions.has(self.stream) => self.commit()?,
            Action::Commit => return Err(missing("commit").into()),
            _ if self.session.transactions.has(self.stream) => self.roll_back(),
            _ => return Err(missing("rollback").into()),
        }
        Ok(())
    }

    /// SET SESSION: an update of `_session_settings`.
    fn set_sql(&mut self, name: &str, value: &Value) -> Result<(), Ended> {
        let mut key = vec![0x91];
        ladon_msgpack::write::str(&mut key, name.to_lowercase().as_bytes());
        let mut operations = vec![0x91, 0x93, 0xa1, b'=', 0x01];
        value.pack(&mut operations);
        let update = ladon_space::Statement::Update {
            index: 0,
            key: &key,
            operations: &operations,
            index_base: 0,
        };
        let written = self.write_settings(update)?;
        if written.new.is_none() {
            let message = format!("Session setting {name} doesn't exist");
            return Err(state::sql_error(state::NO_SUCH_SESSION_SETTING, message).into());
        }
        Ok(())
    }
}

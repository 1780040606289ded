//! SAVEPOINT, RELEASE and ROLLBACK TO, in a stream: names of its transaction's savepoints.

use super::state::sql_error;
use crate::error;
use crate::statements::{Ended, Running, Seen};
use ladon_engine::Interactive;
use ladon_record::SpaceId;
use ladon_space::{BoxError, ErrorCode, Statement, Written};
use ladon_sql::Action;

/// `ER_NO_TRANSACTION`.
const NO_TRANSACTION: ErrorCode = ErrorCode(114);
/// Savepoints of one transaction.
const SAVEPOINTS_MAX: usize = 1_000;

/// Those of one transaction: names, and the numbers that the transaction gave them.
#[derive(Default)]
pub(crate) struct Savepoints(Vec<(String, u64)>);

impl Savepoints {
    fn find(&self, name: &str) -> Result<usize, BoxError> {
        let found = self.0.iter().rposition(|(known, _)| known == name);
        found.ok_or_else(error::no_such_savepoint)
    }
}

impl Running<'_, '_> {
    /// Does what one of these statements asks for.
    pub(super) fn savepoint_sql(&mut self, action: &Action<'_>) -> Result<(), Ended> {
        match action {
            Action::Savepoint(name) => self.set_savepoint(name)?,
            Action::Release(name) => {
                let savepoints = self.savepoints()?;
                let at = savepoints.find(name)?;
                savepoints.0.truncate(at);
            }
            Action::RollbackTo(name) => {
                let savepoints = self.savepoints()?;
                let at = savepoints.find(name)?;
                savepoints.0.truncate(at + 1);
                let number = savepoints.0[at].1;
                if !self.open_transaction()?.go_back(number)? {
                    return Err(error::no_such_savepoint().into());
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// One of the same name ends.
    fn set_savepoint(&mut self, name: &str) -> Result<(), BoxError> {
        if self.savepoints()?.0.len() >= SAVEPOINTS_MAX {
            let message = format!("a transaction may have {SAVEPOINTS_MAX} savepoints");
            return Err(error::illegal(&message));
        }
        let number = self.open_transaction()?.savepoint()?;
        let savepoints = self.savepoints()?;
        savepoints.0.retain(|(known, _)| known != name);
        savepoints.0.push((name.to_owned(), number));
        Ok(())
    }

    fn open_transaction(&mut self) -> Result<&mut Interactive, BoxError> {
        let open = self.session.transactions.of(self.stream).and_then(Option::as_mut);
        open.ok_or_else(|| sql_error(NO_TRANSACTION, "No active transaction"))
    }

    fn savepoints(&mut self) -> Result<&mut Savepoints, BoxError> {
        let found = self.session.transactions.savepoints(self.stream);
        found.ok_or_else(|| sql_error(NO_TRANSACTION, "No active transaction"))
    }

    /// Takes back in the stream's transaction what was written in it.
    pub(super) fn write_opposite(
        &mut self,
        space: SpaceId,
        written: &Written,
    ) -> Result<(), BoxError> {
        match (&written.old, &written.new) {
            (Some(old), _) => {
                self.write_in_transaction(space, Statement::Replace(old.bytes()))?;
            }
            (None, Some(new)) => {
                let key =
                    self.read_any(space, Seen::Schema, |space| space.primary_key_of(new.bytes()))?;
                self.write_in_transaction(space, Statement::Delete { index: 0, key: &key })?;
            }
            (None, None) => {}
        }
        Ok(())
    }
}

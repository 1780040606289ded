//! SAVEPOINT, RELEASE and ROLLBACK TO, in a stream: names of its transaction's savepoints.

use super::state::sql_error;
use crate::error;
use crate::savepoint_names::SavepointNames;
use crate::statements::{Ended, Running};
use ladon_engine::Interactive;
use ladon_space::{BoxError, ErrorCode};
use ladon_sql::Action;

/// `ER_NO_TRANSACTION`.
const NO_TRANSACTION: ErrorCode = ErrorCode(114);

impl Running<'_, '_> {
    /// Does what one of these statements asks for.
    pub(super) fn savepoint_sql(&mut self, action: &Action<'_>) -> Result<(), Ended> {
        match action {
            Action::Savepoint(name) => {
                self.names()?.may_set()?;
                let number = self.open_transaction()?.savepoint()?;
                self.names()?.set(name, number);
            }
            Action::Release(name) => self.names()?.release(name)?,
            Action::RollbackTo(name) => {
                let number = self.names()?.go_back(name)?;
                if !self.open_transaction()?.go_back(number)? {
                    return Err(error::no_such_savepoint().into());
                }
            }
            _ => {}
        }
        Ok(())
    }

    pub(super) fn open_transaction(&mut self) -> Result<&mut Interactive, BoxError> {
        self.end_overdue();
        match self.session.transactions.of(self.stream) {
            Some(open) => open.as_mut().ok_or_else(error::transaction_timeout),
            None => Err(sql_error(NO_TRANSACTION, "No active transaction")),
        }
    }

    fn names(&mut self) -> Result<&mut SavepointNames, BoxError> {
        let found = self.session.transactions.savepoint_names(self.stream);
        found.ok_or_else(|| sql_error(NO_TRANSACTION, "No active transaction"))
    }
}

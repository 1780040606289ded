//! SAVEPOINT, RELEASE and ROLLBACK TO, in a stream: taken back by the opposite statements.

use super::state::sql_error;
use crate::savepoints::Savepoints;
use crate::statements::{Ended, Running, Seen};
use ladon_record::SpaceId;
use ladon_space::{BoxError, ErrorCode, Statement, Written};
use ladon_sql::Action;

/// `ER_NO_TRANSACTION`.
const NO_TRANSACTION: ErrorCode = ErrorCode(114);

impl Running<'_, '_> {
    /// Does what one of these statements asks for.
    pub(super) fn savepoint_sql(&mut self, action: &Action<'_>) -> Result<(), Ended> {
        let savepoints = self.savepoints()?;
        match action {
            Action::Savepoint(name) => savepoints.set(name)?,
            Action::Release(name) => savepoints.release(name)?,
            Action::RollbackTo(name) => {
                let written = savepoints.since(name)?;
                let back = written
                    .iter()
                    .rev()
                    .try_for_each(|(space, written)| self.write_opposite(*space, written));
                if let Err(error) = back {
                    // Half of it is no state that anybody asked for.
                    self.roll_back();
                    return Err(error.into());
                }
                self.savepoints()?.forget_since(name)?;
            }
            _ => {}
        }
        Ok(())
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

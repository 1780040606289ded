//! What SQL calls the savepoints of one transaction.

use crate::error;
use ladon_space::BoxError;

/// Savepoints of one transaction.
const SAVEPOINTS_MAX: usize = 1_000;

/// Names, and the numbers that the transaction gave them.
#[derive(Default)]
pub(crate) struct SavepointNames(Vec<(String, u64)>);

impl SavepointNames {
    /// Whether there may be another one.
    ///
    /// # Errors
    /// If there are too many.
    pub(crate) fn may_set(&self) -> Result<(), BoxError> {
        if self.0.len() < SAVEPOINTS_MAX {
            return Ok(());
        }
        Err(error::illegal(&format!("a transaction may have {SAVEPOINTS_MAX} savepoints")))
    }

    /// Sets one. One of the same name ends.
    pub(crate) fn set(&mut self, name: &str, number: u64) {
        self.0.retain(|(known, _)| known != name);
        self.0.push((name.to_owned(), number));
    }

    /// Ends one, and those after it.
    ///
    /// # Errors
    /// If there is none of this name.
    pub(crate) fn release(&mut self, name: &str) -> Result<(), BoxError> {
        let at = self.find(name)?;
        self.0.truncate(at);
        Ok(())
    }

    /// Ends those after one, and returns its number.
    ///
    /// # Errors
    /// If there is none of this name.
    pub(crate) fn go_back(&mut self, name: &str) -> Result<u64, BoxError> {
        let at = self.find(name)?;
        self.0.truncate(at + 1);
        Ok(self.0[at].1)
    }

    fn find(&self, name: &str) -> Result<usize, BoxError> {
        let found = self.0.iter().rposition(|(known, _)| known == name);
        found.ok_or_else(error::no_such_savepoint)
    }
}

//! The savepoints of one transaction: what was written since the first of them.

use ladon_record::SpaceId;
use ladon_space::{BoxError, ErrorCode, Written};

/// `ER_NO_SUCH_SAVEPOINT`.
const NO_SUCH_SAVEPOINT: ErrorCode = ErrorCode(61);
/// Savepoints of one transaction.
const SAVEPOINTS_MAX: usize = 1_000;

/// What was written, the oldest first.
pub(crate) type Log = Vec<(SpaceId, Written)>;

/// Of one transaction.
#[derive(Default)]
pub(crate) struct Savepoints {
    /// Names, with how much was written before.
    marks: Vec<(String, usize)>,
    /// Empty without a savepoint. The transaction's limit of memory bounds it.
    written: Log,
}

impl Savepoints {
    /// Notes what was written.
    pub(crate) fn note(&mut self, space: SpaceId, written: &Written) {
        if !self.marks.is_empty() {
            self.written.push((space, written.clone()));
        }
    }

    /// Sets one. One of the same name ends.
    ///
    /// # Errors
    /// If there are too many.
    pub(crate) fn set(&mut self, name: &str) -> Result<(), BoxError> {
        self.marks.retain(|(known, _)| known != name);
        if self.marks.len() >= SAVEPOINTS_MAX {
            let message = format!("a transaction may have {SAVEPOINTS_MAX} savepoints");
            return Err(crate::error::illegal(&message));
        }
        self.marks.push((name.to_owned(), self.written.len()));
        Ok(())
    }

    /// Ends one, and those after it.
    ///
    /// # Errors
    /// If there is none of this name.
    pub(crate) fn release(&mut self, name: &str) -> Result<(), BoxError> {
        let at = self.find(name)?;
        self.marks.truncate(at);
        if at == 0 {
            self.written.clear();
        }
        Ok(())
    }

    /// Takes out what was written since one, and ends those after it.
    ///
    /// # Errors
    /// If there is none of this name.
    pub(crate) fn since(&mut self, name: &str) -> Result<Log, BoxError> {
        let at = self.find(name)?;
        self.marks.truncate(at + 1);
        Ok(self.written.split_off(self.marks[at].1))
    }

    /// Forgets what was written since one, because it was taken back.
    ///
    /// # Errors
    /// If there is none of this name.
    pub(crate) fn forget_since(&mut self, name: &str) -> Result<(), BoxError> {
        self.since(name).map(drop)
    }

    fn find(&self, name: &str) -> Result<usize, BoxError> {
        self.marks.iter().rposition(|(known, _)| known == name).ok_or_else(|| {
            let message = "Can not rollback to savepoint: the savepoint does not exist";
            BoxError::new(NO_SUCH_SAVEPOINT, message)
        })
    }
}

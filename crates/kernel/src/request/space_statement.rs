//! Statements on spaces by commands that name them: a transaction of its own each.

use crate::command::error::CommandError;
use crate::ctx::{Ctx, Data};
use ladon_record::SpaceId;
use ladon_space::{BoxError, Space, Statement, Written};
use ladon_system_spaces as system;
use std::borrow::Cow;

/// How often a catalog may be out of date.
const TRIES: usize = 8;

/// Why a statement did not run.
#[derive(Debug)]
pub enum SpaceError {
    /// The space refuses it.
    Refused(BoxError),
    /// Others are in the way for a moment.
    Command(CommandError),
}

impl From<BoxError> for SpaceError {
    fn from(error: BoxError) -> SpaceError {
        SpaceError::Refused(error)
    }
}

fn try_again() -> SpaceError {
    SpaceError::Command(CommandError::text(
        "TRYAGAIN the space is kept still, or its definition changes",
    ))
}

impl Ctx<'_> {
    /// Reads a space. The reply depends on its last change.
    ///
    /// # Errors
    /// If there is none of this number, and those of `read`.
    pub fn read_space<T>(
        &mut self,
        id: SpaceId,
        read: impl FnOnce(&Space) -> Result<T, BoxError>,
    ) -> Result<T, BoxError> {
        let (result, lsn) = self.keyspace().spaces.catalog().read(id, read);
        self.depend_on(lsn);
        result
    }

    /// Runs a statement on a space that holds no definitions. A sequence fills in what it has to.
    ///
    /// # Errors
    /// See [`SpaceError`].
    ///
    /// # Panics
    /// Inside of a transaction.
    pub fn write_space(
        &mut self,
        id: SpaceId,
        statement: Statement<'_>,
    ) -> Result<Written, SpaceError> {
        let keyspace = self.keyspace();
        let Data::Free(scratch) = &mut self.data else {
            panic!("a statement on a space inside of a transaction")
        };
        for _ in 0..TRIES {
            let catalog = keyspace.spaces.catalog_to_keep();
            if catalog.get(id).is_some_and(|cell| cell.is_kept_still(self.now_ms)) {
                return Err(try_again());
            }
            let filler = match statement {
                Statement::Insert(tuple) | Statement::Replace(tuple) => {
                    catalog.filler(id).map(|filler| (filler, tuple))
                }
                _ => None,
            };
            let Some((filler, tuple)) = filler else {
                let run = |space: &mut Space| statement.run(space);
                let append = &mut *self.append;
                let (written, lsn) = keyspace.write_alone(&catalog, id, scratch, run, append);
                self.depends = self.depends.max(lsn);
                self.session.last_write = self.session.last_write.max(lsn);
                return Ok(written?);
            };
            let ids = [system::SEQUENCE_DATA, id];
            let Some(mut tx) = keyspace.begin_writing_spaces(&catalog, &ids, scratch)? else {
                continue;
            };
            let written = tx.fill(filler, tuple).and_then(|tuple: Cow<'_, [u8]>| {
                let filled = match statement {
                    Statement::Insert(_) => Statement::Insert(&tuple),
                    _ => Statement::Replace(&tuple),
                };
                tx.write(id, |space| filled.run(space))
            });
            // If it failed, the sequence's number remains, and nothing else.
            let lsn = tx.commit(&mut *self.append);
            self.depends = self.depends.max(lsn);
            self.session.last_write = self.session.last_write.max(lsn);
            return Ok(written?);
        }
        Err(try_again())
    }
}

//! Writes what a statement changes, by its conflict policy, with errors in the words of 2.6.

use super::{
    CHECK_FAILED, Change, Changes, Done, KEY_UPDATED, Stop, TUPLE_FOUND, WRITE_STEPS, Writer,
    is_same_key, unique_key,
};
use crate::ast::OnConflict;
use crate::error::{self, Error, Then};
use ladon_msgpack as msgpack;
use ladon_space::{Statement, Tuple, Written, is_restricted};

impl Changes {
    /// How many rows are to be changed.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether nothing is to be changed.
    pub fn is_empty(&self) -> bool {
        self.rows.as_slice().is_empty()
    }

    /// Whether there is one write at most.
    pub fn write_once(&self) -> bool {
        let is_one = match self.rows.as_slice() {
            [] => true,
            [Change::Update(key, _, new)] => !self.moves(key, new),
            rows => rows.len() == 1,
        };
        is_one && self.on_conflict != OnConflict::Replace
    }

    /// Writes the changes. If it fails, the caller takes back what was written, unless the error
    /// says that it stays.
    ///
    /// # Errors
    /// Those of the writer, in Tarantool 2.6's words.
    pub fn apply(mut self, writer: &mut dyn Writer) -> Result<Done, Stop> {
        Ok(self.apply_some(u64::MAX, writer)?.unwrap_or_default())
    }

    /// Writes some of the changes, for so many steps, and at least one. Returns what all have done
    /// once all are written.
    ///
    /// # Errors
    /// As [`Changes::apply`].
    pub fn apply_some(
        &mut self,
        steps: u64,
        writer: &mut dyn Writer,
    ) -> Result<Option<Done>, Stop> {
        let mut left = (steps / WRITE_STEPS).max(1);
        while let Some(change) = self.rows.next() {
            let mut done = std::mem::take(&mut self.done);
            let applied = self.apply_row(&change, writer, &mut done);
            self.done = done;
            applied?;
            left -= 1;
            if left == 0 && !self.is_empty() {
                if self.lost_row_canary {
                    self.rows.next();
                }
                return Ok(None);
            }
        }
        Ok(Some(std::mem::take(&mut self.done)))
    }

    /// Writes one change. Returns what was written; nothing, if a conflict was ignored.
    pub(crate) fn apply_row(
        &self,
        change: &Change,
        writer: &mut dyn Writer,
        done: &mut Done,
    ) -> Result<Option<Written>, Stop> {
        let error = match self.apply_one(change, writer, done) {
            Ok(written) => return Ok(Some(written)),
            Err(error) => error,
        };
        let is_conflict = [TUPLE_FOUND, CHECK_FAILED, KEY_UPDATED].contains(&error.code);
        let then = match self.on_conflict {
            OnConflict::Ignore if is_conflict => return Ok(None),
            OnConflict::Fail if is_conflict => Then::Keep,
            OnConflict::Rollback if is_conflict => Then::Rollback,
            _ => return Err(self.told(error).into()),
        };
        Err(Stop { error: self.told(error), then })
    }

    fn apply_one(
        &self,
        change: &Change,
        writer: &mut dyn Writer,
        done: &mut Done,
    ) -> Result<Written, Error> {
        let space = self.table.id;
        Ok(match change {
            Change::Insert(tuple, is_numbered) => {
                let written = if self.on_conflict == OnConflict::Replace {
                    done.count += self.make_room(tuple, None, writer)?;
                    done.count += self.delete_watched(tuple, writer)?;
                    writer.write(space, Statement::Replace(tuple))?
                } else {
                    writer.write(space, Statement::Insert(tuple))?
                };
                done.count += 1 + u64::from(written.old.is_some());
                if *is_numbered {
                    done.ids.extend(self.id_of(&written));
                }
                written
            }
            Change::Update(key, _, new) if self.moves(key, new) => {
                let written = self.apply_move((key, new), writer)?;
                done.count += u64::from(written.new.is_some());
                written
            }
            Change::Update(key, operations, new) => {
                if self.on_conflict == OnConflict::Replace {
                    self.make_room(new, Some(key), writer)?;
                }
                let update = Statement::Update { index: 0, key, operations, index_base: 0 };
                let written = writer.write(space, update)?;
                done.count += u64::from(written.new.is_some());
                written
            }
            Change::Delete(key) => {
                let written = writer.write(space, Statement::Delete { index: 0, key })?;
                done.count += u64::from(written.old.is_some());
                written
            }
        })
    }

    /// Whether a row gets another primary key; one that is equal (`-0.0`, a letter by its
    /// collation) is the same.
    fn moves(&self, key: &[u8], new: &[u8]) -> bool {
        let Some(primary) = self.table.indexes.first() else { return false };
        unique_key(primary, new).is_some_and(|own| !is_same_key(primary, &own, key))
    }

    /// Writes a row with another primary key: the row before leaves. 2.6 does that for OR REPLACE
    /// alone.
    fn apply_move(
        &self,
        (key, new): (&[u8], &[u8]),
        writer: &mut dyn Writer,
    ) -> Result<Written, Error> {
        let space = self.table.id;
        let Some(primary) = self.table.indexes.first() else { return Ok(Written::default()) };
        let place = unique_key(primary, new).unwrap_or_default();
        let (index, table) = (&primary.name, &self.table.name);
        if self.on_conflict != OnConflict::Replace {
            let is_there = writer.find(space, 0, &place)?.is_some();
            let (code, what) = match is_there {
                true => (TUPLE_FOUND, "Duplicate key exists in unique index"),
                false => (KEY_UPDATED, "Attempt to modify a tuple field which is part of index"),
            };
            return Err(error::make(code, format!("{what} '{index}' in space '{table}'")));
        }
        if writer.is_named(space) {
            let what = "a new primary key of a row of a table that foreign keys name";
            return Err(error::unsupported(what));
        }
        self.make_room(new, Some(key), writer)?;
        writer.write(space, Statement::Delete { index: 0, key: &place })?;
        let left = writer.write(space, Statement::Delete { index: 0, key })?;
        if left.old.is_none() {
            return Ok(Written::default());
        }
        let written = writer.write(space, Statement::Insert(new))?;
        Ok(Written { new: written.new, ..left })
    }

    /// Deletes rows, other than the one with the key `own`, that have a new row's keys in unique
    /// indexes. Returns their number.
    fn make_room(
        &self,
        tuple: &[u8],
        own: Option<&[u8]>,
        writer: &mut dyn Writer,
    ) -> Result<u64, Error> {
        let mut count = 0;
        let unique = self.table.indexes.iter().filter(|index| index.is_unique && index.id != 0);
        for index in unique {
            let Some(key) = unique_key(index, tuple) else { continue };
            let found = writer.find(self.table.id, index.id, &key)?;
            let is_own = |found: &Tuple| {
                let Some((primary, own)) = self.table.indexes.first().zip(own) else {
                    return false;
                };
                let theirs = unique_key(primary, found.bytes());
                theirs.is_some_and(|theirs| is_same_key(primary, &theirs, own))
            };
            if found.is_none_or(|found| is_own(&found)) {
                continue;
            }
            let delete = Statement::Delete { index: index.id, key: &key };
            count += u64::from(writer.write(self.table.id, delete)?.old.is_some());
        }
        Ok(count)
    }

    /// Deletes the row with a new row's primary key, if foreign keys do something then: a row that
    /// REPLACE takes away has left for them. Returns the number of rows.
    fn delete_watched(&self, tuple: &[u8], writer: &mut dyn Writer) -> Result<u64, Error> {
        let primary = self.table.indexes.first().filter(|_| writer.is_watched(self.table.id));
        let Some(key) = primary.and_then(|primary| unique_key(primary, tuple)) else {
            return Ok(0);
        };
        let delete = Statement::Delete { index: 0, key: &key };
        match writer.write(self.table.id, delete) {
            // Who names it without an action goes on to name the new row.
            Err(error) if is_of_foreign_key(&error) && !is_restricted(&error) => Ok(0),
            written => Ok(u64::from(written?.old.is_some())),
        }
    }

    fn id_of(&self, written: &Written) -> Option<i64> {
        let field = self.table.autoincrement?;
        let bytes = written.new.as_ref()?.field(field)?;
        match msgpack::read(&mut { bytes }).ok()? {
            msgpack::Value::Uint(id) => i64::try_from(id).ok(),
            msgpack::Value::Int(id) => Some(id),
            _ => None,
        }
    }

    /// The words of 2.6 for a key that is there already.
    fn told(&self, error: Error) -> Error {
        if is_of_foreign_key(&error) {
            return error::execute("FOREIGN KEY constraint failed");
        }
        told_of_duplicate(error)
    }
}

/// Whether it is the error of a foreign key: of one that is not there, or is still named.
fn is_of_foreign_key(error: &Error) -> bool {
    const FOREIGN_KEYS: [u32; 3] = [238, 239, 240];
    FOREIGN_KEYS.contains(&error.code.0)
}

/// The words of 2.6 for a key that is there already, and for a table that others name.
pub fn told_of_duplicate(mut error: Error) -> Error {
    const NAMED: &str = "space is referenced by foreign key";
    if error.code == error::DROP_SPACE && error.message.ends_with(NAMED) {
        error.message = error.message.replace(NAMED, "other objects depend on it");
        return error;
    }
    let mut names = error.message.split('"').skip(1).step_by(2);
    match (error.code == TUPLE_FOUND, names.next(), names.next()) {
        (true, Some(index), Some(space)) => {
            let message =
                format!("Duplicate key exists in unique index '{index}' in space '{space}'");
            error::make(TUPLE_FOUND, message)
        }
        _ => error,
    }
}

//! INSERT, REPLACE, UPDATE and DELETE: first what is to be changed, then the changes.

mod apply;
mod bind;
mod compute;

use crate::ast::OnConflict;
use crate::catalog::{Index, IndexPart, Table};
use crate::error::{self, Error, Then};
use crate::operators::order;
use crate::programs::Fired;
use crate::run::Env;
use crate::tree::{Core, Ex, Query};
use crate::value::Value;
pub use apply::told_of_duplicate;
pub(crate) use bind::{bind_delete, bind_insert, bind_update};
use ladon_msgpack::write;
use ladon_space::fields::Fields;
use ladon_space::{ErrorCode, Space, Statement, Tuple, Written};
use std::sync::Arc;

const TUPLE_FOUND: ErrorCode = ErrorCode(3);
/// `ER_CK_CONSTRAINT_FAILED`.
const CHECK_FAILED: ErrorCode = ErrorCode(196);

/// `ER_CANT_UPDATE_PRIMARY_KEY`.
const KEY_UPDATED: ErrorCode = ErrorCode(94);

/// What a write counts for: it takes some microseconds, as this many steps do.
pub(crate) const WRITE_STEPS: u64 = 128;

/// A bound change.
pub(crate) struct Changing {
    pub(crate) table: Arc<Table>,
    pub(crate) on_conflict: OnConflict,
    pub(crate) how: How,
    /// The spaces that it reads, without those of its triggers.
    pub(crate) reads: Vec<u32>,
    /// The triggers that its rows fire.
    pub(crate) triggers: Vec<Fired>,
    /// Those that rows fire which REPLACE takes away.
    pub(crate) replaced: Vec<Fired>,
}

pub(crate) enum How {
    /// For each column: the place in the rows, or its default. `None` of the rows: one of defaults.
    Insert {
        columns: Vec<Result<usize, Ex>>,
        rows: Option<Query>,
    },
    /// The rows, and the fields that are set.
    Update {
        rows: Core,
        set: Vec<(usize, Ex)>,
    },
    Delete {
        rows: Core,
    },
}

/// Who writes rows.
pub trait Writer {
    /// Runs a statement on a space, within the transaction of all that is written here.
    ///
    /// # Errors
    /// Those of the space; nothing has changed then.
    fn write(&mut self, space: u32, statement: Statement<'_>) -> Result<Written, Error>;

    /// A space as the transaction sees it now.
    ///
    /// # Errors
    /// If the user may not read it.
    fn copy(&mut self, space: u32) -> Result<Space, Error>;

    /// The tuple with a key of a unique index, as the transaction sees it now.
    ///
    /// # Errors
    /// If the user may not read it.
    fn find(&mut self, space: u32, index: u32, key: &[u8]) -> Result<Option<Tuple>, Error>;

    /// Whether foreign keys name tuples of a space.
    fn is_named(&mut self, space: u32) -> bool;

    /// Whether foreign keys do something if a tuple of a space is deleted.
    fn is_watched(&mut self, space: u32) -> bool;
}

/// Why a statement has ended before its end, and what is to be done with what it has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stop {
    /// The error.
    pub error: Error,
    /// What it makes of what was done.
    pub then: Then,
}

impl From<Error> for Stop {
    fn from(error: Error) -> Stop {
        let (error, then) = error::then(error);
        Stop { error, then }
    }
}

/// What a statement has changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// The rows.
    pub count: u64,
    /// The numbers that a sequence gave to them.
    pub ids: Vec<i64>,
}

/// What a statement is to change.
#[derive(Debug)]
pub struct Changes {
    table: Arc<Table>,
    on_conflict: OnConflict,
    /// Those that are not written yet.
    rows: std::vec::IntoIter<Change>,
    done: Done,
    /// A bug on purpose: the row at which a slice ends is lost.
    pub lost_row_canary: bool,
}

#[derive(Debug)]
pub(crate) enum Change {
    /// A tuple, and whether a sequence fills in a field.
    Insert(Vec<u8>, bool),
    /// A primary key, operations, and the tuple that comes of them.
    Update(Vec<u8>, Vec<u8>, Vec<u8>),
    Delete(Vec<u8>),
}

/// Takes a tuple and what its query sees.
type Visit<'v> = dyn FnMut(&[u8], &Env<'_>) -> Result<(), Error> + 'v;

/// A tuple's key in a unique index; none if a part is null, and so unlike every other.
pub(crate) fn unique_key(index: &Index, tuple: &[u8]) -> Option<Vec<u8>> {
    let mut key = Vec::new();
    write::array(&mut key, index.parts.len() as u32);
    for part in &index.parts {
        let value = part.field.and_then(|field| ladon_space::fields::field(tuple, field));
        key.extend_from_slice(value.filter(|value| *value != [0xc0])?);
    }
    Some(key)
}

/// Whether two keys of an index are equal as it orders them.
fn is_same_key(index: &Index, a: &[u8], b: &[u8]) -> bool {
    let is_equal = |((a, b), part): ((&[u8], &[u8]), &IndexPart)| {
        a == b || order(&Value::unpack(a), &Value::unpack(b), part.collation).is_eq()
    };
    a == b || Fields::of(a).zip(Fields::of(b)).zip(&index.parts).all(is_equal)
}

//! Replies of SQL: metadata, rows, numbers of changed rows.

use ladon_iproto::{key, reply};
use ladon_msgpack::write;
use ladon_space::BoxError;
use ladon_sql::{OutputColumn, Prepared, Value};

/// The keys of a column's metadata.
mod column_key {
    pub(super) const NAME: u64 = 0;
    pub(super) const TYPE: u64 = 1;
    pub(super) const COLLATION: u64 = 2;
    pub(super) const IS_NULLABLE: u64 = 3;
    pub(super) const IS_AUTOINCREMENT: u64 = 4;
    pub(super) const SPAN: u64 = 5;
}

/// The keys of `SQL_INFO`.
mod info_key {
    pub(super) const ROW_COUNT: u64 = 0;
    pub(super) const AUTOINCREMENT_IDS: u64 = 1;
}

/// The names of collations, for metadata.
pub(super) type CollationName<'c> = &'c dyn Fn(u32) -> Option<String>;

fn too_long(error: reply::ReplyTooLong) -> BoxError {
    crate::error::illegal(&error.to_string())
}

/// The name of a value's type, of a parameter.
fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null | Value::Bool(_) => "boolean",
        Value::Int(_) => "integer",
        Value::Double(_) => "numeric",
        Value::Str(_) => "text",
        Value::Bin(_) => "varbinary",
        other => other.kind().map_or("any", ladon_space::FieldType::name),
    }
}

/// Appends the metadata of columns, with their key. `full` names collations, for a session that
/// asked for all of it.
pub(super) fn metadata(
    out: &mut Vec<u8>,
    columns: &[OutputColumn],
    values: &[Value],
    full: Option<CollationName<'_>>,
) {
    write::uint(out, key::METADATA.into());
    write::array(out, columns.len() as u32);
    for column in columns {
        let kind = column.parameter.and_then(|at| values.get(at)).map_or(column.kind, kind_of);
        let collation = full.and_then(|name| name(column.collation));
        let numbers_itself = full.is_some() && column.column.is_some_and(|(_, is)| is);
        let of_column = column.column.filter(|_| full.is_some());
        let pairs = 2
            + u32::from(collation.is_some())
            + u32::from(of_column.is_some())
            + u32::from(numbers_itself)
            + u32::from(full.is_some());
        write::map(out, pairs);
        write::uint(out, column_key::NAME);
        write::str(out, column.name.as_bytes());
        write::uint(out, column_key::TYPE);
        write::str(out, kind.as_bytes());
        if let Some(collation) = collation {
            write::uint(out, column_key::COLLATION);
            write::str(out, collation.as_bytes());
        }
        if let Some((is_nullable, _)) = of_column {
            write::uint(out, column_key::IS_NULLABLE);
            write::bool(out, is_nullable);
        }
        if numbers_itself {
            write::uint(out, column_key::IS_AUTOINCREMENT);
            write::bool(out, true);
        }
        if full.is_some() {
            write::uint(out, column_key::SPAN);
            match &column.span[..] {
                "" => write::nil(out),
                span => write::str(out, span.as_bytes()),
            }
        }
    }
}

/// A reply whose rows are being appended.
#[must_use = "its length is written by `finish`"]
pub(super) struct Rows {
    reply: reply::Begun,
    /// Behind the number of rows.
    begin: usize,
}

impl Rows {
    /// Begins a reply. The rows have to follow.
    pub(super) fn begin(
        out: &mut Vec<u8>,
        (sync, schema_version): (u64, u64),
        metadata: &[u8],
    ) -> Rows {
        let reply = reply::begin(out, sync, schema_version);
        write::map(out, 2);
        out.extend_from_slice(metadata);
        write::uint(out, key::DATA.into());
        out.extend_from_slice(&[0xdd, 0, 0, 0, 0]);
        Rows { reply, begin: out.len() }
    }

    /// Where the rows begin.
    pub(super) fn begin_of_rows(&self) -> usize {
        self.begin
    }

    /// Completes the reply with so many rows.
    pub(super) fn finish(self, out: &mut Vec<u8>, count: u32) -> Result<(), BoxError> {
        out[self.begin - 4..self.begin].copy_from_slice(&count.to_be_bytes());
        self.reply.finish(out).map_err(too_long)
    }
}

/// A reply with the number of changed rows, and the numbers that a sequence gave to new ones.
pub(super) fn changed(
    out: &mut Vec<u8>,
    (sync, schema_version): (u64, u64),
    count: u64,
    ids: &[i64],
) -> Result<(), BoxError> {
    let begun = reply::begin(out, sync, schema_version);
    write::map(out, 1);
    write::uint(out, key::SQL_INFO.into());
    write::map(out, 1 + u32::from(!ids.is_empty()));
    write::uint(out, info_key::ROW_COUNT);
    write::uint(out, count);
    if !ids.is_empty() {
        write::uint(out, info_key::AUTOINCREMENT_IDS);
        write::array(out, ids.len() as u32);
        for id in ids {
            match u64::try_from(*id) {
                Ok(id) => write::uint(out, id),
                Err(_) => write::int(out, *id),
            }
        }
    }
    begun.finish(out).map_err(too_long)
}

/// A reply to PREPARE.
pub(super) fn prepared(
    out: &mut Vec<u8>,
    (sync, schema_version): (u64, u64),
    id: u64,
    prepared: &Prepared,
) -> Result<(), BoxError> {
    let begun = reply::begin(out, sync, schema_version);
    let columns = prepared.columns();
    write::map(out, 3 + u32::from(!columns.is_empty()));
    write::uint(out, key::STMT_ID.into());
    write::uint(out, id);
    write::uint(out, key::BIND_COUNT.into());
    write::uint(out, prepared.parameters().len() as u64);
    write::uint(out, key::BIND_METADATA.into());
    write::array(out, prepared.parameters().len() as u32);
    for name in prepared.parameters() {
        write::map(out, 2);
        write::uint(out, column_key::NAME);
        write::str(out, name.as_deref().unwrap_or("?").as_bytes());
        write::uint(out, column_key::TYPE);
        write::str(out, b"ANY");
    }
    if !columns.is_empty() {
        metadata(out, columns, &[], None);
    }
    begun.finish(out).map_err(too_long)
}

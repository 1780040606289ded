//! Tuples of mounted spaces as hashes: the tuple that a key names, its fields by the names of the
//! space's format, and tuples with other fields.

mod change;

pub(crate) use change::{FieldChange, Fields, put, rebuilt};

use ladon_engine::Key;
use ladon_kernel::command::error::{CommandError, shown};
use ladon_kernel::ctx::{Ctx, Data};
use ladon_kernel::request::mounted;
use ladon_record::SpaceId;
use ladon_space::{BoxError, Space, Tuple, as_text, fields};
use std::borrow::Cow;

/// A key that names a tuple, which may not exist.
pub(crate) struct TupleKey {
    /// Its space, which is locked.
    pub(crate) space: SpaceId,
    /// The primary key, a MessagePack array.
    pub(crate) key: Vec<u8>,
}

/// The error of a statement.
pub(crate) fn refused(error: &BoxError) -> CommandError {
    CommandError::err(shown_message(&error.message))
}

/// A message may show tuples of another client's bytes.
pub(crate) fn shown_message(message: &str) -> String {
    message.replace(['\r', '\n'], " ")
}

/// The tuple that a key names; `None` if the key is no tuple's.
///
/// # Errors
/// If the key is under a mount and cannot name a tuple, or an ordinary key is there.
pub(crate) fn locate(ctx: &mut Ctx<'_>, name: &[u8]) -> Result<Option<TupleKey>, CommandError> {
    let catalog = mounted::catalog(ctx);
    let Some(mount) = catalog.mount_of(name) else { return Ok(None) };
    let (db, key) = (ctx.db(), Key { bytes: name, hash: ctx.keyspace().hash(name) });
    let tx = ctx.tx();
    let (shown_key, prefix) = (|| shown(name), || shown(&mount.prefix));
    if tx.exists(db, key) {
        return Err(CommandError::err(format_args!(
            "'{}' is an ordinary key from before space '{}' was mounted under '{}': DEL it, or \
             RENAME it",
            shown_key(),
            mount.name,
            prefix()
        )));
    }
    let space = tx.mounted(mount.space);
    let Some(primary) = space.index(0) else {
        return Err(CommandError::err(format_args!(
            "space '{}', mounted under '{}', has no primary index yet",
            mount.name,
            prefix()
        )));
    };
    let text = &name[mount.prefix.len()..];
    let key = as_text::encode_key(&primary.def().parts, text).map_err(|why| {
        CommandError::err(format_args!(
            "'{}' is no key of space '{}': {why}",
            shown_key(),
            mount.name
        ))
    })?;
    Ok(Some(TupleKey { space: mount.space, key }))
}

/// As [`locate`], of a command whose only key is a tuple's.
pub(crate) fn require(ctx: &mut Ctx<'_>, name: &[u8]) -> Result<TupleKey, CommandError> {
    let found = locate(ctx, name)?;
    found.ok_or(CommandError::text("ERR the key is no key of a mounted space"))
}

/// The tuple that a key names, without a trace that somebody looked.
pub(crate) fn inspect(ctx: &mut Ctx<'_>, name: &[u8]) -> Result<Option<Tuple>, CommandError> {
    let at = require(ctx, name)?;
    ctx.tx().mounted(at.space).get(0, &at.key).map_err(|error| refused(&error))
}

/// The tuple that a key names, to be read.
pub(crate) fn find(
    ctx: &mut Ctx<'_>,
    name: &[u8],
) -> Result<(TupleKey, Option<Tuple>), CommandError> {
    let at = require(ctx, name)?;
    let tx = ctx.tx();
    let found = tx.mounted(at.space).get(0, &at.key).map_err(|error| refused(&error))?;
    tx.count_lookup(found.is_some());
    Ok((at, found))
}

/// Whether an ordinary key is where a tuple's would be.
pub(crate) fn is_ordinary(ctx: &mut Ctx<'_>, name: &[u8]) -> bool {
    let (db, key) = (ctx.db(), ctx.key(name));
    match &mut ctx.data {
        Data::Held(tx) => tx.exists(db, key),
        _ => false,
    }
}

/// The name of a field: the format's, or its number from 1 on.
pub(crate) fn name_of(space: &Space, number: usize) -> Cow<'_, [u8]> {
    match space.def().format.fields.get(number) {
        Some(field) => Cow::Borrowed(field.name.as_bytes()),
        None => Cow::Owned((number + 1).to_string().into_bytes()),
    }
}

/// The number of the field with this name, from 0. Those behind the format are named by their
/// number from 1 on.
pub(crate) fn number_of(space: &Space, name: &[u8]) -> Option<u32> {
    let format = &space.def().format;
    format.number_of(name).or_else(|| {
        let is_digits = name.first().is_some_and(|first| matches!(first, b'1'..=b'9'));
        let number: u32 = std::str::from_utf8(name).ok().filter(|_| is_digits)?.parse().ok()?;
        (number as usize > format.fields.len()).then(|| number - 1)
    })
}

/// Visits name and text of each field of a tuple that is not nil, in order.
pub(crate) fn for_each_field(space: &Space, tuple: &Tuple, mut visit: impl FnMut(&[u8], &[u8])) {
    let mut text = Vec::new();
    for (number, value) in fields::Fields::of(tuple.bytes()).enumerate() {
        text.clear();
        if as_text::write_value(value, &mut text) {
            visit(&name_of(space, number), &text);
        }
    }
}

/// How many fields of a tuple are not nil.
pub(crate) fn field_count(tuple: &Tuple) -> usize {
    const NIL: u8 = 0xc0;
    fields::Fields::of(tuple.bytes()).filter(|value| value.first() != Some(&NIL)).count()
}

/// The text of the field with this name, unless it is nil or there is none.
pub(crate) fn field_text(space: &Space, tuple: &Tuple, name: &[u8]) -> Option<Vec<u8>> {
    let value = fields::field(tuple.bytes(), number_of(space, name)?)?;
    let mut text = Vec::new();
    as_text::write_value(value, &mut text).then_some(text)
}

//! `LADON.SPACE`: spaces for clients of RESP, and of HTTP, with tuples as JSON.
//!
//! ```text
//! LADON.SPACE LIST                                   the spaces with formats and indexes
//! LADON.SPACE GET space part ...                     the tuple with this primary key
//! LADON.SPACE SELECT space [INDEX i] [KEY part ...] [ITERATOR it] [AFTER position] [LIMIT n] ...
//! LADON.SPACE INSERT space tuple
//! LADON.SPACE REPLACE space tuple [part ...]         of the path's key, if there is one
//! LADON.SPACE UPDATE space fields part ...           sets fields
//! LADON.SPACE DELETE space part ...
//! ```
//!
//! As with mounted spaces, the user `admin` of IPROTO acts on them; who may do so is a matter of the
//! users of RESP. System spaces are not shown: they have the definitions and passwords of IPROTO.

mod json;
mod list;
mod select;

use crate::shared::help::HELP;
use crate::shared::tuple;
use ladon_kernel::command::error::{CommandError, CommandResult, shown};
use ladon_kernel::command::spec::{Code, LockNeed};
use ladon_kernel::ctx::Ctx;
use ladon_kernel::request::space_statement::SpaceError;
use ladon_msgpack::write;
use ladon_record::SpaceId;
use ladon_space::as_text::{TextError, encode_value};
use ladon_space::{BoxError, ErrorCode, Index, Part, Space, Statement, Tuple};
use serde_json::Value;

/// Bytes of a document.
const DOCUMENT_BYTES_MAX: usize = 1 << 20;

/// The first number of a space that is no system space.
const FIRST_OWN: SpaceId = 512;

pub(crate) const COMMANDS: &[Code] = &[Code::container(
    "ladon.space",
    &[
        Code::with_locks("list", LockNeed::Own, list::list),
        Code::with_locks("get", LockNeed::Own, get),
        Code::with_locks("select", LockNeed::Own, select::select),
        Code::with_locks("insert", LockNeed::Own, insert),
        Code::with_locks("replace", LockNeed::Own, replace),
        Code::with_locks("update", LockNeed::Own, update),
        Code::with_locks("delete", LockNeed::Own, delete),
        HELP,
    ],
)];

/// The number of a space that is shown.
fn space_id(ctx: &Ctx<'_>, name: &[u8]) -> Result<SpaceId, CommandError> {
    let named = std::str::from_utf8(name).ok();
    let id = named.and_then(|name| ctx.keyspace().spaces.catalog().named(name));
    id.filter(|&id| id >= FIRST_OWN)
        .ok_or_else(|| not_found(format_args!("Space '{}' does not exist", shown(name))))
}

fn refused(error: SpaceError) -> CommandError {
    match error {
        SpaceError::Refused(error) => refusal(&error),
        SpaceError::Command(error) => error,
    }
}

/// What a space refuses. Its first word says to programs what was wrong: `NOTFOUND`, `DUPLICATE`, or
/// `ERR`.
fn refusal(error: &BoxError) -> CommandError {
    let code = match error.code {
        ErrorCode::TUPLE_FOUND => "DUPLICATE",
        ErrorCode::NO_SUCH_SPACE
        | ErrorCode::NO_SUCH_INDEX_ID
        | ErrorCode::NO_SUCH_INDEX_NAME
        | ErrorCode::KEY_PART_TYPE
        | ErrorCode::ITERATOR_POSITION => "NOTFOUND",
        _ => return tuple::refused(error),
    };
    CommandError::Other(format!("{code} {}", tuple::shown_message(&error.message)).into())
}

/// There is no such space, index or position.
fn not_found(what: impl std::fmt::Display) -> CommandError {
    CommandError::Other(format!("NOTFOUND {what}").into())
}

/// A refusal in words, to pass where only the errors of spaces do.
fn illegal(why: String) -> BoxError {
    BoxError::illegal(&why)
}

fn document(text: &[u8]) -> Result<Value, CommandError> {
    if text.len() > DOCUMENT_BYTES_MAX {
        return Err(CommandError::err(format_args!(
            "the JSON has over {DOCUMENT_BYTES_MAX} bytes"
        )));
    }
    serde_json::from_slice(text)
        .map_err(|error| CommandError::err(format_args!("the JSON is not valid: {error}")))
}

/// The number of the field with this name, from 0.
fn number_of(space: &Space, name: &str) -> Result<u32, String> {
    tuple::number_of(space, name.as_bytes())
        .ok_or_else(|| format!("space '{}' has no field {name:?}", space.def().name))
}

fn primary(space: &Space) -> Result<&Index, BoxError> {
    space.require_index(0)
}

/// The values of some parts of a key, by their types.
fn part_values(parts: &[Part], texts: &[&[u8]]) -> Result<Vec<Vec<u8>>, BoxError> {
    if texts.len() > parts.len() {
        let (given, most) = (texts.len(), parts.len());
        return Err(illegal(format!("the key has {given} parts, and the index {most}")));
    }
    let values = parts.iter().zip(texts).map(|(part, text)| {
        let mut value = Vec::new();
        // A key that cannot be names nothing.
        let no_key = |error: TextError| BoxError::new(ErrorCode::KEY_PART_TYPE, error.to_string());
        encode_value(part.kind, text, &mut value).map_err(no_key)?;
        Ok(value)
    });
    values.collect()
}

/// A key as MessagePack.
fn key_of(parts: &[Part], texts: &[&[u8]]) -> Result<Vec<u8>, BoxError> {
    let values = part_values(parts, texts)?;
    let mut key = Vec::new();
    write::array(&mut key, u32::try_from(values.len()).unwrap_or(u32::MAX));
    key.extend(values.into_iter().flatten());
    Ok(key)
}

/// The primary key that the arguments say, whole.
fn primary_key(space: &Space, texts: &[&[u8]]) -> Result<Vec<u8>, BoxError> {
    let parts = &primary(space)?.def().parts;
    if texts.len() != parts.len() {
        return Err(illegal(format!(
            "the primary key of space '{}' has {} parts, and {} were given",
            space.def().name,
            parts.len(),
            texts.len()
        )));
    }
    key_of(parts, texts)
}

/// Answers a tuple as JSON, or null.
fn answer(ctx: &mut Ctx<'_>, shown: Option<Value>) {
    match shown {
        Some(document) => ctx.reply.bulk(document.to_string()),
        None => ctx.reply.null(),
    }
}

fn get(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let id = space_id(ctx, args[2])?;
    let found = ctx.read_space(id, |space| {
        let tuple = space.get(0, &primary_key(space, &args[3..])?)?;
        Ok(tuple.map(|tuple| json::of_tuple(space, tuple.bytes())))
    });
    let found = found.map_err(|error| refusal(&error))?;
    answer(ctx, found);
    Ok(())
}

/// Runs a statement, and answers the tuple that it shows.
fn run(ctx: &mut Ctx<'_>, id: SpaceId, statement: Statement<'_>) -> CommandResult {
    not_in_exec(ctx)?;
    let written = ctx.write_space(id, statement).map_err(refused)?;
    let tuple: Option<&Tuple> = statement.shown(&written);
    let shown = match tuple {
        None => None,
        Some(tuple) => {
            // The space may be gone by now; its tuple is known.
            let shown = ctx.read_space(id, |space| Ok(json::of_tuple(space, tuple.bytes())));
            Some(shown.map_err(|error| refusal(&error))?)
        }
    };
    answer(ctx, shown);
    Ok(())
}

fn not_in_exec(ctx: &Ctx<'_>) -> CommandResult {
    if ctx.in_exec {
        return Err(CommandError::text("ERR not inside a transaction"));
    }
    Ok(())
}

fn insert(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let (id, document) = (space_id(ctx, args[2])?, document(args[3])?);
    let tuple = tuple_of(ctx, id, &document, &[])?;
    run(ctx, id, Statement::Insert(&tuple))
}

fn replace(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let (id, document) = (space_id(ctx, args[2])?, document(args[3])?);
    let tuple = tuple_of(ctx, id, &document, &args[4..])?;
    run(ctx, id, Statement::Replace(&tuple))
}

/// The tuple that a document is. Parts of a primary key that are given are its own, if it leaves them
/// out, and else the same.
fn tuple_of(
    ctx: &mut Ctx<'_>,
    id: SpaceId,
    document: &Value,
    texts: &[&[u8]],
) -> Result<Vec<u8>, CommandError> {
    let made = ctx.read_space(id, |space| {
        if texts.is_empty() {
            return json::to_tuple(space, document, &[]).map_err(illegal);
        }
        let key = primary_key(space, texts)?;
        let parts = &primary(space)?.def().parts;
        let values = part_values(parts, texts)?;
        let plain = parts.iter().zip(values).filter(|(part, _)| part.path.is_empty());
        let known: Vec<(u32, Vec<u8>)> = plain.map(|(part, value)| (part.field, value)).collect();
        let tuple = json::to_tuple(space, document, &known).map_err(illegal)?;
        if space.primary_key_of(&tuple)? != key {
            return Err(illegal("the tuple has another primary key than the one given".to_owned()));
        }
        Ok(tuple)
    });
    made.map_err(|error| refusal(&error))
}

fn update(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let (id, document) = (space_id(ctx, args[2])?, document(args[3])?);
    let Some(fields) = document.as_object().filter(|fields| !fields.is_empty()) else {
        return Err(CommandError::text("ERR changes are an object of some fields"));
    };
    let made = ctx.read_space(id, |space| {
        let key = primary_key(space, &args[4..])?;
        let mut operations = Vec::new();
        write::array(&mut operations, u32::try_from(fields.len()).unwrap_or(u32::MAX));
        for (name, value) in fields {
            let number = number_of(space, name).map_err(illegal)?;
            let value = json::encoded(space, number as usize, value).map_err(illegal)?;
            write::array(&mut operations, 3);
            write::str(&mut operations, b"=");
            write::uint(&mut operations, number.into());
            operations.extend(value);
        }
        Ok((key, operations))
    });
    let (key, operations) = made.map_err(|error| refusal(&error))?;
    run(ctx, id, Statement::Update { index: 0, key: &key, operations: &operations, index_base: 0 })
}

fn delete(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let id = space_id(ctx, args[2])?;
    let key = ctx.read_space(id, |space| primary_key(space, &args[3..]));
    let key = key.map_err(|error| refusal(&error))?;
    run(ctx, id, Statement::Delete { index: 0, key: &key })
}

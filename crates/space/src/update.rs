//! Update operations: `= + - & | ^ : ! #`, one after the other, on a tuple's fields and on what is
//! inside of them.
//!
//! Source: Tarantool's documentation, `space_object:update()` and "JSON paths".

mod arithmetic;
mod array;
mod bar;
mod lexer;
mod map;
mod node;
mod operation;
mod walk;

pub(crate) use operation::{Operation, parse};

use crate::error::BoxError;
use crate::format::{Format, Rules};
use array::Array;
use ladon_msgpack as msgpack;
use walk::Walk;

/// The tuple that operations make of one that is of no space; fields have no names.
///
/// # Errors
/// Tarantool's.
pub fn update_tuple(
    tuple: &[u8],
    operations: &[u8],
    index_base: u32,
    ignore_errors: bool,
) -> Result<Vec<u8>, BoxError> {
    let operations = parse(operations, index_base, &Format::default())?;
    apply(tuple, &operations, &Rules::default(), ignore_errors)
}

/// The tuple that the operations make of this one.
///
/// # Errors
/// The first operation's that cannot be done. With `ignore_errors`, as upsert has it, such
/// operations are left out.
pub(crate) fn apply(
    tuple: &[u8],
    operations: &[Operation<'_>],
    rules: &Rules,
    ignore_errors: bool,
) -> Result<Vec<u8>, BoxError> {
    let mut fields = Array::of(tuple, true);
    let mut walk = Walk::new();
    for operation in operations {
        let (field, path) = (i64::from(operation.place.field), operation.place.path);
        let done = match operation.is_too_deep() {
            true => Err(operation.no_field()),
            false => fields.act_at(operation, field, path, &mut walk),
        };
        walk.check()?;
        match done {
            Err(error) if !ignore_errors => return Err(error),
            _ => {}
        }
    }
    let mut out = Vec::with_capacity(tuple.len() + 32);
    fields.write(&mut out, |at| rules.of_field(at));
    if operations.iter().any(|operation| !operation.place.path.is_at_end()) {
        // Values inside of others may have become too deep.
        msgpack::validate(&out)?;
    }
    Ok(out)
}

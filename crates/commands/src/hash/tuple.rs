//! The commands of hashes on tuples of mounted spaces.

use crate::shared::scan::{Also, ScanOptions, reply_empty, reply_page};
use crate::shared::tuple::{
    FieldChange, Fields, field_count, field_text, find, for_each_field, put, rebuilt, refused,
    require,
};
use ladon_kernel::command::args::{cursor, integer};
use ladon_kernel::command::error::{CommandError, CommandResult, shown};
use ladon_kernel::ctx::Ctx;
use ladon_space::as_text::{self, SumError};
use ladon_space::{FieldType, Tuple, fields};

pub(super) fn hget(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    match text_of(ctx, args)? {
        Some(text) => ctx.reply.bulk(text),
        None => ctx.reply.null(),
    }
    Ok(())
}

pub(super) fn hexists(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let exists = text_of(ctx, args)?.is_some();
    ctx.reply.integer(i64::from(exists));
    Ok(())
}

pub(super) fn hstrlen(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let bytes = text_of(ctx, args)?.map_or(0, |text| text.len());
    ctx.reply.integer(bytes as i64);
    Ok(())
}

/// The text of the field that the third word names.
fn text_of(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> Result<Option<Vec<u8>>, CommandError> {
    let (at, tuple) = find(ctx, args[1])?;
    let Some(tuple) = tuple else { return Ok(None) };
    Ok(field_text(ctx.tx().mounted(at.space), &tuple, args[2]))
}

pub(super) fn hmget(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let (at, tuple) = find(ctx, args[1])?;
    let (tx, reply) = ctx.tx_and_reply();
    let space = tx.mounted(at.space);
    reply.array(args.len() - 2);
    for name in &args[2..] {
        match tuple.as_ref().and_then(|tuple| field_text(space, tuple, name)) {
            Some(text) => reply.bulk(text),
            None => reply.null(),
        }
    }
    Ok(())
}

pub(super) fn hlen(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let (_, tuple) = find(ctx, args[1])?;
    ctx.reply.integer(tuple.as_ref().map_or(0, field_count) as i64);
    Ok(())
}

pub(super) fn hgetall(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    all(ctx, args, (true, true))
}

pub(super) fn hkeys(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    all(ctx, args, (true, false))
}

pub(super) fn hvals(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    all(ctx, args, (false, true))
}

/// Names, values, or both. A tuple is a mebibyte at most, so the reply is made at once.
fn all(ctx: &mut Ctx<'_>, args: &[&[u8]], (names, values): (bool, bool)) -> CommandResult {
    let (at, tuple) = find(ctx, args[1])?;
    let (tx, reply) = ctx.tx_and_reply();
    let count = tuple.as_ref().map_or(0, field_count);
    if names && values {
        reply.map(count);
    } else {
        reply.array(count);
    }
    let Some(tuple) = tuple else { return Ok(()) };
    for_each_field(tx.mounted(at.space), &tuple, |name, text| {
        if names {
            reply.bulk(name);
        }
        if values {
            reply.bulk(text);
        }
    });
    Ok(())
}

/// All fields in one page, as Redis does with small hashes.
pub(super) fn hscan(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    cursor(args[2])?;
    let (at, tuple) = find(ctx, args[1])?;
    let Some(tuple) = tuple else {
        reply_empty(&mut ctx.reply);
        return Ok(());
    };
    let options = ScanOptions::parse(&args[3..], Also::NoValues)?;
    let (tx, reply) = ctx.tx_and_reply();
    let space = tx.mounted(at.space);
    reply_page(reply, |page| {
        let mut words = 0;
        for_each_field(space, &tuple, |name, text| {
            if options.matches(name) {
                page.bulk(name);
                words += 1;
                if !options.no_values {
                    page.bulk(text);
                    words += 1;
                }
            }
        });
        (0, words)
    });
    Ok(())
}

pub(super) fn hset(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let added = set_all(ctx, args, "hset")?;
    ctx.reply.integer(added);
    Ok(())
}

pub(super) fn hmset(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    set_all(ctx, args, "hmset")?;
    ctx.reply.ok();
    Ok(())
}

fn set_all(ctx: &mut Ctx<'_>, args: &[&[u8]], command: &str) -> Result<i64, CommandError> {
    let (pairs, rest) = args[2..].as_chunks::<2>();
    if !rest.is_empty() {
        return Err(CommandError::wrong_number(command));
    }
    let at = require(ctx, args[1])?;
    let space = ctx.tx().mounted(at.space);
    let old = space.get(0, &at.key).map_err(|error| refused(&error))?;
    let fields = Fields::of(space, pairs.len());
    let changes: Result<Vec<FieldChange>, CommandError> =
        pairs.iter().map(|[name, text]| fields.change(name, text)).collect();
    let (tuple, added) = rebuilt(&fields, &at, old.as_ref(), changes?)?;
    put(ctx, &at, old.as_ref(), &tuple)?;
    Ok(added as i64)
}

pub(super) fn hsetnx(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let at = require(ctx, args[1])?;
    let space = ctx.tx().mounted(at.space);
    let old = space.get(0, &at.key).map_err(|error| refused(&error))?;
    let fields = Fields::of(space, 1);
    let change = fields.change(args[2], args[3])?;
    if old.as_ref().is_some_and(|old| value_at(old, change.number).is_some()) {
        ctx.reply.integer(0);
        return Ok(());
    }
    let (tuple, _) = rebuilt(&fields, &at, old.as_ref(), vec![change])?;
    put(ctx, &at, old.as_ref(), &tuple)?;
    ctx.reply.integer(1);
    Ok(())
}

/// A field's value, unless it is nil or absent.
fn value_at(tuple: &Tuple, number: u32) -> Option<&[u8]> {
    const NIL: &[u8] = &[0xc0];
    fields::field(tuple.bytes(), number).filter(|value| *value != NIL)
}

/// Sets fields to nil. The tuple stays, whatever is left of it.
pub(super) fn hdel(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let at = require(ctx, args[1])?;
    let space = ctx.tx().mounted(at.space);
    let old = space.get(0, &at.key).map_err(|error| refused(&error))?;
    let Some(old) = old else {
        ctx.reply.integer(0);
        return Ok(());
    };
    let fields = Fields::of(space, args.len() - 2);
    let mut changes: Vec<FieldChange> = Vec::new();
    let mut is_named = vec![false; space.def().format.fields.len()];
    for name in &args[2..] {
        let Ok((number, field)) = fields.find(name) else { continue };
        if fields.is_of_key(number) {
            return Err(fields.is_fixed(name));
        }
        if !field.is_nullable {
            return Err(CommandError::err(format_args!(
                "field '{}' of space '{}' must have a value",
                shown(name),
                space.def().name
            )));
        }
        let is_again = std::mem::replace(&mut is_named[number as usize], true);
        if !is_again && value_at(&old, number).is_some() {
            changes.push(FieldChange { number, value: vec![0xc0] });
        }
    }
    let removed = changes.len();
    if removed > 0 {
        let (tuple, _) = rebuilt(&fields, &at, Some(&old), changes)?;
        put(ctx, &at, Some(&old), &tuple)?;
    }
    ctx.reply.integer(removed as i64);
    Ok(())
}

pub(super) fn hincrby(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let by = integer(args[3])?;
    let mut sum = 0;
    add(ctx, args, "HINCRBY adds to unsigned, integer and number", |kind, value, out| {
        sum = as_text::add_integer(kind, value, by, out)?;
        Ok(())
    })?;
    ctx.reply.integer(sum);
    Ok(())
}

pub(super) fn hincrbyfloat(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let mut text = Vec::new();
    add(ctx, args, "HINCRBYFLOAT adds to double, decimal and number", |kind, value, out| {
        as_text::add_float(kind, value, args[3], out)?;
        as_text::write_value(out, &mut text);
        Ok(())
    })?;
    ctx.reply.bulk(text);
    Ok(())
}

/// Adds to a field. `rule` says to which types.
fn add(
    ctx: &mut Ctx<'_>,
    args: &[&[u8]],
    rule: &str,
    sum: impl FnOnce(FieldType, Option<&[u8]>, &mut Vec<u8>) -> Result<(), SumError>,
) -> CommandResult {
    let at = require(ctx, args[1])?;
    let space = ctx.tx().mounted(at.space);
    let old = space.get(0, &at.key).map_err(|error| refused(&error))?;
    let fields = Fields::of(space, 1);
    let (number, field) = fields.find(args[2])?;
    if fields.is_of_key(number) {
        return Err(fields.is_fixed(args[2]));
    }
    let mut value = Vec::new();
    let before = old.as_ref().and_then(|old| value_at(old, number));
    sum(field.kind, before, &mut value).map_err(|why| {
        let (name, space) = (shown(args[2]), &space.def().name);
        match why {
            SumError::Type(kind) => CommandError::err(format_args!(
                "field '{name}' of space '{space}' is of type {kind}; {rule}"
            )),
            SumError::NotInteger => CommandError::text("ERR hash value is not an integer"),
            SumError::Overflow => CommandError::text("ERR increment or decrement would overflow"),
            SumError::Text(_) => CommandError::NotFloat,
        }
    })?;
    let (tuple, _) = rebuilt(&fields, &at, old.as_ref(), vec![FieldChange { number, value }])?;
    put(ctx, &at, old.as_ref(), &tuple)
}

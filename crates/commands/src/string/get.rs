//! Reading one string: GET, GETDEL, GETEX, STRLEN, GETRANGE (SUBSTR).

use super::expiry::Expiry;
use super::length;
use crate::shared::long_string::{answer, answer_part, reply_rest};
use ladon_engine::types::string;
use ladon_engine::{EntryRef, EventClass, Object, ValueRef};
use ladon_kernel::command::args::{integer, is};
use ladon_kernel::command::error::{CommandError, CommandResult};
use ladon_kernel::ctx::Ctx;

pub(super) fn get(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let (db, key) = (ctx.db(), ctx.first_key(args));
    let (tx, reply, later) = ctx.tx_reply_and_later();
    let rest = answer(reply, tx.read(db, key).map(EntryRef::value), &later)?;
    reply_rest(ctx, rest);
    Ok(())
}

pub(super) fn getdel(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    get(ctx, args)?;
    let (db, key) = (ctx.db(), ctx.first_key(args));
    let tx = ctx.tx();
    if tx.delete(db, key) {
        tx.notify(EventClass::GENERIC, "del", db, key);
    }
    Ok(())
}

/// What `GETEX` does to the expiry.
#[derive(Clone, Copy)]
enum Change<'a> {
    Keep,
    Persist,
    Set(Expiry<'a>),
}

pub(super) fn getex(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let change = parse_getex(&args[2..])?;
    let (db, key, now_ms) = (ctx.db(), ctx.first_key(args), ctx.now_ms);
    let (tx, reply, later) = ctx.tx_reply_and_later();
    let Some(entry) = tx.read(db, key) else {
        reply.null();
        return Ok(());
    };
    // As in Redis, the type is checked before the time; an error discards the reply.
    let rest = answer(reply, Some(entry.value()), &later)?;
    match change {
        Change::Keep => {}
        Change::Persist => {
            if tx.set_expire_if(db, key, 0, |old| old != 0) {
                tx.notify(EventClass::GENERIC, "persist", db, key);
            }
        }
        Change::Set(expiry) => {
            let expire_at = expiry.at(now_ms, "getex")?;
            tx.set_expire(db, key, expire_at);
            let event = if expire_at <= now_ms { "del" } else { "expire" };
            tx.notify(EventClass::GENERIC, event, db, key);
        }
    }
    reply_rest(ctx, rest);
    Ok(())
}

fn parse_getex<'a>(mut options: &[&'a [u8]]) -> Result<Change<'a>, CommandError> {
    let mut change = Change::Keep;
    while let [word, rest @ ..] = options {
        options = rest;
        let present = match change {
            Change::Set(expiry) => Some(expiry),
            _ => None,
        };
        if is(word, "persist") && present.is_none() {
            change = Change::Persist;
        } else if !matches!(change, Change::Persist)
            && let Some(expiry) = Expiry::parse(word, rest.first().copied(), present)
        {
            change = Change::Set(expiry);
            options = &rest[1..];
        } else {
            return Err(CommandError::Syntax);
        }
    }
    Ok(change)
}

pub(super) fn strlen(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let (db, key) = (ctx.db(), ctx.first_key(args));
    let length = ctx.tx().read(db, key).map_or(Ok(0), |entry| length(entry.value()))?;
    ctx.reply.integer(length as i64);
    Ok(())
}

pub(super) fn getrange(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let (start, end) = (integer(args[2])?, integer(args[3])?);
    let (db, key) = (ctx.db(), ctx.first_key(args));
    let (tx, reply, later) = ctx.tx_reply_and_later();
    let Some(entry) = tx.read(db, key) else {
        reply.bulk(b"");
        return Ok(());
    };
    if let ValueRef::Object(Object::String(string)) = entry.value() {
        let range = range(start, end, string.len());
        let rest = answer_part(reply, string, range, &later);
        reply_rest(ctx, rest);
        return Ok(());
    }
    let bytes = string::bytes(entry.value()).ok_or(CommandError::WrongType)?;
    reply.bulk(&bytes[range(start, end, bytes.len())]);
    Ok(())
}

/// The bytes from `start` to `end`, both included, negative ones counted from the end.
fn range(start: i64, end: i64, length: usize) -> std::ops::Range<usize> {
    if start < 0 && end < 0 && start > end {
        return 0..0;
    }
    let length = length as i64;
    // A position before the beginning is moved to it, the end too: "abc" from 0 to -9 is "a".
    let from_end = |at: i64| if at < 0 { (length + at).max(0) } else { at };
    let (start, end) = (from_end(start), from_end(end).min(length - 1));
    if start > end { 0..0 } else { start as usize..end as usize + 1 }
}

#[cfg(test)]
mod tests {
    use super::range;

    #[test]
    fn ranges_are_those_of_redis() {
        for (start, end, expected) in [
            (0, 2, "abc"),
            (0, -1, "abcde"),
            (-2, -1, "de"),
            (-1, -2, ""),
            (0, -9, "a"),
            (-9, -9, "a"),
            (-9, 1, "ab"),
            (4, 99, "e"),
            (5, 99, ""),
            (3, 1, ""),
            (i64::MIN, i64::MAX, "abcde"),
            (i64::MAX, i64::MIN, ""),
        ] {
            assert_eq!(&"abcde"[range(start, end, 5)], expected, "{start} {end}");
        }
        assert_eq!(range(0, -1, 0), 0..0);
    }
}

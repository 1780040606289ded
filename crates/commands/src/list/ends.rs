//! Pushing and popping at the ends: LPUSH, RPUSH, LPUSHX, RPUSHX, LPOP, RPOP, LMPOP.

use super::shared::{end, popped, pushed, reply_element};
use ladon_engine::types::list::{End, ListValue};
use ladon_engine::{EventClass, Key, Tx};
use ladon_kernel::command::args::{self, is};
use ladon_kernel::command::error::{CommandError, CommandResult, shown};
use ladon_kernel::ctx::Ctx;
use ladon_record::DbId;
use ladon_resp::Reply;

pub(super) fn lpush(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    push(ctx, args, End::Front)
}

pub(super) fn rpush(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    push(ctx, args, End::Back)
}

#[inline]
fn push(ctx: &mut Ctx<'_>, args: &[&[u8]], end: End) -> CommandResult {
    let (db, key) = (ctx.db(), ctx.first_key(args));
    let length = ctx.tx().list_push(db, key, end, args[2..].iter().copied())?;
    ctx.tx().notify(EventClass::LIST, pushed(end), db, key);
    ctx.reply.integer(length as i64);
    Ok(())
}

pub(super) fn lpushx(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    push_existing(ctx, args, End::Front)
}

pub(super) fn rpushx(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    push_existing(ctx, args, End::Back)
}

fn push_existing(ctx: &mut Ctx<'_>, args: &[&[u8]], end: End) -> CommandResult {
    let (db, key) = (ctx.db(), ctx.first_key(args));
    let length = ctx.tx().list_push_existing(db, key, end, args[2..].iter().copied())?;
    if length.is_some() {
        ctx.tx().notify(EventClass::LIST, pushed(end), db, key);
    }
    ctx.reply.integer(length.unwrap_or(0) as i64);
    Ok(())
}

pub(super) fn lpop(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    pop(ctx, args, End::Front)
}

pub(super) fn rpop(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    pop(ctx, args, End::Back)
}

#[inline]
fn pop(ctx: &mut Ctx<'_>, args: &[&[u8]], end: End) -> CommandResult {
    let count = match args {
        [_, _] => None,
        [_, _, count] => Some(args::positive(count)? as usize),
        [name, ..] => {
            return Err(CommandError::err(format_args!(
                "wrong number of arguments for '{}' command",
                shown(name).to_lowercase()
            )));
        }
        [] => return Err(CommandError::Syntax),
    };
    let (db, key) = (ctx.db(), ctx.first_key(args));
    let (tx, reply) = ctx.tx_and_reply();
    match count {
        None => {
            let visit = |(): &mut (), element: ladon_engine::types::list::Element<'_>| {
                reply_element(reply, element);
            };
            if tx.list_pop(db, key, end, 1, |_| (), visit)? {
                tx.notify_removal(EventClass::LIST, popped(end), db, key);
            } else {
                ctx.reply.null();
            }
        }
        Some(count) => {
            if !pop_many(tx, reply, db, key, end, count)? {
                reply.null_array();
            }
        }
    }
    Ok(())
}

/// Pops up to `count` elements and replies with an array of them; does nothing if there is no list.
pub(super) fn pop_many(
    tx: &mut Tx<'_>,
    reply: &mut Reply<'_>,
    db: DbId,
    key: Key<'_>,
    end: End,
    count: usize,
) -> Result<bool, CommandError> {
    let begin = |count| {
        reply.array(count);
        reply
    };
    let found =
        tx.list_pop(db, key, end, count, begin, |reply, element| reply_element(reply, element))?;
    if found && count > 0 {
        tx.notify_removal(EventClass::LIST, popped(end), db, key);
    }
    Ok(found)
}

/// The arguments of `LMPOP` and `BLMPOP`.
pub(super) struct PopFrom<'a> {
    pub(super) keys: &'a [&'a [u8]],
    pub(super) end: End,
    pub(super) count: usize,
}

impl<'a> PopFrom<'a> {
    /// `numkeys key.. LEFT|RIGHT [COUNT count]`
    pub(super) fn read(args: &'a [&'a [u8]]) -> Result<PopFrom<'a>, CommandError> {
        let keys = args::integer_or(args[0], 1.., "ERR numkeys should be greater than 0")? as usize;
        let rest = args[1..].get(keys..).filter(|rest| !rest.is_empty());
        let [where_from, options @ ..] = rest.ok_or(CommandError::Syntax)? else {
            return Err(CommandError::Syntax);
        };
        let end = end(where_from)?;
        let mut count = None;
        let mut options = options.iter();
        while let Some(option) = options.next() {
            let Some(value) = options.next().filter(|_| is(option, "count") && count.is_none())
            else {
                return Err(CommandError::Syntax);
            };
            count = Some(args::integer_or(value, 1.., "ERR count should be greater than 0")?);
        }
        Ok(PopFrom { keys: &args[1..=keys], end, count: count.unwrap_or(1) as usize })
    }
}

/// Pops elements of the first existing list, and replies with its key and them; `false` if there is
/// none. `may_take` is asked about each list.
pub(super) fn pop_first(
    ctx: &mut Ctx<'_>,
    wanted: &PopFrom<'_>,
    mut may_take: impl FnMut(&mut Tx<'_>, DbId, Key<'_>) -> bool,
) -> Result<bool, CommandError> {
    let db = ctx.db();
    let keyspace = ctx.keyspace();
    let (tx, reply) = ctx.tx_and_reply();
    for bytes in wanted.keys {
        let key = Key { bytes, hash: keyspace.hash(bytes) };
        if tx.get_value::<ListValue>(db, key)?.is_none() || !may_take(tx, db, key) {
            continue;
        }
        reply.array(2);
        reply.bulk(bytes);
        return pop_many(tx, reply, db, key, wanted.end, wanted.count);
    }
    Ok(false)
}

pub(super) fn lmpop(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let wanted = PopFrom::read(&args[1..])?;
    if !pop_first(ctx, &wanted, |_, _, _| true)? {
        ctx.reply.null_array();
    }
    Ok(())
}

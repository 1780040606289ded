//! Looking at a list: LLEN, LRANGE, LINDEX.

use super::shared::{index_of, range_of, reply_element};
use ladon_engine::Look;
use ladon_engine::types::list::{End, ListValue};
use ladon_kernel::command::args;
use ladon_kernel::command::error::CommandResult;
use ladon_kernel::ctx::Ctx;
use ladon_kernel::long::slices::{Room, Slices};
use ladon_resp::Reply;
use std::ops::ControlFlow::{Break, Continue};
use std::ops::Range;

pub(super) fn llen(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let (db, key) = (ctx.db(), ctx.first_key(args));
    let length = ctx.tx().read_value::<ListValue>(db, key)?.map_or(0, ListValue::len);
    ctx.reply.integer(length as i64);
    Ok(())
}

pub(super) fn lrange(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let (start, stop) = (args::integer(args[2])?, args::integer(args[3])?);
    let (db, key) = (ctx.db(), ctx.first_key(args));
    let large = ctx.large();
    let (tx, reply) = ctx.tx_and_reply();
    let range_in = |list: &ListValue| range_of(start, stop, list.len());
    match tx.read_or_freeze(db, key, |list| large.is(list, range_in(list).len()))? {
        None => reply.array(0),
        Some(Look::Here(list)) => {
            let range = range_in(list);
            reply.array(range.len());
            list.range(range, |element| reply_element(reply, element));
        }
        Some(Look::Frozen(list)) => {
            let range = range_in(&list);
            reply.array(range.len());
            ctx.reply_in_slices(Rest { list, range });
        }
    }
    Ok(())
}

/// The elements of a frozen list that are still to be sent.
struct Rest {
    list: ListValue,
    range: Range<usize>,
}

impl Slices for Rest {
    fn write(&mut self, reply: &mut Reply<'_>, room: &mut Room) -> bool {
        let range = &mut self.range;
        let _ = self.list.walk(range.start, End::Back, |element| {
            if Range::is_empty(range) || !room.take(reply) {
                return Break(());
            }
            reply_element(reply, element);
            range.start += 1;
            Continue(())
        });
        !self.range.is_empty()
    }
}

pub(super) fn lindex(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let (db, key) = (ctx.db(), ctx.first_key(args));
    let (tx, reply) = ctx.tx_and_reply();
    let Some(list) = tx.read_value::<ListValue>(db, key)? else {
        reply.null();
        return Ok(());
    };
    let index = args::integer(args[2])?;
    let index = index_of(index, list.len());
    let found = index.and_then(|index| list.get(index, |element| reply_element(reply, element)));
    if found.is_none() {
        reply.null();
    }
    Ok(())
}

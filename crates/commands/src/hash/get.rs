//! HGET, HMGET, HGETALL, HKEYS, HVALS.

use crate::shared::long_string::{Strings, reply_rest};
use ladon_engine::Look;
use ladon_engine::types::Position;
use ladon_engine::types::hash::{Field, HashValue};
use ladon_kernel::command::error::CommandResult;
use ladon_kernel::ctx::Ctx;
use ladon_kernel::long::slices::{Room, Slices};
use ladon_resp::Reply;

pub(super) fn hget(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let (db, key) = (ctx.db(), ctx.first_key(args));
    let hasher = ctx.keyspace().hasher();
    let (tx, reply) = ctx.tx_and_reply();
    match tx.read_value::<HashValue>(db, key)?.and_then(|hash| hash.get(hasher, args[2])) {
        Some(value) => reply.bulk(value),
        None => reply.null(),
    }
    Ok(())
}

pub(super) fn hmget(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let (db, key) = (ctx.db(), ctx.first_key(args));
    let (hasher, large) = (ctx.keyspace().hasher(), ctx.large());
    let (tx, reply) = ctx.tx_and_reply();
    let hash = tx.read_value::<HashValue>(db, key)?;
    reply.array(args.len() - 2);
    let mut strings = Strings::default();
    for name in &args[2..] {
        match hash.and_then(|hash| hash.get(hasher, name)) {
            Some(value) => strings.copy(reply, value, large),
            None => strings.null(reply),
        }
    }
    reply_rest(ctx, strings.into_rest());
    Ok(())
}

pub(super) fn hgetall(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    all(ctx, args, Parts::Both)
}

pub(super) fn hkeys(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    all(ctx, args, Parts::Names)
}

pub(super) fn hvals(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    all(ctx, args, Parts::Values)
}

/// Which parts of each field a command returns.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Parts {
    Names,
    Values,
    Both,
}

impl Parts {
    fn header(self, reply: &mut Reply<'_>, count: usize) {
        match self {
            Parts::Both => reply.map(count),
            Parts::Names | Parts::Values => reply.array(count),
        }
    }

    #[inline]
    fn field(self, reply: &mut Reply<'_>, field: Field<'_>) {
        if self != Parts::Values {
            reply.bulk(field.name);
        }
        if self != Parts::Names {
            reply.bulk(field.value);
        }
    }
}

fn all(ctx: &mut Ctx<'_>, args: &[&[u8]], parts: Parts) -> CommandResult {
    let (db, key) = (ctx.db(), ctx.first_key(args));
    let large = ctx.large();
    let (tx, reply) = ctx.tx_and_reply();
    match tx.read_or_freeze::<HashValue>(db, key, |hash| large.is(hash, hash.len()))? {
        None => parts.header(reply, 0),
        Some(Look::Here(hash)) => {
            parts.header(reply, hash.len());
            hash.fields().for_each(|field| parts.field(reply, field));
        }
        Some(Look::Frozen(hash)) => {
            parts.header(reply, hash.len());
            ctx.reply_in_slices(Rest { hash, at: Position::default(), parts });
        }
    }
    Ok(())
}

/// The fields of a frozen hash that are still to be sent.
struct Rest {
    hash: HashValue,
    at: Position,
    parts: Parts,
}

impl Slices for Rest {
    fn write(&mut self, reply: &mut Reply<'_>, room: &mut Room) -> bool {
        let mut fields = self.hash.fields_from(self.at);
        while room.take(reply) {
            let Some(field) = fields.next() else { return false };
            self.parts.field(reply, field);
        }
        self.at = fields.position();
        true
    }
}

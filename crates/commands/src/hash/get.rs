//! HGET, HMGET, HGETALL, HKEYS, HVALS.

use crate::ctx::Ctx;
use crate::error::CommandResult;
use ladon_engine::types::hash::HashValue;

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
    let hasher = ctx.keyspace().hasher();
    let (tx, reply) = ctx.tx_and_reply();
    let hash = tx.read_value::<HashValue>(db, key)?;
    reply.array(args.len() - 2);
    for name in &args[2..] {
        match hash.and_then(|hash| hash.get(hasher, name)) {
            Some(value) => reply.bulk(value),
            None => reply.null(),
        }
    }
    Ok(())
}

pub(super) fn hgetall(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let (db, key) = (ctx.db(), ctx.first_key(args));
    let (tx, reply) = ctx.tx_and_reply();
    let Some(hash) = tx.read_value::<HashValue>(db, key)? else {
        reply.map(0);
        return Ok(());
    };
    reply.map(hash.len());
    for field in hash.fields() {
        reply.bulk(field.name);
        reply.bulk(field.value);
    }
    Ok(())
}

pub(super) fn hkeys(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let (db, key) = (ctx.db(), ctx.first_key(args));
    let (tx, reply) = ctx.tx_and_reply();
    let hash = tx.read_value::<HashValue>(db, key)?;
    reply.array(hash.map_or(0, HashValue::len));
    for field in hash.iter().flat_map(|hash| hash.fields()) {
        reply.bulk(field.name);
    }
    Ok(())
}

pub(super) fn hvals(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let (db, key) = (ctx.db(), ctx.first_key(args));
    let (tx, reply) = ctx.tx_and_reply();
    let hash = tx.read_value::<HashValue>(db, key)?;
    reply.array(hash.map_or(0, HashValue::len));
    for field in hash.iter().flat_map(|hash| hash.fields()) {
        reply.bulk(field.value);
    }
    Ok(())
}

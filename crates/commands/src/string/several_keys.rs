//! Several strings at once: MGET, MSET, MSETNX, MSETEX.

use super::expiry::Expiry;
use crate::shared::long_string::{Strings, reply_rest};
use ladon_engine::{EntryRef, EventClass};
use ladon_kernel::command::args::{integer, is};
use ladon_kernel::command::error::{CommandError, CommandResult};
use ladon_kernel::ctx::Ctx;

pub(super) fn mget(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let db = ctx.db();
    let large = ctx.large();
    let (tx, reply) = ctx.tx_and_reply();
    reply.array(args.len() - 1);
    let mut strings = Strings::default();
    for name in &args[1..] {
        let key = tx.key(name);
        // A value of another type counts as none here.
        strings.answer(reply, tx.read(db, key).map(EntryRef::value), large);
    }
    reply_rest(ctx, strings.into_rest());
    Ok(())
}

pub(super) fn mset(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    check_pairs(args, "mset")?;
    if args.len() == 3 {
        // A single long value is taken over, not copied.
        return super::set::set(ctx, args);
    }
    put_all(ctx, args);
    ctx.reply.ok();
    Ok(())
}

pub(super) fn msetnx(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    check_pairs(args, "msetnx")?;
    if args.len() == 3 {
        return super::set::setnx(ctx, args);
    }
    let db = ctx.db();
    let tx = ctx.tx();
    let any = args[1..].iter().step_by(2).any(|name| {
        let key = tx.key(name);
        tx.get(db, key).is_some()
    });
    if !any {
        put_all(ctx, args);
    }
    ctx.reply.integer(i64::from(!any));
    Ok(())
}

pub(super) fn msetex(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    const INVALID: CommandError = CommandError::text("ERR invalid numkeys value or out of range");
    let count = integer(args[1]).ok().and_then(|count| i32::try_from(count).ok());
    let count = count.and_then(|count| usize::try_from(count).ok()).filter(|&count| count > 0);
    let words = 2 * count.ok_or(INVALID)?;
    if words > args.len() - 2 {
        return Err(CommandError::Syntax);
    }
    let (pairs, options) = args[2..].split_at(words);
    let (wants_keys, keep_ttl, expiry) = parse_msetex(options)?;
    let expire_at = expiry.map_or(Ok(0), |expiry| expiry.at(ctx.now_ms, "msetex"))?;
    let db = ctx.db();
    let tx = ctx.tx();
    let fits = wants_keys.is_none_or(|wanted| {
        pairs.iter().step_by(2).all(|name| {
            let key = tx.key(name);
            tx.get(db, key).is_some() == wanted
        })
    });
    if fits {
        for pair in pairs.chunks_exact(2) {
            let key = tx.key(pair[0]);
            let expire_at = match keep_ttl {
                true => tx.get(db, key).map_or(0, EntryRef::expire_at),
                false => expire_at,
            };
            tx.put_string(db, key, pair[1], expire_at);
            tx.notify(EventClass::STRING, "set", db, key);
            if expiry.is_some() {
                tx.notify(EventClass::GENERIC, "expire", db, key);
            }
        }
    }
    ctx.reply.integer(i64::from(fits));
    Ok(())
}

/// Whether all keys must exist (`XX`) or none may (`NX`), whether they keep their expiry, and the
/// new one.
type MsetexOptions<'a> = (Option<bool>, bool, Option<Expiry<'a>>);

fn parse_msetex<'a>(mut words: &[&'a [u8]]) -> Result<MsetexOptions<'a>, CommandError> {
    let (mut wants_keys, mut keep_ttl, mut expiry) = (None, false, None);
    while let [word, rest @ ..] = words {
        words = rest;
        if is(word, "nx") && wants_keys != Some(true) {
            wants_keys = Some(false);
        } else if is(word, "xx") && wants_keys != Some(false) {
            wants_keys = Some(true);
        } else if is(word, "keepttl") && expiry.is_none() {
            keep_ttl = true;
        } else if !keep_ttl && let Some(found) = Expiry::parse(word, rest.first().copied(), expiry)
        {
            expiry = Some(found);
            words = &rest[1..];
        } else {
            return Err(CommandError::Syntax);
        }
    }
    Ok((wants_keys, keep_ttl, expiry))
}

fn check_pairs(args: &[&[u8]], command: &str) -> Result<(), CommandError> {
    if args.len().is_multiple_of(2) {
        let text = format_args!("wrong number of arguments for '{command}' command");
        return Err(CommandError::err(text));
    }
    Ok(())
}

fn put_all(ctx: &mut Ctx<'_>, args: &[&[u8]]) {
    let db = ctx.db();
    let tx = ctx.tx();
    for pair in args[1..].chunks_exact(2) {
        let key = tx.key(pair[0]);
        tx.put_string(db, key, pair[1], 0);
        tx.notify(EventClass::STRING, "set", db, key);
    }
}

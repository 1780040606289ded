//! HGETDEL, HGETEX.

use super::fields;
use crate::shared::element_expiry::Unit;
use ladon_engine::EventClass;
use ladon_engine::types::hash::{HashEdit, HashValue};
use ladon_kernel::command::args::is;
use ladon_kernel::command::error::{CommandError, CommandResult};
use ladon_kernel::ctx::Ctx;

pub(super) fn hgetdel(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    check_type(ctx, args)?;
    let names = fields::parse(&args[2..], fields::NOT_POSITIVE)?;
    answer(ctx, args, names, "hdel", |edit, name| edit.remove(name))
}

pub(super) fn hgetex(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    check_type(ctx, args)?;
    let now_ms = ctx.now_ms;
    let (at, words) = if is(args[2], "PERSIST") {
        (Some(0), &args[3..])
    } else if let Some(unit) = Unit::of_option(args[2]) {
        (Some(unit.moment(args[3], now_ms, "hgetex")?), &args[4..])
    } else {
        (None, &args[2..])
    };
    if words.len() < 2 {
        return Err(CommandError::wrong_number("hgetex"));
    }
    let names = fields::parse(words, fields::NOT_POSITIVE)?;
    let is_past = at.is_some_and(|at| at != 0 && at <= now_ms)
        // Zero is a past time too.
        || at == Some(0) && !is(args[2], "PERSIST");
    let event = match at {
        _ if is_past => "hdel",
        Some(0) => "hpersist",
        _ => "hexpire",
    };
    answer(ctx, args, names, event, |edit, name| match at {
        _ if is_past => edit.remove(name),
        Some(at) if edit.expire_at(name).is_some_and(|old| old != at) => edit.set_expiry(name, at),
        _ => false,
    })
}

fn check_type(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let (db, key) = (ctx.db(), ctx.first_key(args));
    ctx.tx().get_value::<HashValue>(db, key)?;
    Ok(())
}

/// Replies with the fields' values, and does something to each field afterwards. `event` is noted
/// if `change` returns true for any of them.
fn answer(
    ctx: &mut Ctx<'_>,
    args: &[&[u8]],
    names: &[&[u8]],
    event: &'static str,
    change: impl Fn(&mut HashEdit<'_>, &[u8]) -> bool,
) -> CommandResult {
    let (db, key) = (ctx.db(), ctx.first_key(args));
    let (tx, reply) = ctx.tx_and_reply();
    reply.array(names.len());
    let mut changed = false;
    let mut changed_names = tx.changed_names(EventClass::HASH);
    let outcome = tx.edit_hash(db, key, |edit| {
        for name in names {
            match edit.get(name) {
                Some(value) => reply.bulk(value),
                None => reply.null(),
            }
            if change(edit, name) {
                changed = true;
                changed_names.push(name);
            }
        }
    })?;
    tx.count_lookup(outcome.is_some());
    if outcome.is_none() {
        names.iter().for_each(|_| reply.null());
    }
    if changed {
        tx.notify_removal_of(EventClass::HASH, event, db, key, &changed_names);
    }
    Ok(())
}

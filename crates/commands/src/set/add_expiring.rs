//! SADDEX.

use crate::shared::element_expiry::Unit;
use ladon_engine::EventClass;
use ladon_engine::types::set::SetValue;
use ladon_kernel::command::args::{self, is};
use ladon_kernel::command::error::{CommandError, CommandResult, shown};
use ladon_kernel::ctx::Ctx;

/// The request without its key.
struct Request<'w, 'a> {
    /// Whether all of the members must exist (true), or none (false).
    exist: Option<bool>,
    expiry: Option<Expiry>,
    members: &'w [&'a [u8]],
}

#[derive(Clone, Copy)]
enum Expiry {
    Keep,
    At(u64),
}

pub(super) fn saddex(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let now_ms = ctx.now_ms;
    let Request { exist, expiry, members } = parse(&args[2..], now_ms)?;
    let (db, key) = (ctx.db(), ctx.first_key(args));
    let hasher = ctx.keyspace().hasher();
    let tx = ctx.tx();
    let set = tx.get_value::<SetValue>(db, key)?;
    let has = |member: &&[u8]| set.is_some_and(|set| set.contains(hasher, member));
    if exist.is_some_and(|wanted| !members.iter().all(|member| has(member) == wanted)) {
        ctx.reply.integer(0);
        return Ok(());
    }
    match expiry {
        // They would expire at once.
        Some(Expiry::At(at)) if at <= now_ms => {
            if tx.set_remove(db, key, members.iter().copied())? > 0 {
                tx.notify_removal(EventClass::SET, "srem", db, key);
            }
        }
        Some(Expiry::At(at)) => {
            tx.edit_or_create_set(db, key, members, |edit| {
                members.iter().for_each(|member| _ = edit.put(member, at));
            })?;
            tx.notify(EventClass::SET, "sadd", db, key);
            tx.notify(EventClass::SET, "sexpire", db, key);
        }
        Some(Expiry::Keep) => {
            tx.set_add(db, key, members.iter().copied())?;
            tx.notify(EventClass::SET, "sadd", db, key);
        }
        None => {
            if set.is_some_and(SetValue::is_timed) {
                tx.edit_set(db, key, |edit| {
                    members.iter().for_each(|member| _ = edit.put(member, 0));
                })?;
            } else {
                tx.set_add(db, key, members.iter().copied())?;
            }
            tx.notify(EventClass::SET, "sadd", db, key);
        }
    }
    ctx.reply.integer(1);
    Ok(())
}

/// Options and members, in any order.
fn parse<'w, 'a>(words: &'w [&'a [u8]], now_ms: u64) -> Result<Request<'w, 'a>, CommandError> {
    let (mut exist, mut expiry, mut members) = (None, None, None);
    let mut rest = words;
    while let [word, after @ ..] = rest {
        rest = after;
        if is(word, "MEMBERS") {
            if members.is_some() {
                return Err(CommandError::text("ERR MEMBERS keyword specified multiple times"));
            }
            let [count, after @ ..] = rest else {
                return Err(CommandError::wrong_number("saddex"));
            };
            let most = i64::from(i32::MAX);
            let count = args::integer_or(count, 1..=most, "ERR invalid number of members")?;
            let Some((named, after)) = after.split_at_checked(count as usize) else {
                return Err(CommandError::text("ERR wrong number of arguments"));
            };
            (members, rest) = (Some(named), after);
        } else if is(word, "MNX") || is(word, "MXX") {
            if exist.is_some() {
                return Err(CommandError::text(
                    "ERR Only one of MXX or MNX arguments can be specified",
                ));
            }
            exist = Some(is(word, "MXX"));
        } else if is(word, "KEEPTTL") {
            check_single(expiry)?;
            expiry = Some(Expiry::Keep);
        } else if let Some(unit) = Unit::of_option(word) {
            check_single(expiry)?;
            let [time, after @ ..] = rest else {
                return Err(CommandError::text("ERR missing expire time"));
            };
            rest = after;
            expiry = Some(Expiry::At(unit.moment(time, now_ms, "saddex")?));
        } else {
            let word = shown(word);
            return Err(CommandError::err(format_args!("unknown argument: {word}")));
        }
    }
    let members = members.ok_or(CommandError::text("ERR missing MEMBERS argument"))?;
    Ok(Request { exist, expiry, members })
}

fn check_single(expiry: Option<Expiry>) -> CommandResult {
    match expiry {
        None => Ok(()),
        Some(_) => Err(CommandError::text(
            "ERR Only one of EX, PX, EXAT, PXAT or KEEPTTL arguments can be specified",
        )),
    }
}

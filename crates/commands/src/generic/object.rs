//! `OBJECT`: how a value is stored.

use crate::shared::help::HELP;
use crate::shared::tuple;
use ladon_engine::types::encoding_of;
use ladon_engine::{AccessNow, EntryRef, Tracking};
use ladon_kernel::command::error::{CommandError, CommandResult};
use ladon_kernel::command::spec::Code;
use ladon_kernel::ctx::Ctx;

pub(super) const SUBCOMMANDS: &[Code] = &[
    Code::on_keys("encoding", encoding).on_tuples(tuple_encoding),
    Code::on_keys("freq", freq).on_tuples(tuple_freq),
    Code::on_keys("idletime", idletime).on_tuples(tuple_idletime),
    Code::on_keys("refcount", refcount).on_tuples(tuple_refcount),
    HELP,
];

const NO_FREQUENCY: CommandError = CommandError::text(
    "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that \
     when switching between policies at runtime LRU and LFU data will take some time to adjust.",
);
const NO_IDLE_TIME: CommandError = CommandError::text(
    "ERR An LFU maxmemory policy is selected, idle time not tracked. Please note that when \
     switching between policies at runtime LRU and LFU data will take some time to adjust.",
);

fn encoding(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    match look(ctx, args, |entry| encoding_of(entry.value())) {
        Some(encoding) => ctx.reply.bulk(encoding),
        None => ctx.reply.null(),
    }
    Ok(())
}

fn freq(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let access = access(ctx);
    let frequency = look(ctx, args, |entry| access.frequency(entry.access()));
    match frequency {
        Some(_) if access.tracking() != Tracking::Frequency => return Err(NO_FREQUENCY),
        Some(frequency) => ctx.reply.integer(i64::from(frequency)),
        None => ctx.reply.null(),
    }
    Ok(())
}

fn idletime(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let access = access(ctx);
    match look(ctx, args, |entry| access.idle_seconds(entry.access())) {
        Some(_) if access.tracking() == Tracking::Frequency => return Err(NO_IDLE_TIME),
        Some(seconds) => ctx.reply.integer(i64::from(seconds)),
        None => ctx.reply.null(),
    }
    Ok(())
}

fn refcount(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    // Values are never shared between keys.
    match look(ctx, args, |_| 1) {
        Some(count) => ctx.reply.integer(count),
        None => ctx.reply.null(),
    }
    Ok(())
}

fn tuple_encoding(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    match tuple::inspect(ctx, args[2])? {
        Some(_) => ctx.reply.bulk("tuple"),
        None => ctx.reply.null(),
    }
    Ok(())
}

/// Tuples are never evicted, so nobody counts how often they are read.
fn tuple_freq(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let is_tracked = access(ctx).tracking() == Tracking::Frequency;
    tuple_number(ctx, args, is_tracked.then_some(0).ok_or(NO_FREQUENCY))
}

/// As `tuple_freq`: nobody notes when they are read.
fn tuple_idletime(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let is_tracked = access(ctx).tracking() != Tracking::Frequency;
    tuple_number(ctx, args, is_tracked.then_some(0).ok_or(NO_IDLE_TIME))
}

fn tuple_refcount(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    tuple_number(ctx, args, Ok(1))
}

fn tuple_number(
    ctx: &mut Ctx<'_>,
    args: &[&[u8]],
    number: Result<i64, CommandError>,
) -> CommandResult {
    match tuple::inspect(ctx, args[2])? {
        Some(_) => ctx.reply.integer(number?),
        None => ctx.reply.null(),
    }
    Ok(())
}

fn access(ctx: &Ctx<'_>) -> AccessNow {
    ctx.keyspace().access_rules().at(ctx.now_ms)
}

fn look<R>(ctx: &mut Ctx<'_>, args: &[&[u8]], show: impl FnOnce(EntryRef<'_>) -> R) -> Option<R> {
    let (db, key) = (ctx.db(), ctx.key(args[2]));
    ctx.tx().inspect_quietly(db, key).map(show)
}

//! `OBJECT`: how a value is stored.

use crate::shared::help::HELP;
use ladon_engine::types::encoding_of;
use ladon_engine::{AccessNow, EntryRef, Tracking};
use ladon_kernel::command::error::{CommandError, CommandResult};
use ladon_kernel::command::spec::Code;
use ladon_kernel::ctx::Ctx;

pub(super) const SUBCOMMANDS: &[Code] = &[
    Code::on_keys("encoding", encoding),
    Code::on_keys("freq", freq),
    Code::on_keys("idletime", idletime),
    Code::on_keys("refcount", refcount),
    HELP,
];

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
        Some(_) if access.tracking() != Tracking::Frequency => {
            return Err(CommandError::text(
                "ERR An LFU maxmemory policy is not selected, access frequency not tracked. \
                 Please note that when switching between policies at runtime LRU and LFU data \
                 will take some time to adjust.",
            ));
        }
        Some(frequency) => ctx.reply.integer(i64::from(frequency)),
        None => ctx.reply.null(),
    }
    Ok(())
}

fn idletime(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let access = access(ctx);
    match look(ctx, args, |entry| access.idle_seconds(entry.access())) {
        Some(_) if access.tracking() == Tracking::Frequency => {
            return Err(CommandError::text(
                "ERR An LFU maxmemory policy is selected, idle time not tracked. Please note that \
                 when switching between policies at runtime LRU and LFU data will take some time \
                 to adjust.",
            ));
        }
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

fn access(ctx: &Ctx<'_>) -> AccessNow {
    ctx.keyspace().access_rules().at(ctx.now_ms)
}

fn look<R>(ctx: &mut Ctx<'_>, args: &[&[u8]], show: impl FnOnce(EntryRef<'_>) -> R) -> Option<R> {
    let (db, key) = (ctx.db(), ctx.key(args[2]));
    ctx.tx().inspect_quietly(db, key).map(show)
}

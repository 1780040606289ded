//! Consumer groups: XGROUP and XACK.

use super::id;
use super::shared::{no_group, notify_consumer};
use ladon_engine::EventClass;
use ladon_engine::types::stream::{Step, Stream, StreamId};
use ladon_kernel::command::args::{self, is};
use ladon_kernel::command::error::{CommandError, CommandResult};
use ladon_kernel::ctx::Ctx;

const NO_KEY: CommandError = CommandError::text(
    "ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use \
     the MKSTREAM option to create an empty stream automatically.",
);

/// Options of CREATE and SETID.
struct Options {
    may_create: bool,
    entries_read: Option<u64>,
}

impl Options {
    fn parse(args: &[&[u8]], is_create: bool) -> Result<Options, CommandError> {
        let mut options = Options { may_create: false, entries_read: None };
        let mut words = &args[5..];
        while let [word, rest @ ..] = words {
            words = rest;
            if is_create && is(word, "mkstream") {
                options.may_create = true;
            } else if is(word, "entriesread")
                && let [count, rest @ ..] = rest
            {
                let count = args::integer(count)?;
                if count < -1 {
                    return Err(CommandError::text(
                        "ERR value for ENTRIESREAD must be positive or -1",
                    ));
                }
                options.entries_read = u64::try_from(count).ok();
                words = rest;
            } else {
                return Err(CommandError::subcommand(args));
            }
        }
        Ok(options)
    }
}

/// The id from which a group reads; `$` is the stream's last.
fn start(
    text: &[u8],
    last: StreamId,
    parse: fn(&[u8], u64) -> Result<StreamId, CommandError>,
) -> Result<StreamId, CommandError> {
    if text == b"$" { Ok(last) } else { parse(text, 0) }
}

pub(super) fn create(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    const ARGS_MAX: usize = 8;
    let Options { may_create, entries_read: read } = Options::parse(args, true)?;
    let (db, key, group) = (ctx.db(), ctx.key(args[2]), args[3]);
    let tx = ctx.tx();
    let last = match tx.get_value::<Stream>(db, key)? {
        None if !may_create => return Err(NO_KEY),
        stream => stream.map_or(StreamId::MIN, Stream::last_id),
    };
    if args.len() > ARGS_MAX {
        return Err(CommandError::subcommand(args));
    }
    let last = start(args[4], last, id::strict)?;
    let is_new = tx.stream_upsert(db, key, |stream| {
        let is_new = stream.group(group).is_none();
        if is_new {
            stream.apply(Step::CreateGroup { group, last, read });
        }
        is_new
    })?;
    if !is_new {
        return Err(CommandError::text("BUSYGROUP Consumer Group name already exists"));
    }
    tx.notify(EventClass::STREAM, "xgroup-create", db, key);
    ctx.reply.ok();
    Ok(())
}

pub(super) fn set_id(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let Options { entries_read: read, .. } = Options::parse(args, false)?;
    let (db, key, group) = (ctx.db(), ctx.key(args[2]), args[3]);
    let last = existing(ctx, args, |stream| stream.last_id())?;
    if !matches!(args.len(), 5 | 7) {
        return Err(CommandError::subcommand(args));
    }
    let last = start(args[4], last, id::lenient)?;
    let tx = ctx.tx();
    tx.stream_change(db, key, |stream| stream.apply(Step::SetGroup { group, last, read }))?;
    tx.notify(EventClass::STREAM, "xgroup-setid", db, key);
    ctx.reply.ok();
    Ok(())
}

/// Looks at the stream of a subcommand that needs its key and its group.
fn existing<R>(
    ctx: &mut Ctx<'_>,
    args: &[&[u8]],
    look: impl FnOnce(&Stream) -> R,
) -> Result<R, CommandError> {
    let (db, key) = (ctx.db(), ctx.key(args[2]));
    let stream = ctx.tx().get_value::<Stream>(db, key)?.ok_or(NO_KEY)?;
    if stream.group(args[3]).is_none() {
        return Err(no_group(args[2], args[3]));
    }
    Ok(look(stream))
}

pub(super) fn destroy(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let (db, key, group) = (ctx.db(), ctx.key(args[2]), args[3]);
    let existed = ctx.tx().stream_change(db, key, |stream| {
        let exists = stream.group(group).is_some();
        if exists {
            stream.apply(Step::RemoveGroup { group });
        }
        exists
    })?;
    let existed = existed.ok_or(NO_KEY)?;
    if existed {
        ctx.tx().notify(EventClass::STREAM, "xgroup-destroy", db, key);
    }
    ctx.reply.integer(i64::from(existed));
    Ok(())
}

pub(super) fn create_consumer(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let (db, key, at_ms) = (ctx.db(), ctx.key(args[2]), ctx.now_ms);
    let (group, consumer) = (args[3], args[4]);
    let exists = existing(ctx, args, |stream| {
        stream.group(group).is_some_and(|group| group.consumer(consumer).is_some())
    })?;
    if !exists {
        let see = Step::See { group, consumer, at_ms };
        ctx.tx().stream_change(db, key, |stream| stream.apply(see))?;
        notify_consumer(ctx.tx(), db, key);
    }
    ctx.reply.integer(i64::from(!exists));
    Ok(())
}

pub(super) fn delete_consumer(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let (db, key) = (ctx.db(), ctx.key(args[2]));
    let (group, consumer) = (args[3], args[4]);
    let pending = existing(ctx, args, |stream| {
        let consumer = stream.group(group).and_then(|group| group.consumer(consumer));
        consumer.map(|consumer| consumer.pending())
    })?;
    if pending.is_some() {
        let remove = Step::RemoveConsumer { group, consumer };
        ctx.tx().stream_change(db, key, |stream| stream.apply(remove))?;
        ctx.tx().notify(EventClass::STREAM, "xgroup-delconsumer", db, key);
    }
    ctx.reply.integer(pending.unwrap_or(0) as i64);
    Ok(())
}

pub(super) fn xack(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let (db, key, group) = (ctx.db(), ctx.first_key(args), args[2]);
    let stream = ctx.tx().read_value::<Stream>(db, key)?;
    if stream.is_none_or(|stream| stream.group(group).is_none()) {
        ctx.reply.integer(0);
        return Ok(());
    }
    let mut ids = id::all(&args[3..])?;
    ids.sort_unstable();
    ids.dedup();
    let acknowledged = ctx.tx().stream_change(db, key, |stream| {
        if let Some(group) = stream.group(group) {
            ids.retain(|id| group.pending_entry(*id).is_some());
        }
        let count = ids.len();
        if count != 0 {
            stream.apply(Step::Acknowledge { group, ids });
        }
        count
    })?;
    ctx.reply.integer(acknowledged.unwrap_or(0) as i64);
    Ok(())
}

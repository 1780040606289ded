//! Taking over what is pending with others: XCLAIM, XAUTOCLAIM.

use super::shared::{is_new_consumer, no_key_or_group, notify_consumer, text};
use super::{id, reply};
use ladon_engine::StreamEdit;
use ladon_engine::types::stream::{Claimed, Step, Stream, StreamId};
use ladon_kernel::command::args::{self, is};
use ladon_kernel::command::error::{CommandError, CommandResult};
use ladon_kernel::ctx::Ctx;
use ladon_resp::{Reply, parse_i64};

/// Options of XCLAIM.
struct Options {
    delivered_ms: u64,
    retry_count: Option<u64>,
    forces: bool,
    just_id: bool,
    last_id: StreamId,
}

impl Options {
    fn parse(mut words: &[&[u8]], now_ms: u64) -> Result<Options, CommandError> {
        let number = |text: &[u8], name: &str| {
            let invalid =
                || CommandError::err(format_args!("Invalid {name} option argument for XCLAIM"));
            parse_i64(text).ok_or_else(invalid)
        };
        let now = now_ms as i64;
        let mut options = Options {
            delivered_ms: now_ms,
            retry_count: None,
            forces: false,
            just_id: false,
            last_id: StreamId::MIN,
        };
        let mut delivered = -1;
        while let [word, rest @ ..] = words {
            words = rest;
            if is(word, "force") {
                options.forces = true;
                continue;
            } else if is(word, "justid") {
                options.just_id = true;
                continue;
            }
            let [value, rest @ ..] = rest else { return Err(unrecognized(word)) };
            words = rest;
            if is(word, "idle") {
                delivered = now.wrapping_sub(number(value, "IDLE")?);
            } else if is(word, "time") {
                delivered = number(value, "TIME")?;
            } else if is(word, "retrycount") {
                options.retry_count = u64::try_from(number(value, "RETRYCOUNT")?).ok();
            } else if is(word, "lastid") {
                options.last_id = id::strict(value, 0)?;
            } else {
                return Err(unrecognized(word));
            }
        }
        // As in Redis, a time that cannot be is the present one.
        if (0..=now).contains(&delivered) {
            options.delivered_ms = delivered as u64;
        }
        Ok(options)
    }
}

fn unrecognized(option: &[u8]) -> CommandError {
    CommandError::err(format_args!("Unrecognized XCLAIM option '{}'", text(option)))
}

pub(super) fn xclaim(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let (db, key, now_ms) = (ctx.db(), ctx.first_key(args), ctx.now_ms);
    let (group, consumer) = (args[2], args[3]);
    check_group(ctx, args)?;
    let min_idle_ms = min_idle(args[4], "XCLAIM")?;
    let ids: Vec<StreamId> = args[5..].iter().map_while(|text| id::strict(text, 0).ok()).collect();
    let options = Options::parse(&args[5 + ids.len()..], now_ms)?;
    let (tx, reply) = ctx.tx_and_reply();
    let claim = Claim { group, consumer, now_ms, min_idle_ms };
    let is_new = tx.stream_change(db, key, |stream| {
        let is_new = is_new_consumer(stream, group, consumer);
        if let Some(of) = stream.group(group)
            && options.last_id > of.last_id
        {
            let read = of.entries_read;
            stream.apply(Step::SetGroup { group, last: options.last_id, read });
        }
        stream.apply(Step::See { group, consumer, at_ms: now_ms });
        let array = reply.begin_array();
        let mut count = 0;
        for id in ids {
            if claim.one(stream, id, &options) {
                show(reply, stream, id, options.just_id);
                count += 1;
            }
        }
        reply.end_array(array, count);
        is_new
    })?;
    if is_new == Some(true) {
        notify_consumer(tx, db, key);
    }
    Ok(())
}

/// The key is no stream, or the group does not exist.
fn check_group(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let (db, key) = (ctx.db(), ctx.first_key(args));
    let stream = ctx.tx().read_value::<Stream>(db, key)?;
    match stream.and_then(|stream| stream.group(args[2])) {
        Some(_) => Ok(()),
        None => Err(no_key_or_group(args[1], args[2])),
    }
}

fn min_idle(text: &[u8], command: &str) -> Result<i64, CommandError> {
    let invalid =
        || CommandError::err(format_args!("Invalid min-idle-time argument for {command}"));
    Ok(parse_i64(text).ok_or_else(invalid)?.max(0))
}

/// A claimed entry in the reply.
fn show(reply: &mut Reply<'_>, stream: &Stream, id: StreamId, just_id: bool) {
    match stream.get(id) {
        Some(entry) if !just_id => reply::entry(reply, entry),
        _ => reply::id(reply, id),
    }
}

struct Claim<'a> {
    group: &'a [u8],
    consumer: &'a [u8],
    now_ms: u64,
    min_idle_ms: i64,
}

impl Claim<'_> {
    /// Claims an entry; returns whether it was.
    fn one(&self, stream: &mut StreamEdit<'_>, id: StreamId, options: &Options) -> bool {
        let Claim { group, consumer, now_ms, min_idle_ms } = *self;
        let pending = stream.group(group).and_then(|group| group.pending_entry(id)).copied();
        if !stream.contains(id) {
            // What does not exist cannot be pending.
            if pending.is_some() {
                stream.apply(Step::Acknowledge { group, ids: vec![id] });
            }
            return false;
        }
        let count = match pending {
            None if !options.forces => return false,
            Some(pending)
                if min_idle_ms != 0
                    && (now_ms as i64) - (pending.delivered_ms as i64) < min_idle_ms =>
            {
                return false;
            }
            pending => pending.map_or(1, |pending| pending.count),
        };
        let count = match options.retry_count {
            Some(count) => count,
            None if options.just_id => count,
            None => count.saturating_add(1),
        };
        let claimed = vec![Claimed { id, delivered_ms: options.delivered_ms, count }];
        stream.apply(Step::Claim { group, consumer, at_ms: now_ms, claimed });
        true
    }
}

/// The options of XAUTOCLAIM: the maximum number of entries, and whether to answer ids alone.
fn auto_options(mut words: &[&[u8]]) -> Result<(i64, bool), CommandError> {
    const DEFAULT_COUNT: i64 = 100;
    const COUNT_MAX: i64 = i64::MAX / 16;
    let (mut count, mut just_id) = (DEFAULT_COUNT, false);
    while let [word, rest @ ..] = words {
        words = rest;
        if is(word, "count")
            && let [value, rest @ ..] = rest
        {
            count = args::integer_or(value, 1..=COUNT_MAX, "ERR COUNT must be > 0")?;
            words = rest;
        } else if is(word, "justid") {
            just_id = true;
        } else {
            return Err(CommandError::Syntax);
        }
    }
    Ok((count, just_id))
}

pub(super) fn xautoclaim(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    /// Pending entries to look at, for each to claim.
    const ATTEMPTS_FACTOR: i64 = 10;
    let min_idle_ms = min_idle(args[4], "XAUTOCLAIM")?;
    let first = id::first(args[5])?;
    let (mut count, just_id) = auto_options(&args[6..])?;
    check_group(ctx, args)?;
    let (db, key, now_ms) = (ctx.db(), ctx.first_key(args), ctx.now_ms);
    let (group, consumer) = (args[2], args[3]);
    let claim = Claim { group, consumer, now_ms, min_idle_ms };
    let options = Options {
        delivered_ms: now_ms,
        retry_count: None,
        forces: false,
        just_id,
        last_id: StreamId::MIN,
    };
    let tx = ctx.tx();
    let mut is_new = false;
    let found = tx.stream_change(db, key, |stream| {
        is_new = is_new_consumer(stream, group, consumer);
        stream.apply(Step::See { group, consumer, at_ms: now_ms });
        let next = |stream: &Stream, from: Option<StreamId>| {
            let pending = stream.group(group)?.pending_from(from?).next();
            pending.map(|(id, _)| *id)
        };
        let (mut claimed, mut gone) = (Vec::new(), Vec::new());
        let (mut from, mut attempts) = (Some(first), count * ATTEMPTS_FACTOR);
        while attempts > 0
            && count > 0
            && let Some(id) = next(stream, from)
        {
            attempts -= 1;
            from = id.next();
            let exists = stream.contains(id);
            if claim.one(stream, id, &options) {
                claimed.push(id);
                count -= 1;
            } else if !exists {
                gone.push(id);
                count -= 1;
            }
        }
        (claimed, gone, next(stream, from))
    })?;
    if is_new {
        notify_consumer(tx, db, key);
    }
    let Some((claimed, gone, cursor)) = found else { return Ok(()) };
    let (tx, reply) = ctx.tx_and_reply();
    let Some(stream) = tx.get_value::<Stream>(db, key)? else { return Ok(()) };
    reply.array(3);
    reply::id(reply, cursor.unwrap_or(StreamId::MIN));
    reply.array(claimed.len());
    claimed.into_iter().for_each(|id| show(reply, stream, id, just_id));
    reply.array(gone.len());
    gone.into_iter().for_each(|id| reply::id(reply, id));
    Ok(())
}

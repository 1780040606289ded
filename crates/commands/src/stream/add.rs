//! XADD.

use super::id::NewId;
use super::idempotence::default_memory;
use super::reply;
use super::trim::{Options, options};
use ladon_engine::types::stream::{ENTRY_BYTES_MAX, Step, Stream, StreamId};
use ladon_engine::{EventClass, StreamEdit};
use ladon_kernel::command::error::{CommandError, CommandResult};
use ladon_kernel::ctx::Ctx;

const TOO_SMALL: CommandError = CommandError::text(
    "ERR The ID specified in XADD is equal or smaller than the target stream top item",
);

/// What became of an entry.
enum Added {
    /// It was added, and so many others were trimmed.
    Now { id: StreamId, trimmed: usize },
    /// It had been added under this id.
    Before(StreamId),
}

pub(super) fn xadd(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let options = match args[2] {
        b"*" => Options::DEFAULT,
        _ => options(args, true, ctx.node.settings.stream_node_max_entries())?,
    };
    let words = args.get(options.id_at + 1..).unwrap_or_default();
    if words.len() < 2 || !words.len().is_multiple_of(2) {
        return Err(CommandError::wrong_number("xadd"));
    }
    if options.id == NewId::Given(StreamId::MIN) {
        return Err(CommandError::text("ERR The ID specified in XADD must be greater than 0-0"));
    }
    let (db, key, now_ms) = (ctx.db(), ctx.first_key(args), ctx.now_ms);
    let is_too_large = words.iter().map(|word| word.len()).sum::<usize>() > ENTRY_BYTES_MAX;
    let sent = options
        .sender
        .map(|sender| (sender.producer(), sender.id(words), default_memory(&ctx.node.settings)));
    let tx = ctx.tx();
    if is_too_large {
        // An id that does not fit is the error that counts; a new stream is not left behind.
        let checked = tx.get_value::<Stream>(db, key)?;
        if let Some(stream) = checked {
            new_id(stream, options.id, now_ms)?;
        }
        return Err(CommandError::text("ERR Elements are too large to be stored"));
    }
    let add = |stream: &mut StreamEdit<'_>| {
        if let Some((producer, sent_id, _)) = &sent
            && let Some(id) = stream.sent(producer, sent_id)
        {
            stream.apply(Step::Duplicate);
            return Ok(Added::Before(id));
        }
        let id = new_id(stream, options.id, now_ms)?;
        stream.add(id, words);
        if let Some((producer, sent_id, memory)) = &sent {
            stream.remember(*memory, producer, sent_id);
        }
        let trimmed = options.trim.as_ref().map_or(0, |trim| stream.trim(trim, options.references));
        Ok::<_, CommandError>(Added::Now { id, trimmed })
    };
    let added = if options.may_create {
        Some(tx.stream_upsert(db, key, add)?)
    } else {
        tx.stream_change(db, key, add)?
    };
    match added {
        None => ctx.reply.null(),
        Some(Ok(Added::Before(id))) => reply::id(&mut ctx.reply, id),
        Some(Err(error)) => return Err(error),
        Some(Ok(Added::Now { id, trimmed })) => {
            tx.notify(EventClass::STREAM, "xadd", db, key);
            if trimmed != 0 {
                tx.notify(EventClass::STREAM, "xtrim", db, key);
            }
            reply::id(&mut ctx.reply, id);
        }
    }
    Ok(())
}

/// The id of the next entry. A new stream accepts every id but the smallest.
#[inline]
fn new_id(stream: &Stream, wanted: NewId, now_ms: u64) -> Result<StreamId, CommandError> {
    let last = stream.last_id();
    if last == StreamId::MAX {
        return Err(CommandError::text(
            "ERR The stream has exhausted the last possible ID, unable to add more items",
        ));
    }
    let id = match wanted {
        NewId::Automatic => stream.next_id(now_ms),
        NewId::Given(id) => Some(id),
        NewId::OfTime(ms) if ms == last.ms => {
            last.seq.checked_add(1).map(|seq| StreamId::new(ms, seq))
        }
        NewId::OfTime(ms) => Some(StreamId::new(ms, 0)),
    };
    id.filter(|id| *id > last).ok_or(TOO_SMALL)
}

//! XREAD.

use super::id;
use super::range::{Rest, Span};
use super::streams_option::Options;
use crate::kernel::blocking::Wanted;
use crate::kernel::ctx::Ctx;
use crate::kernel::error::{CommandError, CommandResult};
use crate::kernel::slices::{Room, Slices};
use ladon_engine::types::stream::{Stream, StreamId};
use ladon_engine::{Key, Object, Tx, ValueRef};
use ladon_model::{DbId, ValueKind};
use ladon_resp::{Proto, Reply};
use smallvec::SmallVec;
use std::collections::VecDeque;

/// The id after which a stream is read.
type Ids = SmallVec<[StreamId; 8]>;

pub(super) fn xread(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let options = Options::parse(args, false, ctx.now_ms)?;
    let (names, texts) = halves(args, &options);
    let db = ctx.db();
    let mut after = Ids::new();
    let mut ready = SmallVec::<[usize; 8]>::new();
    for (at, (name, text)) in names.iter().zip(texts).enumerate() {
        let key = ctx.key(name);
        let stream = ctx.tx().read_value::<Stream>(db, key)?;
        let id = after_of(stream, text)?;
        if stream.and_then(Stream::last_entry_id).is_some_and(|last| last > id) {
            ready.push(at);
        }
        after.push(id);
    }
    if !ready.is_empty() {
        return answer(ctx, names, &after, &ready, options.count);
    }
    match options.block {
        None => ctx.reply.null_array(),
        Some(deadline_ms) => {
            // What counts as new is what is added from now on, not from when the command runs again.
            let fixed: Vec<Vec<u8>> = after.iter().map(|id| id.to_text()).collect();
            let mut args = args.to_vec();
            let ids = &mut args[options.keys.end..];
            for (id, fixed) in ids.iter_mut().zip(&fixed).filter(|(id, _)| **id == b"$") {
                *id = fixed;
            }
            let wanted = Wanted {
                kind: ValueKind::Stream,
                hears_loss: false,
                is_ready: Some(is_ready),
                look_at: None,
            };
            ctx.block_or_answer_null(&args, options.keys, wanted, deadline_ms);
        }
    }
    Ok(())
}

/// The names of the keys, and the ids.
pub(super) fn halves<'s, 'a>(
    args: &'s [&'a [u8]],
    options: &Options<'_>,
) -> (&'s [&'a [u8]], &'s [&'a [u8]]) {
    (&args[options.keys.clone()], &args[options.keys.end..])
}

/// The id after which to read.
fn after_of(stream: Option<&Stream>, text: &[u8]) -> Result<StreamId, CommandError> {
    match text {
        b"$" => Ok(stream.map_or(StreamId::MIN, Stream::last_id)),
        b"+" => {
            let last = stream.and_then(Stream::last_entry_id);
            Ok(last.and_then(StreamId::previous).unwrap_or(StreamId::MIN))
        }
        b">" => Err(CommandError::text(
            "ERR The > ID can be specified only when calling XREADGROUP using the GROUP <group> \
             <consumer> option.",
        )),
        _ => id::strict(text, 0),
    }
}

/// Whether a waiting XREAD has something to answer.
fn is_ready(tx: &mut Tx<'_>, db: DbId, args: &[&[u8]]) -> bool {
    let Ok(options) = Options::parse(args, false, 0) else { return true };
    let (names, texts) = halves(args, &options);
    names.iter().zip(texts).any(|(name, text)| {
        let key = tx.key(name);
        let Ok(Some(stream)) = peek(tx, db, key) else { return false };
        let after = after_of(Some(stream), text).unwrap_or(StreamId::MIN);
        stream.last_entry_id().is_some_and(|last| last > after)
    })
}

/// The key's stream, for a look that does not count; an error for another type.
pub(super) fn peek<'t>(
    tx: &'t mut Tx<'_>,
    db: DbId,
    key: Key<'_>,
) -> Result<Option<&'t Stream>, ()> {
    match tx.peek(db, key).map(|entry| entry.value()) {
        None => Ok(None),
        Some(ValueRef::Object(Object::Stream(stream))) => Ok(Some(stream)),
        Some(_) => Err(()),
    }
}

/// Replies with the entries after the ids, of the streams that have some.
fn answer(
    ctx: &mut Ctx<'_>,
    names: &[&[u8]],
    after: &[StreamId],
    ready: &[usize],
    count: usize,
) -> CommandResult {
    let (db, large) = (ctx.db(), ctx.large());
    header(&mut ctx.reply, ready.len());
    let span = |at: usize| Span {
        // There is an entry after it.
        first: after[at].next().unwrap_or(StreamId::MAX),
        last: StreamId::MAX,
        count,
        reversed: false,
    };
    let mut is_large = false;
    for &at in ready {
        let key = ctx.key(names[at]);
        let stream = ctx.tx().get_value::<Stream>(db, key)?;
        is_large |= stream.is_some_and(|stream| span(at).is_large(stream, large));
    }
    let mut parts = VecDeque::new();
    for &at in ready {
        let (name, key) = (names[at], ctx.key(names[at]));
        let (tx, reply) = ctx.tx_and_reply();
        if is_large {
            if let Some(stream) = tx.freeze_or_copy::<Stream>(db, key) {
                parts.push_back((Some(name.to_vec()), Rest::new(stream, span(at))));
            }
        } else if let Some(stream) = tx.get_value::<Stream>(db, key)? {
            begin_part(reply, name);
            span(at).write(reply, stream);
        }
    }
    if is_large {
        ctx.reply_in_slices(Parts(parts));
    }
    Ok(())
}

/// Begins a reply about so many streams.
fn header(reply: &mut Reply<'_>, streams: usize) {
    match reply.proto() {
        Proto::Resp2 => reply.array(streams),
        Proto::Resp3 => reply.map(streams),
    }
}

/// Begins the part about a stream.
pub(super) fn begin_part(reply: &mut Reply<'_>, name: &[u8]) {
    if reply.proto() == Proto::Resp2 {
        reply.array(2);
    }
    reply.bulk(name);
}

/// The streams of which entries are still to be sent, with those names that are.
struct Parts(VecDeque<(Option<Vec<u8>>, Rest)>);

impl Slices for Parts {
    fn write(&mut self, reply: &mut Reply<'_>, room: &mut Room) -> bool {
        while let Some((name, rest)) = self.0.front_mut() {
            if let Some(name) = name.take() {
                begin_part(reply, &name);
            }
            if rest.write(reply, room) {
                return true;
            }
            self.0.pop_front();
        }
        false
    }
}

//! XREAD.

use super::range::{Rest, Span};
use super::streams_option::{Budget, Options};
use super::{id, reply};
use ladon_engine::types::stream::{Stream, StreamId};
use ladon_engine::{Key, Object, Tx, ValueRef};
use ladon_kernel::blocking::Wanted;
use ladon_kernel::command::error::{CommandError, CommandResult};
use ladon_kernel::ctx::Ctx;
use ladon_kernel::long::large::Large;
use ladon_kernel::long::slices::{Headed, Room, Slices};
use ladon_record::{DbId, ValueKind};
use ladon_resp::{Proto, Reply};
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::ops::ControlFlow::{Break, Continue};

/// The id after which a stream is read.
type Ids = SmallVec<[StreamId; 8]>;

pub(super) fn xread(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let options = Options::parse(args, false, ctx.now_ms)?;
    let (names, texts) = halves(args, &options);
    let db = ctx.db();
    let mut after = Ids::new();
    let mut ready = SmallVec::<[Part; 8]>::new();
    for (at, (name, text)) in names.iter().zip(texts).enumerate() {
        let key = ctx.key(name);
        let stream = ctx.tx().read_value::<Stream>(db, key)?;
        let id = after_of(stream, text)?;
        if stream.and_then(Stream::last_entry_id).is_some_and(|last| last > id) {
            // There is an entry after it.
            let first = id.next().unwrap_or(StreamId::MAX);
            let count = options.count;
            ready.push((at, Span { first, last: StreamId::MAX, count, reversed: false }));
        }
        after.push(id);
    }
    if !ready.is_empty() {
        return match options.budget {
            budget if budget.is_limited() => answer_within(ctx, names, &ready, budget),
            _ => answer(ctx, names, &ready),
        };
    }
    match options.block {
        None => ctx.reply.null_array(),
        Some(deadline_ms) => {
            // What counts as new is what is added from now on, not from when the command runs
            // again.
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

/// A stream that has something to answer: the position of its name, and what.
type Part = (usize, Span);

/// Replies with the entries of the spans.
fn answer(ctx: &mut Ctx<'_>, names: &[&[u8]], parts: &[Part]) -> CommandResult {
    let large = ctx.large();
    let is_large = is_any_large(ctx, names, parts, large)?;
    header(&mut ctx.reply, parts.len());
    if is_large {
        let parts = frozen(ctx, names, parts).into_iter();
        let parts = parts.map(|(name, stream, span)| (Some(name), Rest::new(stream, span)));
        ctx.reply_in_slices(Parts(parts.collect()));
        return Ok(());
    }
    let db = ctx.db();
    for &(at, span) in parts {
        let key = ctx.key(names[at]);
        let (tx, reply) = ctx.tx_and_reply();
        if let Some(stream) = tx.get_value::<Stream>(db, key)? {
            begin_part(reply, names[at]);
            span.write(reply, stream);
        }
    }
    Ok(())
}

/// The same where all streams share a budget. A stream of which it leaves nothing is not named.
fn answer_within(
    ctx: &mut Ctx<'_>,
    names: &[&[u8]],
    parts: &[Part],
    mut budget: Budget,
) -> CommandResult {
    let large = ctx.large_aside();
    if is_any_large(ctx, names, parts, large)? {
        let frozen = frozen(ctx, names, parts);
        ctx.reply_aside(move |_| {
            let mut parts = VecDeque::new();
            for (name, stream, mut span) in frozen {
                span.count = admitted(&stream, span, &mut budget);
                if span.count != 0 {
                    parts.push_back((Some(name), Rest::new(stream, span)));
                }
            }
            let streams = parts.len();
            Box::new(Headed::new(move |reply| header(reply, streams), Parts(parts)))
        });
        return Ok(());
    }
    let db = ctx.db();
    let mut within = SmallVec::<[Part; 8]>::new();
    for &(at, span) in parts {
        let key = ctx.key(names[at]);
        if let Some(stream) = ctx.tx().get_value::<Stream>(db, key)? {
            let count = admitted(stream, span, &mut budget);
            within.extend((count != 0).then_some((at, Span { count, ..span })));
        }
    }
    answer(ctx, names, &within)
}

fn is_any_large(
    ctx: &mut Ctx<'_>,
    names: &[&[u8]],
    parts: &[Part],
    large: Large,
) -> Result<bool, CommandError> {
    let db = ctx.db();
    let mut is_large = false;
    for &(at, span) in parts {
        let key = ctx.key(names[at]);
        let stream = ctx.tx().get_value::<Stream>(db, key)?;
        is_large |= stream.is_some_and(|stream| span.is_large(stream, large));
    }
    Ok(is_large)
}

/// Copies of the streams that share their content, with their names.
fn frozen(ctx: &mut Ctx<'_>, names: &[&[u8]], parts: &[Part]) -> Vec<(Vec<u8>, Stream, Span)> {
    let db = ctx.db();
    let mut frozen = Vec::new();
    for &(at, span) in parts {
        let key = ctx.key(names[at]);
        if let Some(stream) = ctx.tx().freeze_or_copy::<Stream>(db, key) {
            frozen.push((names[at].to_vec(), stream, span));
        }
    }
    frozen
}

/// How many of the entries of a span a budget admits.
fn admitted(stream: &Stream, span: Span, budget: &mut Budget) -> usize {
    let mut count = 0;
    let _ = stream.walk(span.first, span.last, |entry| {
        if count == span.count || !budget.admits(|| reply::entry_bytes(entry)) {
            return Break(());
        }
        count += 1;
        Continue(())
    });
    count
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

//! Looking at a stream: XLEN, XRANGE, XREVRANGE.

use super::{id, reply};
use ladon_engine::Look;
use ladon_engine::types::stream::{Stream, StreamId};
use ladon_kernel::command::args::{self, is};
use ladon_kernel::command::error::{CommandError, CommandResult};
use ladon_kernel::ctx::Ctx;
use ladon_kernel::long::large::Large;
use ladon_kernel::long::slices::{Room, Slices};
use ladon_resp::Reply;
use std::ops::ControlFlow::{Break, Continue};

pub(super) fn xlen(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let (db, key) = (ctx.db(), ctx.first_key(args));
    let length = ctx.tx().read_value::<Stream>(db, key)?.map_or(0, Stream::len);
    ctx.reply.integer(length as i64);
    Ok(())
}

pub(super) fn xrange(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    range(ctx, args, false)
}

pub(super) fn xrevrange(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    range(ctx, args, true)
}

/// Entries to be sent: those from `first` to `last`, at most `count` of them.
#[derive(Clone, Copy)]
pub(super) struct Span {
    pub(super) first: StreamId,
    pub(super) last: StreamId,
    pub(super) count: usize,
    pub(super) reversed: bool,
}

impl Span {
    /// Whether its reply is made in slices.
    pub(super) fn is_large(&self, stream: &Stream, large: Large) -> bool {
        let most = self.count.min(stream.len());
        large.is(stream, most) && large.is(stream, stream.count(self.first, self.last, self.count))
    }

    /// Writes the array of the entries.
    #[inline]
    pub(super) fn write(&self, reply: &mut Reply<'_>, stream: &Stream) {
        let array = reply.begin_array();
        let mut count = 0;
        let visit = |entry| {
            reply::entry(reply, entry);
            count += 1;
            if count == self.count { Break(()) } else { Continue(()) }
        };
        let _ = match (self.count, self.reversed) {
            (0, _) => Continue(()),
            (_, false) => stream.walk(self.first, self.last, visit),
            (_, true) => stream.walk_reversed(self.first, self.last, visit),
        };
        reply.end_array(array, count);
    }
}

fn range(ctx: &mut Ctx<'_>, args: &[&[u8]], reversed: bool) -> CommandResult {
    let (first, last) = if reversed { (args[3], args[2]) } else { (args[2], args[3]) };
    let (first, last) = (id::first(first)?, id::last(last)?);
    let mut count = None;
    let mut words = &args[4..];
    while let [word, value, rest @ ..] = words
        && is(word, "count")
    {
        count = Some(usize::try_from(args::integer(value)?).unwrap_or(0));
        words = rest;
    }
    if !words.is_empty() {
        return Err(CommandError::Syntax);
    }
    let span = Span { first, last, count: count.unwrap_or(usize::MAX), reversed };
    let (db, key) = (ctx.db(), ctx.first_key(args));
    let large = ctx.large();
    let (tx, reply) = ctx.tx_and_reply();
    match tx.read_or_freeze(db, key, |stream| span.is_large(stream, large))? {
        None => reply.array(0),
        Some(_) if span.count == 0 => reply.null_array(),
        Some(Look::Here(stream)) => span.write(reply, stream),
        Some(Look::Frozen(stream)) => ctx.reply_in_slices(Rest::new(stream, span)),
    }
    Ok(())
}

/// The entries of a frozen stream that are still to be sent.
pub(super) struct Rest {
    stream: Stream,
    span: Span,
    /// Whether the array was begun.
    is_begun: bool,
}

impl Rest {
    pub(super) fn new(stream: Stream, span: Span) -> Rest {
        Rest { stream, span, is_begun: false }
    }
}

impl Slices for Rest {
    fn write(&mut self, reply: &mut Reply<'_>, room: &mut Room) -> bool {
        let Rest { stream, span, is_begun } = self;
        if !*is_begun {
            *is_begun = true;
            span.count = stream.count(span.first, span.last, span.count);
            reply.array(span.count);
        }
        if span.count == 0 {
            return false;
        }
        let Span { first, last, mut count, reversed } = *span;
        let (mut next_first, mut next_last) = (first, last);
        let visit = |entry: ladon_engine::types::stream::Entry<'_>| {
            if count == 0 || !room.take(reply) {
                return Break(());
            }
            reply::entry(reply, entry);
            count -= 1;
            if reversed {
                next_last = entry.id.previous().unwrap_or(StreamId::MIN);
            } else {
                next_first = entry.id.next().unwrap_or(StreamId::MAX);
            }
            Continue(())
        };
        let _ = if reversed {
            stream.walk_reversed(first, last, visit)
        } else {
            stream.walk(first, last, visit)
        };
        (span.first, span.last, span.count) = (next_first, next_last, count);
        count != 0
    }
}

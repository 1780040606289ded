//! Ranges by rank, score or member: ZRANGE, its older relatives, and ZRANGESTORE.

use super::bounds::Members;
use super::{notify_store, show};
use ladon_engine::types::sorted_set::{Gathered, SortedSet, SortedSetLimits};
use ladon_engine::{Look, Variant};
use ladon_kernel::command::args::{self, is};
use ladon_kernel::command::error::{CommandError, CommandResult};
use ladon_kernel::ctx::Ctx;
use ladon_kernel::long::slices::{Headed, Room, Slices};
use ladon_record::KeyHasher;
use ladon_resp::Reply;
use std::ops::Range;

pub(super) fn zrange(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    answer(ctx, args, None, None)
}

pub(super) fn zrevrange(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    answer(ctx, args, Some(By::Rank), Some(true))
}

pub(super) fn zrangebyscore(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    answer(ctx, args, Some(By::Score), Some(false))
}

pub(super) fn zrevrangebyscore(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    answer(ctx, args, Some(By::Score), Some(true))
}

pub(super) fn zrangebylex(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    answer(ctx, args, Some(By::Lex), Some(false))
}

pub(super) fn zrevrangebylex(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    answer(ctx, args, Some(By::Lex), Some(true))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    Rank,
    Score,
    Lex,
}

/// What a command asks for.
struct Query<'a> {
    members: Members<'a>,
    reversed: bool,
    with_scores: bool,
    offset: i64,
    /// Negative means no limit.
    limit: i64,
}

impl<'a> Query<'a> {
    /// Reads both ends and the options; an option that the command's name implies is an error.
    fn parse(
        ends: [&'a [u8]; 2],
        options: &[&[u8]],
        stores: bool,
        mut by: Option<By>,
        mut reversed: Option<bool>,
    ) -> Result<Query<'a>, CommandError> {
        let (mut with_scores, mut offset, mut limit) = (false, 0, -1);
        let mut rest = options;
        while let [option, after @ ..] = rest {
            rest = after;
            if !stores && is(option, "WITHSCORES") {
                with_scores = true;
            } else if is(option, "LIMIT")
                && let [first, count, after @ ..] = after
            {
                (offset, limit) = (args::integer(first)?, args::integer(count)?);
                rest = after;
            } else if reversed.is_none() && is(option, "REV") {
                reversed = Some(true);
            } else if by.is_none() && is(option, "BYLEX") {
                by = Some(By::Lex);
            } else if by.is_none() && is(option, "BYSCORE") {
                by = Some(By::Score);
            } else {
                return Err(CommandError::Syntax);
            }
        }
        let (by, reversed) = (by.unwrap_or(By::Rank), reversed.unwrap_or(false));
        if limit != -1 && by == By::Rank {
            return Err(CommandError::text(
                "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or \
                 BYLEX",
            ));
        }
        if by == By::Rank {
            // As in Redis, LIMIT n -1 is accepted here, and n is ignored.
            offset = 0;
        }
        if with_scores && by == By::Lex {
            return Err(CommandError::text(
                "ERR syntax error, WITHSCORES not supported in combination with BYLEX",
            ));
        }
        let [first, last] = ends;
        let (min, max) = if reversed { (last, first) } else { (first, last) };
        let members = match by {
            By::Rank => Members::by_rank(first, last)?,
            By::Score => Members::by_score(min, max)?,
            By::Lex => Members::by_lex(min, max)?,
        };
        Ok(Query { members, reversed, with_scores, offset, limit })
    }

    /// The ranks, counted from the first member, in either direction.
    fn ranks(&self, set: &SortedSet) -> Range<usize> {
        let found = self.members.ranks(set);
        // A client's ranks are counted from where the traversal begins.
        let found = match self.members {
            Members::Ranks(..) if self.reversed => set.len() - found.end..set.len() - found.start,
            _ => found,
        };
        let Ok(skipped) = usize::try_from(self.offset) else { return 0..0 };
        let skipped = skipped.min(found.len());
        let left = found.len() - skipped;
        let taken = usize::try_from(self.limit).map_or(left, |limit| limit.min(left));
        if self.reversed {
            let end = found.end - skipped;
            end - taken..end
        } else {
            let start = found.start + skipped;
            start..start + taken
        }
    }
}

fn answer(
    ctx: &mut Ctx<'_>,
    args: &[&[u8]],
    by: Option<By>,
    reversed: Option<bool>,
) -> CommandResult {
    let query = Query::parse([args[2], args[3]], &args[4..], false, by, reversed)?;
    let (db, key) = (ctx.db(), ctx.first_key(args));
    let large = ctx.large();
    let (tx, reply) = ctx.tx_and_reply();
    let (with_scores, reversed) = (query.with_scores, query.reversed);
    match tx.read_or_freeze::<SortedSet>(db, key, |set| large.is(set, query.ranks(set).len()))? {
        None => reply.array(0),
        Some(Look::Here(set)) => {
            let ranks = query.ranks(set);
            show::header(reply, ranks.len(), with_scores);
            write(reply, set, ranks, reversed, with_scores);
        }
        Some(Look::Frozen(set)) => {
            let ranks = query.ranks(&set);
            show::header(reply, ranks.len(), with_scores);
            ctx.reply_in_slices(Rest { set, ranks, reversed, with_scores });
        }
    }
    Ok(())
}

fn write(
    reply: &mut Reply<'_>,
    set: &SortedSet,
    ranks: Range<usize>,
    reversed: bool,
    with_scores: bool,
) {
    let visit = |member: &[u8], score| show::member(reply, member, score, with_scores);
    if reversed {
        set.for_each_reversed(ranks, visit);
    } else {
        set.for_each(ranks, visit);
    }
}

/// Answers with all members.
pub(super) fn write_all(reply: &mut Reply<'_>, set: &SortedSet, with_scores: bool) {
    show::header(reply, set.len(), with_scores);
    write(reply, set, 0..set.len(), false, with_scores);
}

/// A reply with all members of a frozen sorted set.
pub(super) fn slices_of(set: SortedSet, with_scores: bool) -> Box<dyn Slices> {
    let count = set.len();
    let rest = Rest { set, ranks: 0..count, reversed: false, with_scores };
    Box::new(Headed::new(move |reply| show::header(reply, count, with_scores), rest))
}

/// The members of a sorted set that are still to be sent.
struct Rest {
    set: SortedSet,
    ranks: Range<usize>,
    reversed: bool,
    with_scores: bool,
}

/// Members read at once; the slice's size is checked in between.
const FOUND_AT_ONCE: usize = 16;

impl Slices for Rest {
    fn write(&mut self, reply: &mut Reply<'_>, room: &mut Room) -> bool {
        while !self.ranks.is_empty() {
            let count = (0..FOUND_AT_ONCE.min(self.ranks.len())).take_while(|_| room.take(reply));
            let (count, Range { start, end }) = (count.count(), self.ranks.clone());
            if count == 0 {
                return true;
            }
            let found = if self.reversed { end - count..end } else { start..start + count };
            self.ranks = if self.reversed { start..found.start } else { found.end..end };
            write(reply, &self.set, found, self.reversed, self.with_scores);
        }
        false
    }
}

pub(super) fn zrangestore(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let query = Query::parse([args[3], args[4]], &args[5..], true, None, None)?;
    let (db, to, from) = (ctx.db(), ctx.key(args[1]), ctx.key(args[2]));
    if let Some(count) = ctx.put_computed(db, args[1])? {
        notify_store(ctx.tx(), "zrangestore", db, to, count);
        ctx.reply.integer(count as i64);
        return Ok(());
    }
    let (hasher, large) = (ctx.keyspace().hasher(), ctx.large_store());
    let tx = ctx.tx();
    let limits = tx.sorted_set_limits();
    let is_large = |set: &SortedSet| large.is(set, query.ranks(set).len());
    let result = match tx.read_or_freeze::<SortedSet>(db, from, is_large)? {
        None => Gathered::default().into_sorted_set(limits),
        Some(Look::Here(set)) => part(hasher, set, query.ranks(set), limits),
        Some(Look::Frozen(set)) => {
            let ranks = query.ranks(&set);
            ctx.store_aside(&[from], (db, args[1], 0), move |keyspace| {
                Ok(part(keyspace.hasher(), &set, ranks, limits).into_object())
            });
            return Ok(());
        }
    };
    let count = result.len();
    tx.put_value(db, to, result, 0);
    notify_store(tx, "zrangestore", db, to, count);
    ctx.reply.integer(count as i64);
    Ok(())
}

/// Some of the members as a sorted set of their own.
fn part(
    hasher: &KeyHasher,
    set: &SortedSet,
    ranks: Range<usize>,
    limits: SortedSetLimits,
) -> SortedSet {
    let mut found = Gathered::default();
    set.for_each(ranks, |member, score| found.set(hasher, member, |_| score));
    found.into_sorted_set(limits)
}

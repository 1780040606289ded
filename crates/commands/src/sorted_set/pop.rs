//! Members taken from the ends: ZPOPMIN, ZPOPMAX, ZMPOP.

use ladon_engine::types::sorted_set::SortedSet;
use ladon_engine::{EventClass, Key, Tx};
use ladon_kernel::command::args::{self, is};
use ladon_kernel::command::error::{CommandError, CommandResult};
use ladon_kernel::ctx::Ctx;
use ladon_record::DbId;
use ladon_resp::Proto;

/// Which end.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Min,
    Max,
}

pub(super) fn zpopmin(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    pop(ctx, args, End::Min)
}

pub(super) fn zpopmax(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    pop(ctx, args, End::Max)
}

fn pop(ctx: &mut Ctx<'_>, args: &[&[u8]], end: End) -> CommandResult {
    if args.len() > 3 {
        return Err(CommandError::Syntax);
    }
    let count = args.get(2).map(|count| args::positive(count)).transpose()?;
    let (db, key) = (ctx.db(), ctx.first_key(args));
    let (tx, reply) = ctx.tx_and_reply();
    let popped = take(tx, db, key, end, count.map_or(1, |count| count as usize))?;
    // Without a count there is at most one member, and no nested array.
    let nested = count.is_some() && reply.proto() == Proto::Resp3;
    reply.array(if nested { popped.len() } else { 2 * popped.len() });
    for (member, score) in &popped {
        if nested {
            reply.array(2);
        }
        reply.bulk(member);
        reply.double(*score);
    }
    Ok(())
}

pub(super) fn zmpop(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let request = Several::parse(&args[1..])?;
    let db = ctx.db();
    for name in request.names {
        let key = ctx.key(name);
        if request.try_pop(ctx, db, key)? {
            return Ok(());
        }
    }
    ctx.reply.null_array();
    Ok(())
}

/// The arguments of ZMPOP from the number of keys on.
pub(super) struct Several<'a, 'b> {
    pub(super) names: &'a [&'b [u8]],
    end: End,
    count: usize,
}

impl<'a, 'b> Several<'a, 'b> {
    pub(super) fn parse(args: &'a [&'b [u8]]) -> Result<Several<'a, 'b>, CommandError> {
        let keys = args::integer_or(args[0], 1.., "ERR numkeys should be greater than 0")?;
        let keys = usize::try_from(keys).unwrap_or(usize::MAX);
        if keys >= args.len() - 1 {
            return Err(CommandError::Syntax);
        }
        let (names, rest) = args[1..].split_at(keys);
        let end = match rest[0] {
            end if is(end, "MIN") => End::Min,
            end if is(end, "MAX") => End::Max,
            _ => return Err(CommandError::Syntax),
        };
        let count = match &rest[1..] {
            [] => 1,
            [option, count, more @ ..] if is(option, "COUNT") => {
                let count = args::integer_or(count, 1.., "ERR count should be greater than 0")?;
                if !more.is_empty() {
                    return Err(CommandError::Syntax);
                }
                count as usize
            }
            _ => return Err(CommandError::Syntax),
        };
        Ok(Several { names, end, count })
    }

    /// Pops from the key's sorted set and replies; returns whether there was one.
    pub(super) fn try_pop(
        &self,
        ctx: &mut Ctx<'_>,
        db: DbId,
        key: Key<'_>,
    ) -> Result<bool, CommandError> {
        let (tx, reply) = ctx.tx_and_reply();
        let popped = take(tx, db, key, self.end, self.count)?;
        if popped.is_empty() {
            return Ok(false);
        }
        reply.array(2);
        reply.bulk(key.bytes);
        reply.array(popped.len());
        for (member, score) in &popped {
            reply.array(2);
            reply.bulk(member);
            reply.double(*score);
        }
        Ok(true)
    }
}

/// Removes up to `count` members from an end of the key's sorted set, the outermost first.
pub(super) fn take(
    tx: &mut Tx<'_>,
    db: DbId,
    key: Key<'_>,
    end: End,
    count: usize,
) -> Result<Vec<(Vec<u8>, f64)>, CommandError> {
    let mut popped = Vec::new();
    let choose = |set: &SortedSet| {
        let count = count.min(set.len());
        match end {
            End::Min => 0..count,
            End::Max => set.len() - count..set.len(),
        }
    };
    tx.sorted_set_remove_ranks(db, key, choose, |member, score| {
        popped.push((member.to_vec(), score));
    })?;
    if end == End::Max {
        popped.reverse();
    }
    if !popped.is_empty() {
        let event = if end == End::Min { "zpopmin" } else { "zpopmax" };
        tx.notify_removal(EventClass::SORTED_SET, event, db, key);
    }
    Ok(popped)
}

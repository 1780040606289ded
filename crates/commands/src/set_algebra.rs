//! Intersections, unions and differences of sets.

use crate::args::{self, is};
use crate::ctx::Ctx;
use crate::error::{CommandError, CommandResult};
use crate::set::reply_member;
use ladon_engine::types::set::{Member, SetLimits, SetValue};
use ladon_engine::{Key, Tx};
use ladon_model::{DbId, KeyHasher};
use ladon_resp::Reply;

pub(crate) fn sinter(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let (db, keys) = (ctx.db(), keys(ctx, &args[1..]));
    let hasher = ctx.keyspace().hasher();
    let (tx, reply) = ctx.tx_and_reply();
    let Some(sets) = smallest_first(tx, db, &keys)? else {
        reply.set(0);
        return Ok(());
    };
    let mark = reply.begin_set();
    let mut count = 0;
    for member in common(hasher, &sets) {
        reply_member(reply, member);
        count += 1;
    }
    reply.end_set(mark, count);
    Ok(())
}

pub(crate) fn sintercard(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let count = args::integer_or(args[1], 1.., "ERR numkeys should be greater than 0")? as usize;
    if count > args.len() - 2 {
        return Err(CommandError::text("ERR Number of keys can't be greater than number of args"));
    }
    let (names, options) = args[2..].split_at(count);
    let mut limit = 0;
    let mut options = options.iter().copied();
    while let Some(option) = options.next() {
        match options.next() {
            Some(value) if is(option, "LIMIT") => {
                limit = args::integer_or(value, 0.., "ERR LIMIT can't be negative")?;
            }
            _ => return Err(CommandError::Syntax),
        }
    }
    let (db, keys) = (ctx.db(), keys(ctx, names));
    let hasher = ctx.keyspace().hasher();
    let limit = if limit == 0 { usize::MAX } else { limit as usize };
    let found = match smallest_first(ctx.tx(), db, &keys)? {
        Some(sets) => common(hasher, &sets).take(limit).count(),
        None => 0,
    };
    ctx.reply.integer(found as i64);
    Ok(())
}

pub(crate) fn sinterstore(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let (db, keys) = (ctx.db(), keys(ctx, &args[2..]));
    let hasher = ctx.keyspace().hasher();
    let tx = ctx.tx();
    let limits = tx.set_limits();
    let mut result = SetValue::of_ints();
    if let Some(sets) = smallest_first(tx, db, &keys)? {
        if !sets[0].is_of_ints() {
            result = SetValue::packed();
        }
        add_all(&mut result, hasher, limits, common(hasher, &sets));
        result.become_ints(limits);
    }
    store(ctx, args[1], result);
    Ok(())
}

pub(crate) fn sunion(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    combine(ctx, &args[1..], union)
}

pub(crate) fn sdiff(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    combine(ctx, &args[1..], difference)
}

pub(crate) fn sunionstore(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    combine_and_store(ctx, args, union)
}

pub(crate) fn sdiffstore(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    combine_and_store(ctx, args, difference)
}

/// Makes a set of several others; the first parameter is empty and of the right kind.
type Combine = fn(&mut SetValue, &KeyHasher, SetLimits, &[Option<&SetValue>]);

fn combine(ctx: &mut Ctx<'_>, names: &[&[u8]], combine: Combine) -> CommandResult {
    let (db, keys) = (ctx.db(), keys(ctx, names));
    let hasher = ctx.keyspace().hasher();
    let (tx, reply) = ctx.tx_and_reply();
    let limits = tx.set_limits();
    let sets = tx.read_values::<SetValue>(db, &keys)?;
    if let [Some(set)] = sets[..] {
        reply_set(reply, set);
        return Ok(());
    }
    // A table finds members faster than a packed set does.
    let of_ints = sets.iter().flatten().all(|set| set.is_of_ints());
    let mut result = if of_ints { SetValue::of_ints() } else { SetValue::table() };
    combine(&mut result, hasher, limits, &sets);
    reply_set(reply, &result);
    Ok(())
}

fn combine_and_store(ctx: &mut Ctx<'_>, args: &[&[u8]], combine: Combine) -> CommandResult {
    let (db, keys) = (ctx.db(), keys(ctx, &args[2..]));
    let hasher = ctx.keyspace().hasher();
    let tx = ctx.tx();
    let limits = tx.set_limits();
    let mut result = SetValue::of_ints();
    combine(&mut result, hasher, limits, &tx.read_values::<SetValue>(db, &keys)?);
    store(ctx, args[1], result);
    Ok(())
}

fn reply_set(reply: &mut Reply<'_>, set: &SetValue) {
    reply.set(set.len());
    set.members().for_each(|member| reply_member(reply, member));
}

/// Puts a result where it belongs and answers its size.
fn store(ctx: &mut Ctx<'_>, name: &[u8], mut result: SetValue) {
    let (db, key) = (ctx.db(), ctx.key(name));
    let count = result.len();
    result.shrink_to_fit();
    ctx.tx().put_value(db, key, result, 0);
    ctx.reply.integer(count as i64);
}

fn keys<'k>(ctx: &Ctx<'_>, names: &[&'k [u8]]) -> Vec<Key<'k>> {
    names.iter().map(|name| ctx.key(name)).collect()
}

fn add_all<'m>(
    set: &mut SetValue,
    hasher: &KeyHasher,
    limits: SetLimits,
    members: impl Iterator<Item = Member<'m>>,
) {
    members.for_each(|member| {
        member.with_bytes(|bytes| set.add(hasher, limits, bytes));
    });
}

/// The sets in the order in which an intersection asks them; `None` if one of them is missing,
/// which leaves nothing in common.
fn smallest_first<'t>(
    tx: &'t mut Tx<'_>,
    db: DbId,
    keys: &[Key<'_>],
) -> Result<Option<Vec<&'t SetValue>>, CommandError> {
    let sets: Option<Vec<&SetValue>> = tx.read_values::<SetValue>(db, keys)?.into_iter().collect();
    Ok(sets.map(|mut sets| {
        sets.sort_by_key(|set| set.len());
        sets
    }))
}

/// The members of the first set that are in all others too.
fn common<'s>(hasher: &KeyHasher, sets: &[&'s SetValue]) -> impl Iterator<Item = Member<'s>> {
    let (first, others) = (sets[0], &sets[1..]);
    first.members().filter(move |&member| {
        others.iter().all(|set| std::ptr::eq(*set, first) || set.has(hasher, member))
    })
}

fn union(result: &mut SetValue, hasher: &KeyHasher, limits: SetLimits, sets: &[Option<&SetValue>]) {
    for set in sets.iter().flatten() {
        add_all(result, hasher, limits, set.members());
    }
}

/// Either asks all others about each member of the first set, or takes the members of each other
/// set out of a copy of the first: whichever is less work, by Redis' estimate.
fn difference(
    result: &mut SetValue,
    hasher: &KeyHasher,
    limits: SetLimits,
    sets: &[Option<&SetValue>],
) {
    let [Some(first), others @ ..] = sets else { return };
    let mut others: Vec<&SetValue> = others.iter().copied().flatten().collect();
    if others.iter().any(|other| std::ptr::eq(*other, *first)) {
        return;
    }
    // Asking has the better constant, and less to do where there is much in common: it counts
    // half.
    let ask = first.len().saturating_mul(others.len() + 1) / 2;
    let take_out = first.len() + others.iter().map(|set| set.len()).sum::<usize>();
    if ask <= take_out {
        // The largest is the likeliest to know a member.
        others.sort_by_key(|set| std::cmp::Reverse(set.len()));
        let left = |&member: &Member<'_>| !others.iter().any(|set| set.has(hasher, member));
        add_all(result, hasher, limits, first.members().filter(left));
        return;
    }
    add_all(result, hasher, limits, first.members());
    for set in others {
        for member in set.members() {
            member.with_bytes(|bytes| result.remove(hasher, bytes));
        }
        if result.is_empty() {
            return;
        }
    }
}

//! Intersections, unions and differences of sets.

use crate::set::{reply_member, slices_of};
use crate::shared::hyperloglog::Distinct;
use ladon_engine::types::set::{Member, SetLimits, SetValue};
use ladon_engine::{EventClass, Key, Object, Tx, Variant};
use ladon_kernel::command::args::{self, is};
use ladon_kernel::command::error::{CommandError, CommandResult};
use ladon_kernel::ctx::Ctx;
use ladon_kernel::long::large::Large;
use ladon_kernel::long::slices::Headed;
use ladon_record::{DbId, KeyHasher};
use ladon_resp::Reply;

pub(crate) fn sinter(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let (db, keys) = (ctx.db(), keys(ctx, &args[1..]));
    let (hasher, large) = (ctx.keyspace().hasher(), ctx.large_aside());
    let (tx, reply) = ctx.tx_and_reply();
    let Some(sets) = smallest_first(tx, db, &keys)? else {
        reply.set(0);
        return Ok(());
    };
    if large.is_total(sets[0].len(), sets[0].bytes()) {
        reply_aside(ctx, db, &keys, Operation::Intersection);
        return Ok(());
    }
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
    let CountOptions { names, limit, .. } = CountOptions::parse(args, false)?;
    let (db, keys) = (ctx.db(), keys(ctx, names));
    let (hasher, large) = (ctx.keyspace().hasher(), ctx.large_aside());
    let found = match smallest_first(ctx.tx(), db, &keys)? {
        None => 0,
        Some(sets) if large.is_total(sets[0].len().min(limit), sets[0].bytes()) => {
            let frozen = ctx.freeze_all(db, &keys);
            ctx.reply_aside(move |keyspace| {
                let sets = smallest_of(&sets_of(&frozen)).unwrap_or_default();
                let found = common(keyspace.hasher(), &sets).take(limit).count();
                Box::new(Headed::new(move |reply| reply.integer(found as i64), ()))
            });
            return Ok(());
        }
        Some(sets) => common(hasher, &sets).take(limit).count(),
    };
    ctx.reply.integer(found as i64);
    Ok(())
}

pub(crate) fn sunioncard(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let options = CountOptions::parse(args, true)?;
    if options.approximate {
        return estimate(ctx, &options);
    }
    count(ctx, &options, Operation::Union)
}

pub(crate) fn sdiffcard(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    count(ctx, &CountOptions::parse(args, false)?, Operation::Difference)
}

/// Replies with about the size of a union, for which no set of all members is made.
fn estimate(ctx: &mut Ctx<'_>, options: &CountOptions<'_>) -> CommandResult {
    let &CountOptions { names, limit, .. } = options;
    let (db, keys) = (ctx.db(), keys(ctx, names));
    let large = ctx.large_aside();
    let about = move |sets: &[Option<&SetValue>]| {
        let mut distinct = Distinct::new();
        for set in sets.iter().flatten() {
            set.members().for_each(|member| member.with_bytes(|bytes| distinct.add(bytes)));
        }
        usize::try_from(distinct.estimate()).map_or(limit, |about| about.min(limit))
    };
    let sets = ctx.tx().read_values::<SetValue>(db, &keys)?;
    if Operation::Union.is_much(large, &sets) {
        let frozen = ctx.freeze_all(db, &keys);
        ctx.reply_aside(move |_| {
            let found = about(&sets_of(&frozen));
            Box::new(Headed::new(move |reply| reply.integer(found as i64), ()))
        });
        return Ok(());
    }
    let found = about(&sets);
    ctx.reply.integer(found as i64);
    Ok(())
}

/// Replies with the size of a result, at most the limit.
fn count(ctx: &mut Ctx<'_>, options: &CountOptions<'_>, operation: Operation) -> CommandResult {
    let &CountOptions { names, limit, .. } = options;
    let (db, keys) = (ctx.db(), keys(ctx, names));
    let (hasher, large) = (ctx.keyspace().hasher(), ctx.large_aside());
    let tx = ctx.tx();
    let limits = tx.set_limits();
    let sets = tx.read_values::<SetValue>(db, &keys)?;
    let found = match (operation, &sets[..]) {
        // One set decides.
        (_, [set]) => set.map_or(0, SetValue::len),
        (Operation::Union, sets) if sets.iter().flatten().any(|set| set.len() >= limit) => limit,
        (_, sets) if operation.is_much(large, sets) => {
            let frozen = ctx.freeze_all(db, &keys);
            ctx.reply_aside(move |keyspace| {
                let sets = sets_of(&frozen);
                let mut result = room_for_reply(&sets);
                operation.run(&mut result, keyspace.hasher(), limits, &sets);
                let found = result.len().min(limit);
                Box::new(Headed::new(move |reply| reply.integer(found as i64), ()))
            });
            return Ok(());
        }
        (_, sets) => {
            let mut result = room_for_reply(sets);
            operation.run(&mut result, hasher, limits, sets);
            result.len()
        }
    };
    ctx.reply.integer(found.min(limit) as i64);
    Ok(())
}

/// `numkeys key ... [APPROX] [LIMIT limit]`
struct CountOptions<'a> {
    names: &'a [&'a [u8]],
    /// The highest number if there is none.
    limit: usize,
    approximate: bool,
}

impl<'a> CountOptions<'a> {
    fn parse(
        args: &'a [&'a [u8]],
        may_approximate: bool,
    ) -> Result<CountOptions<'a>, CommandError> {
        let count =
            args::integer_or(args[1], 1.., "ERR numkeys should be greater than 0")? as usize;
        if count > args.len() - 2 {
            return Err(CommandError::text(
                "ERR Number of keys can't be greater than number of args",
            ));
        }
        let (names, words) = args[2..].split_at(count);
        let mut options = CountOptions { names, limit: usize::MAX, approximate: false };
        let mut words = words.iter().copied();
        while let Some(word) = words.next() {
            if may_approximate && is(word, "APPROX") {
                options.approximate = true;
                continue;
            }
            match words.next() {
                Some(value) if is(word, "LIMIT") => {
                    let limit = args::integer_or(value, 0.., "ERR LIMIT can't be negative")?;
                    options.limit = if limit == 0 { usize::MAX } else { limit as usize };
                }
                _ => return Err(CommandError::Syntax),
            }
        }
        Ok(options)
    }
}

pub(crate) fn sinterstore(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    combine_and_store(ctx, args, Operation::Intersection)
}

pub(crate) fn sunion(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    combine(ctx, &args[1..], Operation::Union)
}

pub(crate) fn sdiff(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    combine(ctx, &args[1..], Operation::Difference)
}

pub(crate) fn sunionstore(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    combine_and_store(ctx, args, Operation::Union)
}

pub(crate) fn sdiffstore(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    combine_and_store(ctx, args, Operation::Difference)
}

/// The operation on several sets.
#[derive(Clone, Copy)]
enum Operation {
    Union,
    Intersection,
    Difference,
}

impl Operation {
    /// Computes the result into `result`, which is empty and of the right kind.
    fn run(
        self,
        result: &mut SetValue,
        hasher: &KeyHasher,
        limits: SetLimits,
        sets: &[Option<&SetValue>],
    ) {
        match self {
            Operation::Union => union(result, hasher, limits, sets),
            Operation::Intersection => intersection(result, hasher, limits, sets),
            Operation::Difference => difference(result, hasher, limits, sets),
        }
    }

    /// Whether the operation is a lot of work.
    fn is_much(self, large: Large, sets: &[Option<&SetValue>]) -> bool {
        let sizes = sets.iter().map(|set| set.map_or((0, 0), |set| (set.len(), set.bytes())));
        let (elements, bytes) = match self {
            // Only the smallest set is traversed.
            Operation::Intersection => sizes.min().unwrap_or_default(),
            _ => sizes.fold((0, 0), |sum, size| (sum.0 + size.0, sum.1 + size.1)),
        };
        large.is_total(elements, bytes)
    }
}

fn combine(ctx: &mut Ctx<'_>, names: &[&[u8]], operation: Operation) -> CommandResult {
    let (db, keys) = (ctx.db(), keys(ctx, names));
    let (hasher, large) = (ctx.keyspace().hasher(), ctx.large_aside());
    let (tx, reply) = ctx.tx_and_reply();
    let limits = tx.set_limits();
    let sets = tx.read_values::<SetValue>(db, &keys)?;
    if operation.is_much(large, &sets) {
        reply_aside(ctx, db, &keys, operation);
        return Ok(());
    }
    if let [Some(set)] = sets[..] {
        reply_set(reply, set);
        return Ok(());
    }
    let mut result = room_for_reply(&sets);
    operation.run(&mut result, hasher, limits, &sets);
    reply_set(reply, &result);
    Ok(())
}

/// A table finds members faster than a packed set does.
fn room_for_reply(sets: &[Option<&SetValue>]) -> SetValue {
    let of_ints = sets.iter().flatten().all(|set| set.is_of_ints());
    if of_ints { SetValue::of_ints() } else { SetValue::table() }
}

/// As `combine`, after the locks are released.
fn reply_aside(ctx: &mut Ctx<'_>, db: DbId, keys: &[Key<'_>], operation: Operation) {
    let limits = ctx.tx().set_limits();
    let mut frozen = ctx.freeze_all(db, keys);
    ctx.reply_aside(move |keyspace| {
        if let [Some(Object::Set(_))] = frozen[..]
            && let Some(Some(Object::Set(set))) = frozen.pop()
        {
            return slices_of(set);
        }
        let sets = sets_of(&frozen);
        let mut result = room_for_reply(&sets);
        operation.run(&mut result, keyspace.hasher(), limits, &sets);
        slices_of(result)
    });
}

fn sets_of(frozen: &[Option<Object>]) -> Vec<Option<&SetValue>> {
    frozen.iter().map(|object| SetValue::of(object.as_ref()?)).collect()
}

fn combine_and_store(ctx: &mut Ctx<'_>, args: &[&[u8]], operation: Operation) -> CommandResult {
    let (db, keys) = (ctx.db(), keys(ctx, &args[2..]));
    if let Some(count) = ctx.put_computed(db, args[1])? {
        notify_store(ctx, operation, args[1], count);
        ctx.reply.integer(count as i64);
        return Ok(());
    }
    let (hasher, large) = (ctx.keyspace().hasher(), ctx.large_store());
    let tx = ctx.tx();
    let limits = tx.set_limits();
    let sets = tx.read_values::<SetValue>(db, &keys)?;
    if operation.is_much(large, &sets) {
        let frozen = ctx.freeze_all(db, &keys);
        ctx.store_aside(&keys, (db, args[1], 0), move |keyspace| {
            let mut result = SetValue::of_ints();
            operation.run(&mut result, keyspace.hasher(), limits, &sets_of(&frozen));
            result.shrink_to_fit();
            Ok(result.into_object())
        });
        return Ok(());
    }
    let mut result = SetValue::of_ints();
    operation.run(&mut result, hasher, limits, &sets);
    store(ctx, operation, args[1], result);
    Ok(())
}

fn reply_set(reply: &mut Reply<'_>, set: &SetValue) {
    reply.set(set.len());
    set.members().for_each(|member| reply_member(reply, member));
}

/// Stores a result and replies with its size.
fn store(ctx: &mut Ctx<'_>, operation: Operation, name: &[u8], mut result: SetValue) {
    let (db, key) = (ctx.db(), ctx.key(name));
    let count = result.len();
    result.shrink_to_fit();
    ctx.tx().put_value(db, key, result, 0);
    notify_store(ctx, operation, name, count);
    ctx.reply.integer(count as i64);
}

/// Notes the event of a result with `count` members that was stored.
fn notify_store(ctx: &mut Ctx<'_>, operation: Operation, name: &[u8], count: usize) {
    let (db, key) = (ctx.db(), ctx.key(name));
    let event = match operation {
        Operation::Union => "sunionstore",
        Operation::Intersection => "sinterstore",
        Operation::Difference => "sdiffstore",
    };
    if count > 0 {
        ctx.tx().notify(EventClass::SET, event, db, key);
    }
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

/// The sets in the order in which an intersection reads them; `None` if one of them is missing, so
/// that the intersection is empty.
fn smallest_first<'t>(
    tx: &'t mut Tx<'_>,
    db: DbId,
    keys: &[Key<'_>],
) -> Result<Option<Vec<&'t SetValue>>, CommandError> {
    Ok(smallest_of(&tx.read_values::<SetValue>(db, keys)?))
}

fn smallest_of<'s>(sets: &[Option<&'s SetValue>]) -> Option<Vec<&'s SetValue>> {
    let sets: Option<Vec<&SetValue>> = sets.iter().copied().collect();
    sets.map(|mut sets| {
        sets.sort_by_key(|set| set.len());
        sets
    })
}

/// The members of the first set that are in all others too.
fn common<'s>(hasher: &KeyHasher, sets: &[&'s SetValue]) -> impl Iterator<Item = Member<'s>> {
    let (first, others) = (sets[0], &sets[1..]);
    first.members().filter(move |&member| {
        others.iter().all(|set| std::ptr::eq(*set, first) || set.has(hasher, member))
    })
}

fn intersection(
    result: &mut SetValue,
    hasher: &KeyHasher,
    limits: SetLimits,
    sets: &[Option<&SetValue>],
) {
    let Some(sets) = smallest_of(sets) else { return };
    // A result that goes into a reply has enough capacity.
    if !sets[0].is_of_ints() && result.is_of_ints() {
        *result = SetValue::packed();
    }
    add_all(result, hasher, limits, common(hasher, &sets));
    result.become_ints(limits);
}

fn union(result: &mut SetValue, hasher: &KeyHasher, limits: SetLimits, sets: &[Option<&SetValue>]) {
    for set in sets.iter().flatten() {
        add_all(result, hasher, limits, set.members());
    }
}

/// Either asks all others about each member of the first set, or removes the members of each other
/// set from a copy of the first: whichever is less work, by Redis' estimate.
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
    // Asking has the better constant, and less to do if many members are common: it counts half.
    let ask = first.len().saturating_mul(others.len() + 1) / 2;
    let take_out = first.len() + others.iter().map(|set| set.len()).sum::<usize>();
    if ask <= take_out {
        // The largest set is the most likely to contain a member.
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

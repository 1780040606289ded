//! `SORT` and `SORT_RO`: the elements of a list, a set or a sorted set in another order.
//!
//! With a pattern in BY or GET the command reaches for keys that follow from the elements; it then
//! holds every lock from the beginning, so that it is atomic as it is without.

mod elements;
mod options;
mod order;
mod pattern;

pub(crate) use options::target_position;

use crate::ctx::Ctx;
use crate::error::CommandResult;
use crate::spec::{CommandSpec, Flags, Handler, KeySpec, LockNeed, Part};
use elements::Elements;
use ladon_engine::Tx;
use ladon_engine::types::list::ListValue;
use ladon_model::DbId;
use options::Options;
use pattern::Pattern;
use std::ops::Range;

const READ: Flags = Flags::READONLY.or(Flags::MOVABLEKEYS);
const WRITE: Flags = Flags::WRITE.or(Flags::DENYOOM).or(Flags::MOVABLEKEYS);

pub(crate) const COMMANDS: &[CommandSpec] = &[
    command("sort", WRITE, KeySpec::Sort, |ctx, args| run(ctx, Options::parse(args, true)?, args)),
    command("sort_ro", READ, KeySpec::FIRST, |ctx, args| {
        run(ctx, Options::parse(args, false)?, args)
    }),
];

const fn command(
    name: &'static str,
    flags: Flags,
    keys: KeySpec,
    handler: crate::spec::HandlerFn,
) -> CommandSpec {
    CommandSpec {
        name,
        arity: -2,
        flags,
        keys,
        part: Part::None,
        locks: LockNeed::KeysUnless(options::reaches_further),
        handler: Handler::Run(handler),
        subcommands: &[],
    }
}

fn run(ctx: &mut Ctx<'_>, mut options: Options<'_>, args: &[&[u8]]) -> CommandResult {
    let db = ctx.db();
    let key = ctx.key(args[1]);
    let tx = ctx.tx();
    let Some(elements) = Elements::load(tx, db, key)? else {
        return finish(ctx, db, &options, &Elements::default(), &[]);
    };
    if elements.is_unordered && options.keeps_order() && options.store.is_some() {
        // What is stored must not depend on how a set happens to lie in memory.
        (options.by, options.alpha) = (None, true);
    }
    let order = if options.keeps_order() {
        elements.in_order(options.descending)
    } else {
        order::sorted(tx, db, &elements, &options)?
    };
    let range = limited(order.len(), options.limit);
    finish(ctx, db, &options, &elements, &order[range])
}

/// The part of so many elements that `LIMIT` leaves.
fn limited(length: usize, (offset, count): (i64, i64)) -> Range<usize> {
    let start = usize::try_from(offset).unwrap_or(0).min(length);
    let count = usize::try_from(count).unwrap_or(length);
    start..length.min(start.saturating_add(count))
}

/// Replies with the elements, or with what GET names for each, or stores it.
fn finish(
    ctx: &mut Ctx<'_>,
    db: DbId,
    options: &Options<'_>,
    elements: &Elements,
    order: &[usize],
) -> CommandResult {
    let count = order.len() * options.get.len().max(1);
    let (tx, reply) = ctx.tx_and_reply();
    let Some(target) = options.store else {
        reply.array(count);
        for &at in order {
            let element = elements.get(at);
            if options.get.is_empty() {
                reply.bulk(element);
            }
            for pattern in &options.get {
                pattern.look_up(tx, db, element, |found| match found {
                    Some(value) => reply.bulk(value),
                    None => reply.null(),
                });
            }
        }
        return Ok(());
    };
    let list = listed(tx, db, options, elements, order);
    let target = tx.key(target);
    // An empty list removes what was there.
    tx.put_value(db, target, list, 0);
    ctx.reply.integer(count as i64);
    Ok(())
}

fn listed(
    tx: &mut Tx<'_>,
    db: DbId,
    options: &Options<'_>,
    elements: &Elements,
    order: &[usize],
) -> ListValue {
    let limits = tx.env().limits.of_lists();
    let mut list = ListValue::new();
    let patterns: &[Pattern<'_>] =
        if options.get.is_empty() { &[Pattern::Element] } else { &options.get };
    for &at in order {
        for pattern in patterns {
            pattern.look_up(tx, db, elements.get(at), |found| {
                list.append(limits, found.unwrap_or_default());
            });
        }
    }
    list
}

#[cfg(test)]
mod tests {
    use super::limited;

    #[test]
    fn limits_are_cut_to_what_there_is() {
        for (limit, expected) in [
            ((0, -1), 0..5),
            ((0, 2), 0..2),
            ((1, 2), 1..3),
            ((-3, 2), 0..2),
            ((4, 9), 4..5),
            ((5, 1), 5..5),
            ((9, 1), 5..5),
            ((2, 0), 2..2),
            ((2, -7), 2..5),
            ((i64::MAX, i64::MAX), 5..5),
            ((1, i64::MAX), 1..5),
        ] {
            assert_eq!(limited(5, limit), expected, "{limit:?}");
        }
    }
}

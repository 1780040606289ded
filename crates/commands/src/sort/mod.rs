//! `SORT` and `SORT_RO`: the elements of a list, a set or a sorted set in another order.
//!
//! With a pattern in BY or GET, the command reads keys whose names follow from the elements. It
//! then holds every lock from the beginning, so that it stays atomic. Without one, many elements
//! are sorted aside (`aside.rs`).

mod elements;
mod options;
mod order;
mod pattern;
mod sorted;

use elements::Elements;
use ladon_engine::{EventClass, Key, Object, ValueRef, Variant};
use ladon_kernel::access;
use ladon_kernel::command::error::{CommandError, CommandResult};
use ladon_kernel::command::spec::{Code, KeyPositions, LockNeed};
use ladon_kernel::ctx::Ctx;
use ladon_kernel::long::large::Large;
use ladon_kernel::long::slices::Headed;
use ladon_record::DbId;
use options::Options;
use pattern::{Pattern, Source};
use sorted::Sorted;

const LOCKS: LockNeed = LockNeed::KeysUnless(options::reaches_further);

pub(crate) const COMMANDS: &[Code] = &[
    Code::with_locks("sort", LOCKS, |ctx, args| run(ctx, Options::parse(args, true)?, args))
        .with_keys(KeyPositions::FirstAndOption(options::target_position)),
    Code::with_locks("sort_ro", LOCKS, |ctx, args| run(ctx, Options::parse(args, false)?, args)),
];

fn run(ctx: &mut Ctx<'_>, mut options: Options<'_>, args: &[&[u8]]) -> CommandResult {
    check_rights(ctx, &options, args)?;
    options.hides_order |= ctx.local.script.is_some();
    let (db, key, store) = (ctx.db(), ctx.key(args[1]), options.store);
    if let Some(target) = store
        && let Some(count) = ctx.put_computed(db, target)?
    {
        notify_store(ctx, db, target, count);
        ctx.reply.integer(count as i64);
        return Ok(());
    }
    let large = if store.is_some() { ctx.large_store() } else { ctx.large_aside() };
    let number = ctx.session.db;
    let (tx, reply) = ctx.tx_and_reply();
    let elements = match tx.read(db, key).map(|entry| entry.value()) {
        None => Elements::default(),
        Some(ValueRef::Object(object)) => {
            if is_much(large, object, options.get.len())
                && let Some(alone) = options.without_keys()
            {
                return run_aside(ctx, db, key, store, alone);
            }
            Elements::of(object).ok_or(CommandError::WrongType)?
        }
        Some(_) => return Err(CommandError::WrongType),
    };
    let limits = tx.env().limits.of_lists();
    let source = &mut Source::Data { tx, db, number };
    let mut sorted = Sorted::new(source, elements, options)?;
    let Some(target) = store else {
        reply.array(sorted.count());
        while sorted.write_next(source, reply) {}
        return Ok(());
    };
    let list = sorted.into_list(source, limits);
    let (key, count) = (ctx.key(target), list.len());
    // An empty list removes what was there.
    ctx.tx().put_value(db, key, list, 0);
    notify_store(ctx, db, target, count);
    ctx.reply.integer(count as i64);
    Ok(())
}

/// Patterns reach keys that only the data tells, so the user has to be one who may read every key.
#[inline]
fn check_rights(ctx: &Ctx<'_>, options: &Options<'_>, args: &[&[u8]]) -> CommandResult {
    if ctx.session.access.user.is_unlimited() {
        return Ok(());
    }
    let option = match (&options.by, options.get.as_slice()) {
        (Some(Pattern::Keys { .. }), _) => "BY",
        (_, [_, ..]) => "GET",
        _ => return Ok(()),
    };
    if access::may_read_every_key(ctx.node, ctx.session, args) {
        return Ok(());
    }
    Err(CommandError::err(format_args!(
        "{option} option of SORT denied due to insufficient ACL permissions."
    )))
}

/// Notes the event of a list with `count` elements that was stored.
fn notify_store(ctx: &mut Ctx<'_>, db: DbId, target: &[u8], count: usize) {
    let key = ctx.key(target);
    if count > 0 {
        ctx.tx().notify(EventClass::LIST, "sortstore", db, key);
    }
}

/// Whether a value has many elements to sort, or to answer with for as many GETs.
fn is_much(large: Large, object: &Object, gets: usize) -> bool {
    let times = gets.max(1);
    match object {
        Object::String(_) | Object::Hash(_) => false,
        _ => {
            large.is_total(object.len().saturating_mul(times), object.bytes().saturating_mul(times))
        }
    }
}

/// As `run`, after the locks are released.
fn run_aside(
    ctx: &mut Ctx<'_>,
    db: DbId,
    key: Key<'_>,
    store: Option<&[u8]>,
    options: Options<'static>,
) -> CommandResult {
    let limits = ctx.tx().env().limits.of_lists();
    let frozen = ctx.tx().freeze_object(db, key).ok_or(CommandError::WrongType)?;
    let sort = move || {
        let elements = Elements::of(&frozen).ok_or(CommandError::WrongType)?;
        Sorted::new(&mut Source::Elements, elements, options)
    };
    match store {
        Some(target) => ctx.store_aside(&[key], (db, target, 0), move |_| {
            Ok(sort()?.into_list(&mut Source::Elements, limits).into_object())
        }),
        None => ctx.reply_aside(move |_| match sort() {
            Ok(sorted) => {
                let count = sorted.count();
                Box::new(Headed::new(move |reply| reply.array(count), sorted))
            }
            Err(error) => Box::new(Headed::new(move |reply| reply.error(error.to_string()), ())),
        }),
    }
    Ok(())
}

//! Writing one string: SET with its options, SETEX, PSETEX, SETNX, GETSET.

use super::compare::Comparison;
use super::expiry::{Expiry, Unit};
use crate::shared::long_string::{answer, reply_rest};
use ladon_engine::types::string;
use ladon_engine::{EntryRef, EventClass, Key, ValueRef};
use ladon_kernel::command::args::is;
use ladon_kernel::command::error::{CommandError, CommandResult};
use ladon_kernel::ctx::Ctx;

/// When `SET` may write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Condition<'a> {
    Always,
    /// `NX`: the key does not exist.
    Missing,
    /// `XX`: the key exists.
    Existing,
    /// `IFEQ` and its relatives: the key's string compares so.
    Compares(Comparison<'a>),
}

impl Condition<'_> {
    fn allows(self, old: Option<ValueRef<'_>>) -> Result<bool, CommandError> {
        Ok(match self {
            Condition::Always => true,
            Condition::Missing => old.is_none(),
            Condition::Existing => old.is_some(),
            Condition::Compares(comparison) => comparison.holds(old)?,
        })
    }
}

struct Options<'a> {
    condition: Condition<'a>,
    get: bool,
    keep_ttl: bool,
    expiry: Option<Expiry<'a>>,
}

/// What happens to the key: it is read only if an argument asks for that.
pub(super) fn key_flags(args: &[&[u8]]) -> &'static [&'static str] {
    let options = args.get(3..).unwrap_or_default();
    match options.iter().any(|option| is(option, "get")) {
        true => &["RW", "access", "update"],
        false => &["OW", "update"],
    }
}

pub(super) fn set(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    if args.len() > 3 {
        return set_with_options(ctx, args);
    }
    if goes_aside(ctx, args, 2, 0, &[]) {
        return Ok(());
    }
    put(ctx, args, 2, 0)?;
    ctx.reply.ok();
    Ok(())
}

/// Whether the value, which is the argument at `at`, is so long that its memory is taken over and
/// it is logged aside. The handler then ends, and runs again. The expiry depends on what is
/// `watched`.
#[inline]
fn goes_aside(
    ctx: &mut Ctx<'_>,
    args: &[&[u8]],
    at: usize,
    expire_at: u64,
    watched: &[Key<'_>],
) -> bool {
    args[at].len() > string::INLINE_BYTES_MAX && long_goes_aside(ctx, args, at, expire_at, watched)
}

#[cold]
fn long_goes_aside(
    ctx: &mut Ctx<'_>,
    args: &[&[u8]],
    at: usize,
    expire_at: u64,
    watched: &[Key<'_>],
) -> bool {
    let goes = ctx.session.aside.is_none() && ctx.large_store().is_long(args[at].len());
    if goes {
        ctx.put_argument_aside(args[1], at, expire_at, watched);
    }
    goes
}

/// Stores the value, which may have been made aside, with the expiry that it had then.
#[inline]
fn put(ctx: &mut Ctx<'_>, args: &[&[u8]], at: usize, expire_at: u64) -> CommandResult {
    let (db, key) = (ctx.db(), ctx.first_key(args));
    let is_long = args[at].len() > string::INLINE_BYTES_MAX;
    // If the prepared value does not fit any more, the argument is still there.
    if !is_long || ctx.put_computed(db, args[1])?.is_none() {
        ctx.tx().put_string(db, key, args[at], expire_at);
    }
    ctx.tx().notify(EventClass::STRING, "set", db, key);
    Ok(())
}

fn set_with_options(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let Options { condition, get, keep_ttl, expiry } = parse(&args[3..])?;
    let mut expire_at = expiry.map_or(Ok(0), |expiry| expiry.at(ctx.now_ms, "set"))?;
    let (db, key) = (ctx.db(), ctx.first_key(args));
    if keep_ttl {
        expire_at = ctx.tx().get(db, key).map_or(0, EntryRef::expire_at);
    }
    let watched = if keep_ttl { &[key][..] } else { &[] };
    if goes_aside(ctx, args, 2, expire_at, watched) {
        return Ok(());
    }
    let (tx, reply, later) = ctx.tx_reply_and_later();
    let mut rest = None;
    if get {
        rest = answer(reply, tx.read(db, key).map(EntryRef::value), &later)?;
    }
    if condition != Condition::Always {
        let old = tx.get(db, key);
        if !condition.allows(old.map(EntryRef::value))? {
            if !get {
                reply.null();
            }
            reply_rest(ctx, rest);
            return Ok(());
        }
    }
    put(ctx, args, 2, expire_at)?;
    if expiry.is_some() {
        ctx.tx().notify(EventClass::GENERIC, "expire", db, key);
    }
    if !get {
        ctx.reply.ok();
    }
    reply_rest(ctx, rest);
    Ok(())
}

fn parse<'a>(mut words: &[&'a [u8]]) -> Result<Options<'a>, CommandError> {
    use Condition::{Always, Compares, Existing, Missing};
    let mut options = Options { condition: Always, get: false, keep_ttl: false, expiry: None };
    while let [word, rest @ ..] = words {
        words = rest;
        let (condition, next) = (options.condition, rest.first().copied());
        if is(word, "nx") && matches!(condition, Always | Missing) {
            options.condition = Missing;
        } else if is(word, "xx") && matches!(condition, Always | Existing) {
            options.condition = Existing;
        } else if is(word, "get") {
            options.get = true;
        } else if is(word, "keepttl") && options.expiry.is_none() {
            options.keep_ttl = true;
        } else if condition == Always
            && let Some(argument) = next
            && let Some(comparison) = Comparison::parse(word, argument)?
        {
            options.condition = Compares(comparison);
            words = &rest[1..];
        } else if !options.keep_ttl
            && let Some(expiry) = Expiry::parse(word, next, options.expiry)
        {
            options.expiry = Some(expiry);
            words = &rest[1..];
        } else {
            return Err(CommandError::Syntax);
        }
    }
    Ok(options)
}

pub(super) fn setex(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    set_with_expiry(ctx, args, Unit::Ex, "setex")
}

pub(super) fn psetex(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    set_with_expiry(ctx, args, Unit::Px, "psetex")
}

fn set_with_expiry(ctx: &mut Ctx<'_>, args: &[&[u8]], unit: Unit, command: &str) -> CommandResult {
    let expire_at = Expiry::new(unit, args[2]).at(ctx.now_ms, command)?;
    if goes_aside(ctx, args, 3, expire_at, &[]) {
        return Ok(());
    }
    put(ctx, args, 3, expire_at)?;
    let (db, key) = (ctx.db(), ctx.first_key(args));
    ctx.tx().notify(EventClass::GENERIC, "expire", db, key);
    ctx.reply.ok();
    Ok(())
}

pub(super) fn setnx(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    if goes_aside(ctx, args, 2, 0, &[]) {
        return Ok(());
    }
    let (db, key) = (ctx.db(), ctx.first_key(args));
    let is_new = ctx.tx().get(db, key).is_none();
    if is_new {
        put(ctx, args, 2, 0)?;
    }
    ctx.reply.integer(i64::from(is_new));
    Ok(())
}

pub(super) fn getset(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    if goes_aside(ctx, args, 2, 0, &[]) {
        return Ok(());
    }
    super::get::get(ctx, args)?;
    put(ctx, args, 2, 0)
}

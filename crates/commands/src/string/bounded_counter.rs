//! INCREX: a counter with bounds and an expiry.
//!
//! Without `SATURATE` a result out of bounds changes nothing, the expiry included; with it the
//! result is the bound. `BYINT` counts in 64 bits, `BYFLOAT` as `INCRBYFLOAT` does.

use super::expiry::Expiry;
use ladon_engine::EventClass;
use ladon_engine::types::string;
use ladon_kernel::command::args::is;
use ladon_kernel::command::error::{CommandError, CommandResult};
use ladon_kernel::ctx::Ctx;
use ladon_resp::{LongDouble, Reply, parse_i64};

/// The arguments after the key, of which numbers are not parsed yet.
#[derive(Default)]
struct Options<'a> {
    by_int: Option<&'a [u8]>,
    by_float: Option<&'a [u8]>,
    low: Option<&'a [u8]>,
    high: Option<&'a [u8]>,
    saturate: bool,
    expiry: Option<Expiry<'a>>,
    persist: bool,
    /// Only a key without an expiry gets one.
    if_no_expiry: bool,
    /// Whether the key must exist, if it matters (Valkey).
    exists: Option<bool>,
}

impl<'a> Options<'a> {
    /// As in Redis, none of them may come twice.
    fn parse(mut words: &[&'a [u8]]) -> Result<Options<'a>, CommandError> {
        let mut options = Options::default();
        while let [word, rest @ ..] = words {
            words = rest;
            if is(word, "saturate") && !options.saturate {
                options.saturate = true;
            } else if is(word, "enx") && !options.if_no_expiry {
                options.if_no_expiry = true;
            } else if is(word, "persist") && !options.persist {
                options.persist = true;
            } else if (is(word, "nx") || is(word, "xx")) && options.exists.is_none() {
                options.exists = Some(is(word, "xx"));
            } else {
                let value = rest.first().copied().ok_or(CommandError::Syntax)?;
                words = &rest[1..];
                if let Some(expiry) = Expiry::parse(word, Some(value), None) {
                    once(&mut options.expiry, expiry)?;
                    continue;
                }
                let option = match word.len() {
                    5 if is(word, "byint") => &mut options.by_int,
                    7 if is(word, "byfloat") => &mut options.by_float,
                    6 if is(word, "lbound") => &mut options.low,
                    6 if is(word, "ubound") => &mut options.high,
                    _ => return Err(CommandError::Syntax),
                };
                once(option, value)?;
            }
        }
        let expires = options.expiry.is_some();
        if options.by_int.is_some() && options.by_float.is_some()
            || options.persist && (expires || options.if_no_expiry)
        {
            return Err(CommandError::Syntax);
        }
        if options.if_no_expiry && !expires {
            return Err(CommandError::text("ERR ENX flag requires an expiration"));
        }
        Ok(options)
    }
}

fn once<T>(option: &mut Option<T>, value: T) -> Result<(), CommandError> {
    match option.replace(value) {
        None => Ok(()),
        Some(_) => Err(CommandError::Syntax),
    }
}

/// What may be counted in.
trait Number: Copy + PartialOrd {
    const EVENT: &'static str;
    /// As in Redis, it stays text even if it is an integer.
    const IS_TEXT: bool;
    const ZERO: Self;
    const MIN: Self;
    const MAX: Self;
    /// Errors: of an increment, of the bounds, of a value, and of a saturated increment.
    const INCREMENT: CommandError;
    const LOW: CommandError;
    const HIGH: CommandError;
    const VALUE: CommandError;
    const TOO_FAR: CommandError;

    fn parse(text: &[u8]) -> Option<Self>;
    /// `None` beyond the limits of the type.
    fn add(self, other: Self) -> Option<Self>;
    /// As `add`.
    fn subtract(self, other: Self) -> Option<Self>;
    fn to_text(self) -> Vec<u8>;
    fn answer(self, reply: &mut Reply<'_>);
    /// Numbers that can be written but not counted in, and what is said of them as an increment and
    /// as a value.
    fn unfit(self) -> Option<[CommandError; 2]>;
}

impl Number for i64 {
    const EVENT: &'static str = "incrby";
    const IS_TEXT: bool = false;
    const ZERO: i64 = 0;
    const MIN: i64 = i64::MIN;
    const MAX: i64 = i64::MAX;
    const INCREMENT: CommandError =
        CommandError::text("ERR Increment is not an integer or out of range");
    const LOW: CommandError = CommandError::text("ERR LBOUND is not an integer or out of range");
    const HIGH: CommandError = CommandError::text("ERR UBOUND is not an integer or out of range");
    const VALUE: CommandError = CommandError::NotInteger;
    const TOO_FAR: CommandError = CommandError::text("ERR applied increment would overflow");

    fn parse(text: &[u8]) -> Option<i64> {
        parse_i64(text)
    }

    fn add(self, other: i64) -> Option<i64> {
        self.checked_add(other)
    }

    fn subtract(self, other: i64) -> Option<i64> {
        self.checked_sub(other)
    }

    fn to_text(self) -> Vec<u8> {
        itoa::Buffer::new().format(self).as_bytes().to_vec()
    }

    fn answer(self, reply: &mut Reply<'_>) {
        reply.integer(self);
    }

    fn unfit(self) -> Option<[CommandError; 2]> {
        None
    }
}

impl Number for LongDouble {
    const EVENT: &'static str = "incrbyfloat";
    const IS_TEXT: bool = true;
    const ZERO: LongDouble = LongDouble::ZERO;
    const MIN: LongDouble = LongDouble::MIN;
    const MAX: LongDouble = LongDouble::MAX;
    const INCREMENT: CommandError = CommandError::text("ERR Increment is not a valid float");
    const LOW: CommandError = CommandError::text("ERR LBOUND is not a valid float");
    const HIGH: CommandError = CommandError::text("ERR UBOUND is not a valid float");
    const VALUE: CommandError = CommandError::NotFloat;
    const TOO_FAR: CommandError =
        CommandError::text("ERR applied increment would produce Infinity");

    fn parse(text: &[u8]) -> Option<LongDouble> {
        LongDouble::parse(text)
    }

    fn add(self, other: LongDouble) -> Option<LongDouble> {
        self.checked_add(other).filter(|sum| sum.is_finite())
    }

    fn subtract(self, other: LongDouble) -> Option<LongDouble> {
        Number::add(self, -other)
    }

    fn to_text(self) -> Vec<u8> {
        let mut text = Vec::with_capacity(32);
        self.write_human(&mut text);
        text
    }

    fn answer(self, reply: &mut Reply<'_>) {
        reply.long_double(self);
    }

    fn unfit(self) -> Option<[CommandError; 2]> {
        (!self.is_finite()).then_some([
            CommandError::text("ERR BYFLOAT increment cannot be Infinity"),
            CommandError::text("ERR value cannot be Infinity"),
        ])
    }
}

pub(super) fn increx(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let options = Options::parse(&args[2..])?;
    match options.by_float {
        Some(increment) => count::<LongDouble>(ctx, args, increment, &options),
        None => count::<i64>(ctx, args, options.by_int.unwrap_or(b"1"), &options),
    }
}

fn count<N: Number>(
    ctx: &mut Ctx<'_>,
    args: &[&[u8]],
    increment: &[u8],
    options: &Options<'_>,
) -> CommandResult {
    let increment = N::parse(increment).ok_or(N::INCREMENT)?;
    if let Some([error, _]) = increment.unfit() {
        return Err(error);
    }
    // Infinity bounds nothing.
    let low = options.low.map_or(Some(N::MIN), N::parse).ok_or(N::LOW)?;
    let low = if low < N::MIN { N::MIN } else { low };
    let high = options.high.map_or(Some(N::MAX), N::parse).ok_or(N::HIGH)?;
    let high = if high > N::MAX { N::MAX } else { high };
    if low > high {
        return Err(CommandError::text("ERR LBOUND can't be greater than UBOUND"));
    }
    let (db, key, now_ms) = (ctx.db(), ctx.first_key(args), ctx.now_ms);
    let new_expiry = options.expiry.map(|expiry| expiry.at(now_ms, "increx")).transpose()?;

    let (tx, reply) = ctx.tx_and_reply();
    let (old, exists, expire_at) = match tx.get(db, key) {
        Some(entry) => {
            let bytes = string::bytes(entry.value()).ok_or(CommandError::WrongType)?;
            (N::parse(&bytes).ok_or(N::VALUE)?, true, entry.expire_at())
        }
        None => (N::ZERO, false, 0),
    };
    if let Some([_, error]) = old.unfit() {
        return Err(error);
    }
    let sum = old.add(increment);
    let within = sum.filter(|sum| *sum >= low && *sum <= high);
    let counted = match within {
        _ if options.exists.is_some_and(|wanted| wanted != exists) => None,
        Some(sum) => Some((sum, increment)),
        None if options.saturate => {
            let is_above = sum.map_or(increment > N::ZERO, |sum| sum > high);
            let bound = if is_above { high } else { low };
            Some((bound, bound.subtract(old).ok_or(N::TOO_FAR)?))
        }
        None => None,
    };
    let (value, applied) = counted.unwrap_or((old, N::ZERO));
    reply.array(2);
    value.answer(reply);
    applied.answer(reply);
    if counted.is_none() {
        return Ok(());
    }

    let new_expiry = new_expiry.filter(|_| !options.if_no_expiry || expire_at == 0);
    if new_expiry.is_some_and(|at| at <= now_ms) {
        if tx.delete(db, key) {
            tx.notify(EventClass::GENERIC, "del", db, key);
        }
        return Ok(());
    }
    let kept = if options.persist { 0 } else { expire_at };
    let (text, expire_at_new) = (value.to_text(), new_expiry.unwrap_or(kept));
    if N::IS_TEXT {
        tx.put_text(db, key, &text, expire_at_new);
    } else {
        tx.put_number(db, key, &text, expire_at_new);
    }
    tx.notify(EventClass::STRING, N::EVENT, db, key);
    if new_expiry.is_some() {
        tx.notify(EventClass::GENERIC, "expire", db, key);
    } else if kept != expire_at {
        tx.notify(EventClass::GENERIC, "persist", db, key);
    }
    Ok(())
}

//! `RESTORE`: a value out of the bytes that `DUMP` made, here, on Redis or on Valkey.
//!
//! A few bytes may stand for many elements. So the payload is read under the lock only as far as
//! that is short; a longer one is read aside, by a job to which the request lends it.

use ladon_engine::types::list::ListValue;
use ladon_engine::{EventClass, Keyspace, Object};
use ladon_kernel::command::args::{integer, is};
use ladon_kernel::command::error::{CommandError, CommandResult};
use ladon_kernel::ctx::Ctx;
use ladon_rdb::payload::{self, BodyElements};
use ladon_transfer::{Builder, Built};

const WRONG_PAYLOAD: CommandError =
    CommandError::text("ERR DUMP payload version or checksum are wrong");
const BAD_FORMAT: CommandError = CommandError::text("ERR Bad data format");
const BUSY_KEY: CommandError = CommandError::text("BUSYKEY Target key name already exists.");
/// Another client changed the key or swapped the databases while the payload was read aside.
const MOVED_ON: CommandError = CommandError::text(
    "ERR the key or its database changed while the payload was read; nothing was restored",
);

/// Bytes of a payload that may be one element: `c0`, and the byte of a number.
const ELEMENT_BYTES: usize = 2;

struct Options {
    replace: bool,
    /// Unix milliseconds; 0 for never.
    expire_at: u64,
    idle_s: Option<u64>,
    frequency: Option<u8>,
}

/// What the options say without the time to live, which Redis looks at later.
fn parse(mut words: &[&[u8]]) -> Result<(Options, bool), CommandError> {
    let mut options = Options { replace: false, expire_at: 0, idle_s: None, frequency: None };
    let mut is_absolute = false;
    while let [word, rest @ ..] = words {
        words = rest;
        if is(word, "replace") {
            options.replace = true;
        } else if is(word, "absttl") {
            is_absolute = true;
        } else if is(word, "idletime")
            && let [seconds, rest @ ..] = rest
            && options.frequency.is_none()
        {
            let seconds = u64::try_from(integer(seconds)?);
            options.idle_s = Some(
                seconds
                    .map_err(|_| CommandError::text("ERR Invalid IDLETIME value, must be >= 0"))?,
            );
            words = rest;
        } else if is(word, "freq")
            && let [frequency, rest @ ..] = rest
            && options.idle_s.is_none()
        {
            let frequency = u8::try_from(integer(frequency)?);
            options.frequency = Some(frequency.map_err(|_| {
                CommandError::text("ERR Invalid FREQ value, must be >= 0 and <= 255")
            })?);
            words = rest;
        } else {
            return Err(CommandError::Syntax);
        }
    }
    Ok((options, is_absolute))
}

const INVALID_TTL: CommandError = CommandError::text("ERR Invalid TTL value, must be >= 0");

/// When the value expires; later than there are times if that is too far away.
fn expire_at(ttl: &[u8], is_absolute: bool, now_ms: u64) -> Result<u64, CommandError> {
    let ttl = u64::try_from(integer(ttl)?).map_err(|_| INVALID_TTL)?;
    if ttl == 0 || is_absolute {
        return Ok(ttl);
    }
    Ok(now_ms.saturating_add(ttl))
}

pub(super) fn restore(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let (mut options, is_absolute) = parse(&args[4..])?;
    let (db, key) = (ctx.db(), ctx.first_key(args));
    let was_aside = ctx.session.aside.is_some();
    if !options.replace && ctx.tx().exists(db, key) {
        return Err(BUSY_KEY);
    }
    options.expire_at = expire_at(args[2], is_absolute, ctx.now_ms)?;
    let is_over = options.expire_at != 0 && options.expire_at <= ctx.now_ms;
    if was_aside {
        let will_be_new = ctx.tx().will_be_new(db, key);
        return match ctx.put_computed(db, args[1])? {
            Some(_) => answer(ctx, args, &options, will_be_new && !is_over, is_over),
            None => Err(MOVED_ON),
        };
    }
    let elements_max = ctx.large_store().elements();
    let built = match args[3].len() / ELEMENT_BYTES {
        count if count > elements_max => None,
        _ => build(ctx.keyspace(), args[3], elements_max)?,
    };
    // As in Redis, a payload that is wrong is said to be so first.
    if i64::try_from(options.expire_at).is_err() {
        return Err(INVALID_TTL);
    }
    let Some(built) = built else {
        let at = options.expire_at;
        ctx.store_argument_aside((db, args[1], at), 3, move |keyspace, payload| {
            let built = build(keyspace, payload, usize::MAX)?.ok_or(BAD_FORMAT)?;
            // What has expired already removes the key, as if it were empty.
            Ok(if is_over { Object::List(ListValue::new()) } else { built.into_object() })
        });
        return Ok(());
    };
    let will_be_new = ctx.tx().will_be_new(db, key);
    if is_over {
        if ctx.tx().delete(db, key) {
            ctx.tx().notify(EventClass::GENERIC, "del", db, key);
        }
    } else {
        match built {
            Built::String(bytes) => ctx.tx().put_string(db, key, &bytes, options.expire_at),
            Built::Object(object) => ctx.tx().put_object(db, key, object, options.expire_at),
        }
    }
    answer(ctx, args, &options, will_be_new && !is_over, is_over)
}

/// Ends a request whose value was stored, unless it had expired already.
fn answer(
    ctx: &mut Ctx<'_>,
    args: &[&[u8]],
    options: &Options,
    is_new: bool,
    is_over: bool,
) -> CommandResult {
    let (db, key, now_ms) = (ctx.db(), ctx.first_key(args), ctx.now_ms);
    let tx = ctx.tx();
    if !is_over {
        tx.set_use(db, key, options.idle_s, options.frequency, now_ms);
        // As in Redis, which deletes a key that is replaced first.
        if is_new {
            tx.notify(EventClass::NEW, "new", db, key);
        }
        tx.notify(EventClass::GENERIC, "restore", db, key);
    }
    ctx.reply.ok();
    Ok(())
}

/// The value of a payload; `None` if it has more elements than `elements_max`.
fn build(
    keyspace: &Keyspace,
    payload: &[u8],
    elements_max: usize,
) -> Result<Option<Built>, CommandError> {
    let (body, dialect) = payload::open(payload).ok_or(WRONG_PAYLOAD)?;
    let elements = BodyElements::open(body, dialect).map_err(|_| BAD_FORMAT)?;
    let mut builder = Builder::new(elements.encoding(), keyspace.env());
    for (count, element) in elements.enumerate() {
        if count >= elements_max {
            return Ok(None);
        }
        builder.push(element.map_err(|_| BAD_FORMAT)?).map_err(|_| BAD_FORMAT)?;
    }
    builder.finish().map_err(|_| BAD_FORMAT)?.ok_or(BAD_FORMAT).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_those_of_redis() {
        let words = |text: &str| -> Result<(Options, bool), CommandError> {
            parse(&text.split_ascii_whitespace().map(str::as_bytes).collect::<Vec<_>>())
        };
        let (options, is_absolute) = words("REPLACE absttl IDLETIME 7").unwrap();
        assert!(options.replace && is_absolute);
        assert_eq!((options.idle_s, options.frequency), (Some(7), None));
        for wrong in ["IDLETIME", "FREQ", "FREQ 1 IDLETIME 1", "IDLETIME 1 FREQ 1", "TTL", "1"] {
            assert_eq!(words(wrong).err(), Some(CommandError::Syntax), "{wrong}");
        }
        let text = |wrong: &str| words(wrong).err().unwrap().to_string();
        assert_eq!(text("IDLETIME -1"), "ERR Invalid IDLETIME value, must be >= 0");
        assert_eq!(text("FREQ 256"), "ERR Invalid FREQ value, must be >= 0 and <= 255");
        assert_eq!(text("FREQ x"), "ERR value is not an integer or out of range");
        assert_eq!(expire_at(b"5", false, 100), Ok(105));
        assert_eq!(expire_at(b"5", true, 100), Ok(5));
        assert!(expire_at(b"-1", true, 100).is_err());
        // Later than there are times: refused once the payload is known to be right.
        assert_eq!(expire_at(b"9223372036854775807", false, 100), Ok((1 << 63) + 99));
    }
}

//! Changes that depend on the present value: the conditions of `SET` and `DELEX`; `DELIFEQ`,
//! `DIGEST`.

use ladon_engine::types::string;
use ladon_engine::{EntryRef, EventClass, ValueRef};
use ladon_kernel::command::args::is;
use ladon_kernel::command::error::{CommandError, CommandResult};
use ladon_kernel::ctx::Ctx;
use xxhash_rust::xxh3::xxh3_64;

/// What a string is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison<'a> {
    /// `IFEQ`
    Equal(&'a [u8]),
    /// `IFNE`
    NotEqual(&'a [u8]),
    /// `IFDEQ`; `None` is no digest's text, which nothing equals.
    DigestEqual(Option<u64>),
    /// `IFDNE`
    DigestNotEqual(Option<u64>),
}

/// Hexadecimal digits of a digest.
const DIGEST_DIGITS: usize = 16;

impl<'a> Comparison<'a> {
    /// The comparison that an option and its argument ask for; `None` if it is no such option.
    pub(super) fn parse(
        word: &[u8],
        argument: &'a [u8],
    ) -> Result<Option<Comparison<'a>>, CommandError> {
        Ok(Some(match word {
            _ if is(word, "ifeq") => Comparison::Equal(argument),
            _ if is(word, "ifne") => Comparison::NotEqual(argument),
            _ if is(word, "ifdeq") => Comparison::DigestEqual(digest_of(argument)?),
            _ if is(word, "ifdne") => Comparison::DigestNotEqual(digest_of(argument)?),
            _ => return Ok(None),
        }))
    }

    /// Whether it holds of a key's value; a missing key is unequal to everything.
    ///
    /// # Errors
    /// The value is no string.
    pub(super) fn holds(self, value: Option<ValueRef<'_>>) -> Result<bool, CommandError> {
        let bytes = match value {
            Some(value) => Some(string::bytes(value).ok_or(CommandError::WrongType)?),
            None => None,
        };
        Ok(match (self, bytes) {
            (Comparison::Equal(wanted), Some(bytes)) => *bytes == *wanted,
            (Comparison::NotEqual(unwanted), Some(bytes)) => *bytes != *unwanted,
            (Comparison::DigestEqual(wanted), Some(bytes)) => Some(xxh3_64(&bytes)) == wanted,
            (Comparison::DigestNotEqual(unwanted), Some(bytes)) => {
                Some(xxh3_64(&bytes)) != unwanted
            }
            (Comparison::Equal(_) | Comparison::DigestEqual(_), None) => false,
            (Comparison::NotEqual(_) | Comparison::DigestNotEqual(_), None) => true,
        })
    }
}

/// As in Redis, only the length is an error.
fn digest_of(text: &[u8]) -> Result<Option<u64>, CommandError> {
    if text.len() != DIGEST_DIGITS {
        return Err(CommandError::text("ERR must be exactly 16 hexadecimal characters"));
    }
    let text = str::from_utf8(text).ok().filter(|text| text.bytes().all(|b| b.is_ascii_hexdigit()));
    Ok(text.and_then(|text| u64::from_str_radix(text, 16).ok()))
}

/// As in Redis, a condition is looked at only where there is a string to compare.
pub(super) fn delex(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let (word, argument) = match &args[2..] {
        [] => return delete_if(ctx, args, |_| Ok(true)),
        [word, argument] => (word, argument),
        _ => return Err(CommandError::wrong_number("delex")),
    };
    delete_if(ctx, args, |value| {
        if string::bytes(value).is_none() {
            return Err(CommandError::text(
                "ERR Key should be of string type if conditions are specified",
            ));
        }
        Comparison::parse(word, argument)?
            .ok_or(CommandError::text("ERR Invalid condition. Use IFEQ, IFNE, IFDEQ, or IFDNE"))?
            .holds(Some(value))
    })
}

pub(super) fn delifeq(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    delete_if(ctx, args, |value| Comparison::Equal(args[2]).holds(Some(value)))
}

/// Deletes a key if its value is as wanted.
fn delete_if(
    ctx: &mut Ctx<'_>,
    args: &[&[u8]],
    is_wanted: impl FnOnce(ValueRef<'_>) -> Result<bool, CommandError>,
) -> CommandResult {
    let (db, key) = (ctx.db(), ctx.first_key(args));
    let tx = ctx.tx();
    let is_wanted = tx.get(db, key).map(|entry| is_wanted(entry.value())).transpose()?;
    let deleted = is_wanted == Some(true) && tx.delete(db, key);
    if deleted {
        tx.notify(EventClass::GENERIC, "del", db, key);
    }
    ctx.reply.integer(i64::from(deleted));
    Ok(())
}

pub(super) fn digest(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let (db, key) = (ctx.db(), ctx.first_key(args));
    let (tx, reply) = ctx.tx_and_reply();
    match tx.read(db, key).map(EntryRef::value) {
        Some(value) => {
            let bytes = string::bytes(value).ok_or(CommandError::WrongType)?;
            reply.bulk(format!("{:016x}", xxh3_64(&bytes)));
        }
        None => reply.null(),
    }
    Ok(())
}

//! Changes that depend on the present value: the conditions of `SET` and `DELEX`; `DELIFEQ`, `DIGEST`.

use crate::kernel::args::is;
use crate::kernel::ctx::Ctx;
use crate::kernel::error::{CommandError, CommandResult};
use ladon_engine::types::string;
use ladon_engine::{EntryRef, EventClass, ValueRef};
use xxhash_rust::xxh3::xxh3_64;

/// What a string is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison<'a> {
    /// `IFEQ`
    Equal(&'a [u8]),
    /// `IFNE`
    NotEqual(&'a [u8]),
    /// `IFDEQ`
    DigestEqual(u64),
    /// `IFDNE`
    DigestNotEqual(u64),
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
            (Comparison::DigestEqual(wanted), Some(bytes)) => xxh3_64(&bytes) == wanted,
            (Comparison::DigestNotEqual(unwanted), Some(bytes)) => xxh3_64(&bytes) != unwanted,
            (Comparison::Equal(_) | Comparison::DigestEqual(_), None) => false,
            (Comparison::NotEqual(_) | Comparison::DigestNotEqual(_), None) => true,
        })
    }
}

fn digest_of(text: &[u8]) -> Result<u64, CommandError> {
    let is_digest = text.len() == DIGEST_DIGITS && text.iter().all(u8::is_ascii_hexdigit);
    let digest = str::from_utf8(text).ok().filter(|_| is_digest);
    digest
        .and_then(|text| u64::from_str_radix(text, 16).ok())
        .ok_or(CommandError::text("ERR must be exactly 16 hexadecimal characters"))
}

pub(super) fn delex(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let comparison =
        match &args[2..] {
            [] => None,
            [word, argument] => Some(Comparison::parse(word, argument)?.ok_or(
                CommandError::text("ERR Invalid condition. Use IFEQ, IFNE, IFDEQ, or IFDNE"),
            )?),
            _ => return Err(CommandError::wrong_number("delex")),
        };
    delete_if(ctx, args, comparison)
}

pub(super) fn delifeq(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    delete_if(ctx, args, Some(Comparison::Equal(args[2])))
}

fn delete_if(
    ctx: &mut Ctx<'_>,
    args: &[&[u8]],
    comparison: Option<Comparison<'_>>,
) -> CommandResult {
    let (db, key) = (ctx.db(), ctx.first_key(args));
    let tx = ctx.tx();
    let is_wanted = match (tx.get(db, key), comparison) {
        (None, _) => false,
        (Some(_), None) => true,
        (Some(entry), Some(comparison)) => comparison.holds(Some(entry.value()))?,
    };
    let deleted = is_wanted && tx.delete(db, key);
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

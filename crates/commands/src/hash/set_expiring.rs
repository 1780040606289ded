//! HSETEX.

use crate::shared::element_expiry::Unit;
use ladon_engine::EventClass;
use ladon_engine::types::hash::HashEdit;
use ladon_kernel::command::args::is;
use ladon_kernel::command::error::{CommandError, CommandResult, shown};
use ladon_kernel::ctx::Ctx;
use ladon_resp::parse_i64;

/// The options before `FIELDS`.
#[derive(Default)]
struct Options {
    /// Whether all of the fields must exist (true), or none (false).
    fields_exist: Option<bool>,
    /// Whether the key must exist or must not (a Valkey option).
    key_exists: Option<bool>,
    expiry: Expiry,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Expiry {
    #[default]
    Never,
    Keep,
    At(u64),
}

pub(super) fn hsetex(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let now_ms = ctx.now_ms;
    let (options, pairs) = parse(&args[2..], now_ms)?;
    let (db, key) = (ctx.db(), ctx.first_key(args));
    let tx = ctx.tx();
    let exists = tx.get(db, key).is_some();
    let is_past = matches!(options.expiry, Expiry::At(at) if at <= now_ms);
    let allows = |edit: &HashEdit<'_>| {
        options.key_exists.is_none_or(|wanted| wanted == exists)
            && options.fields_exist.is_none_or(|wanted| {
                pairs.iter().all(|[name, _]| edit.get(name).is_some() == wanted)
            })
    };
    let done = tx.edit_or_create_hash(db, key, &[], |edit| {
        if !allows(edit) {
            return false;
        }
        edit.expect(pairs.as_flattened());
        for [name, value] in pairs {
            match options.expiry {
                // The field would expire at once.
                Expiry::At(_) if is_past => {
                    edit.remove(name);
                }
                Expiry::At(at) => {
                    edit.set(name, value, at);
                }
                Expiry::Never => {
                    edit.set(name, value, 0);
                }
                Expiry::Keep => {
                    let at = edit.expire_at(name).unwrap_or(0);
                    edit.set(name, value, at);
                }
            }
        }
        true
    })?;
    let mut names = tx.changed_names(EventClass::HASH);
    names.extend(pairs.iter().map(|[name, _]| *name));
    if done && is_past {
        tx.notify_removal_of(EventClass::HASH, "hdel", db, key, &names);
    } else if done {
        tx.notify_of(EventClass::HASH, "hset", db, key, &names);
        if matches!(options.expiry, Expiry::At(_)) {
            tx.notify_of(EventClass::HASH, "hexpire", db, key, &names);
        }
    }
    ctx.reply.integer(i64::from(done));
    Ok(())
}

/// A name and a value.
type Pair<'a> = [&'a [u8]; 2];

fn parse<'w, 'a>(
    words: &'w [&'a [u8]],
    now_ms: u64,
) -> Result<(Options, &'w [Pair<'a>]), CommandError> {
    let mut options = Options::default();
    let mut rest = words;
    let wrong_number = || CommandError::wrong_number("hsetex");
    loop {
        let [word, after @ ..] = rest else { return Err(wrong_number()) };
        rest = after;
        if is(word, "FIELDS") {
            break;
        } else if is(word, "FNX") || is(word, "FXX") {
            if options.fields_exist.is_some() {
                return Err(CommandError::text(
                    "ERR Only one of FXX or FNX arguments can be specified",
                ));
            }
            options.fields_exist = Some(is(word, "FXX"));
        } else if is(word, "NX") || is(word, "XX") {
            if options.key_exists.is_some() {
                return Err(CommandError::text(
                    "ERR Only one of XX or NX arguments can be specified",
                ));
            }
            options.key_exists = Some(is(word, "XX"));
        } else if is(word, "KEEPTTL") {
            options.check_single_expiry()?;
            options.expiry = Expiry::Keep;
        } else if let Some(unit) = Unit::of_option(word) {
            options.check_single_expiry()?;
            let [time, after @ ..] = rest else { return Err(wrong_number()) };
            rest = after;
            options.expiry = Expiry::At(unit.moment(time, now_ms, "hsetex")?);
        } else {
            let word = shown(word);
            return Err(CommandError::err(format_args!("unknown argument: {word}")));
        }
    }
    let [count, words @ ..] = rest else { return Err(wrong_number()) };
    let count = parse_i64(count).filter(|count| *count > 0 && i32::try_from(*count).is_ok());
    let count = count.ok_or(CommandError::text("ERR invalid number of fields"))?;
    let (pairs, odd) = words.as_chunks::<2>();
    if !odd.is_empty() || pairs.len() as u64 != count as u64 {
        return Err(wrong_number());
    }
    Ok((options, pairs))
}

impl Options {
    fn check_single_expiry(&self) -> CommandResult {
        if self.expiry == Expiry::Never {
            return Ok(());
        }
        Err(CommandError::text(
            "ERR Only one of EX, PX, EXAT, PXAT or KEEPTTL arguments can be specified",
        ))
    }
}

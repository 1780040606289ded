//! `MIGRATE`: keys to another server.
//!
//! The values are frozen together, and sent without locks. What the target has taken is deleted here
//! if it is as it was sent; otherwise it stays, and the client learns that it is on both sides
//! (`docs/decisions/migrate.md`).

use ladon_engine::types::string;
use ladon_engine::{EventClass, ValueRef};
use ladon_kernel::command::args::{integer, is};
use ladon_kernel::command::error::{CommandError, CommandResult, shown, shown_whole};
use ladon_kernel::ctx::Ctx;
use ladon_kernel::long::parcel::{
    Delivery, Frozen, Login, Parcel, ParcelValue, Undelivered, Watched,
};
use std::ops::Range;
use std::time::Duration;

/// Position of the only key, or of the empty string that stands for `KEYS`.
const KEY: usize = 3;

/// Position of the first option.
const OPTIONS: usize = 6;

const KEYS_AND_KEY: CommandError = CommandError::text(
    "ERR When using MIGRATE KEYS option, the key argument must be set to the empty string",
);
const IN_EXEC: CommandError = CommandError::text(
    "ERR MIGRATE cannot run inside MULTI, scripts and functions: it waits for another server",
);
const NO_PEERS: CommandError = CommandError::text("ERR this server reaches no other servers");
const TOO_MANY: CommandError = CommandError::text(
    "ERR too many MIGRATE commands wait for this target, or for all targets together",
);

/// In place of a timeout that is none.
const PATIENCE_MS: u64 = 1000;

/// As Redis, which keeps an `int`, waits at most: 24 days.
const PATIENCE_MS_MAX: u64 = i32::MAX as u64;

struct Options {
    is_copy: bool,
    replaces: bool,
    login: Option<Login>,
    keys: Range<usize>,
}

fn parse(args: &[&[u8]]) -> Result<Options, CommandError> {
    let mut options = Options { is_copy: false, replaces: false, login: None, keys: KEY..KEY + 1 };
    let mut at = OPTIONS;
    while let Some(word) = args.get(at) {
        at += 1;
        if is(word, "copy") {
            options.is_copy = true;
        } else if is(word, "replace") {
            options.replaces = true;
        } else if is(word, "auth")
            && let Some(password) = args.get(at)
        {
            options.login = Some(Login { user: None, password: password.to_vec() });
            at += 1;
        } else if is(word, "auth2")
            && let [user, password, ..] = &args[at..]
        {
            let (user, password) = (Some(user.to_vec()), password.to_vec());
            options.login = Some(Login { user, password });
            at += 2;
        } else if is(word, "keys") {
            if !args[KEY].is_empty() {
                return Err(KEYS_AND_KEY);
            }
            options.keys = at..args.len();
            break;
        } else {
            return Err(CommandError::Syntax);
        }
    }
    Ok(options)
}

/// Where the keys are; nowhere if there are some at both places, which is an error.
pub(super) fn keys(args: &[&[u8]]) -> Range<usize> {
    let mut at = OPTIONS;
    while let Some(word) = args.get(at) {
        at += 1;
        if is(word, "keys") {
            return if args[KEY].is_empty() { at..args.len() } else { 0..0 };
        }
        at += match word {
            word if is(word, "auth") => 1,
            word if is(word, "auth2") => 2,
            _ => 0,
        };
    }
    KEY..args.len().min(KEY + 1)
}

pub(super) fn migrate(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let options = parse(args)?;
    let timeout = integer(args[5])?;
    let database = integer(args[4])?;
    if let Some((delivery, watched)) = ctx.take_delivery() {
        return finish(ctx, &delivery, &watched);
    }
    let values = frozen(ctx, &args[options.keys]);
    if values.is_empty() {
        ctx.reply.simple("NOKEY");
        return Ok(());
    }
    if !ctx.may_wait_for_peers() {
        return Err(IN_EXEC);
    }
    let keys = values.iter().map(|value| value.key.clone());
    let watched = if options.is_copy { Vec::new() } else { keys.collect() };
    let parcel = Parcel {
        host: String::from_utf8_lossy(args[1]).into_owned(),
        // There is no connection to port 0.
        port: integer(args[2]).ok().and_then(|port| u16::try_from(port).ok()).unwrap_or(0),
        login: options.login,
        database,
        patience: Duration::from_millis(match u64::try_from(timeout) {
            Ok(0) | Err(_) => PATIENCE_MS,
            Ok(timeout_ms) => timeout_ms.min(PATIENCE_MS_MAX),
        }),
        replaces: options.replaces,
        values,
    };
    let peers = ctx.node.peers.as_ref().ok_or(NO_PEERS)?;
    let errand = peers.take(parcel).ok_or(TOO_MANY)?;
    ctx.run_errand(errand, watched);
    Ok(())
}

/// The keys that are there, with their values.
fn frozen(ctx: &mut Ctx<'_>, names: &[&[u8]]) -> Vec<ParcelValue> {
    let db = ctx.db();
    let value = |name: &&[u8]| {
        let key = ctx.key(name);
        let tx = ctx.tx();
        let entry = tx.read(db, key)?;
        let (expire_at, is_object) =
            (entry.expire_at(), matches!(entry.value(), ValueRef::Object(_)));
        let value = match string::bytes(entry.value()) {
            Some(bytes) if !is_object => Frozen::Bytes(bytes.into_owned()),
            _ => Frozen::Object(tx.freeze_object(db, key)?),
        };
        Some(ParcelValue { key: name.to_vec(), expire_at, value })
    };
    names.iter().filter_map(value).collect()
}

/// Deletes what the target has taken, and answers.
fn finish(ctx: &mut Ctx<'_>, delivery: &Delivery, watched: &[Watched]) -> CommandResult {
    let (db, now_ms) = (ctx.db(), ctx.now_ms);
    let mut changed = Vec::new();
    for (answered, Watched { key: name, is_unchanged }) in delivery.answers.iter().zip(watched) {
        let key = ctx.key(name);
        let tx = ctx.tx();
        if !answered.is_taken {
            continue;
        }
        let has_expired = answered.expire_at != 0 && answered.expire_at <= now_ms;
        if *is_unchanged {
            if tx.delete(db, key) {
                tx.notify(EventClass::GENERIC, "del", db, key);
            }
        } else if !has_expired || tx.exists(db, key) {
            changed.push(name);
        }
    }
    if let Some(failure) = &delivery.failure {
        return Err(error_of(failure));
    }
    match changed.first() {
        None => ctx.reply.ok(),
        Some(first) => return Err(moved_on(first, changed.len())),
    }
    Ok(())
}

fn error_of(failure: &Undelivered) -> CommandError {
    match failure {
        Undelivered::Connecting => {
            CommandError::text("IOERR error or timeout connecting to the client")
        }
        Undelivered::Writing => {
            CommandError::text("IOERR error or timeout writing to target instance")
        }
        Undelivered::Reading => {
            CommandError::text("IOERR error or timeout reading to target instance")
        }
        Undelivered::Refused(text) => CommandError::err(format_args!(
            "Target instance replied with error: {}",
            shown_whole(text)
        )),
        Undelivered::Unwritable(why) => CommandError::err(why),
    }
}

/// Deleting these keys would lose what happened to them meanwhile.
fn moved_on(first: &[u8], count: usize) -> CommandError {
    let others = match count {
        1 => String::new(),
        count => format!(" and {} others", count - 1),
    };
    CommandError::err(format_args!(
        "the target has taken '{}'{others} as of the command's begin, but it changed here meanwhile: \
         it was kept here, repeat with REPLACE",
        shown(first)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<&[u8]> {
        text.split(' ').map(str::as_bytes).collect()
    }

    #[test]
    fn options_are_those_of_redis() {
        let options = parse(&words("migrate h 1 k 0 9 COPY replace auth p")).unwrap();
        assert!(options.is_copy && options.replaces);
        assert_eq!(options.login, Some(Login { user: None, password: b"p".to_vec() }));
        assert_eq!(options.keys, 3..4);
        let options = parse(&words("migrate h 1  0 9 auth2 u keys keys a b")).unwrap();
        let login = Login { user: Some(b"u".to_vec()), password: b"keys".to_vec() };
        assert_eq!((options.login, options.keys), (Some(login), 10..12));
        for wrong in ["auth", "auth2 u", "keep", "copy copy now"] {
            let error = parse(&words(&format!("migrate h 1 k 0 9 {wrong}"))).err();
            assert_eq!(error, Some(CommandError::Syntax), "{wrong}");
        }
        let error = parse(&words("migrate h 1 k 0 9 keys a")).err();
        assert_eq!(error, Some(KEYS_AND_KEY));
    }

    #[test]
    fn keys_are_where_redis_finds_them() {
        let found = |text: &str| keys(&words(text));
        assert_eq!(found("migrate h 1 k 0 9"), 3..4);
        assert_eq!(found("migrate h 1  0 9 copy keys a b"), 8..10);
        assert_eq!(found("migrate h 1  0 9 auth keys keys a"), 9..10);
        assert_eq!(found("migrate h 1  0 9 auth2 keys keys keys"), 10..10);
        assert!(found("migrate h 1 k 0 9 keys a").is_empty());
        assert_eq!(found("migrate h 1"), 3..3);
    }
}

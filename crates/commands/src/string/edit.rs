//! Changing a part of a string: APPEND, SETRANGE.

use super::length;
use ladon_engine::{EventClass, StringTooLong};
use ladon_kernel::command::args::integer;
use ladon_kernel::command::error::{CommandError, CommandResult};
use ladon_kernel::ctx::Ctx;

pub(super) fn append(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let (db, key) = (ctx.db(), ctx.first_key(args));
    let limit = ctx.node.settings.proto_max_bulk_len();
    let tx = ctx.tx();
    let new = match tx.get(db, key) {
        Some(entry) => {
            let old = length(entry.value())?;
            check_length(old as u64, args[2].len(), limit)?;
            if args[2].is_empty() {
                tx.touch_watchers(db, key, true);
            }
            tx.write_string_at(db, key, old, args[2])?
        }
        None => {
            tx.put_string(db, key, args[2], 0);
            args[2].len()
        }
    };
    tx.notify(EventClass::STRING, "append", db, key);
    ctx.reply.integer(new as i64);
    Ok(())
}

pub(super) fn setrange(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let offset = u64::try_from(integer(args[2])?)
        .map_err(|_| CommandError::text("ERR offset is out of range"))?;
    let bytes = args[3];
    let (db, key) = (ctx.db(), ctx.first_key(args));
    let limit = ctx.node.settings.proto_max_bulk_len();
    let tx = ctx.tx();
    let old = tx.get(db, key).map_or(Ok(0), |entry| length(entry.value()))?;
    let new = if bytes.is_empty() {
        old
    } else {
        check_length(offset, bytes.len(), limit)?;
        let new = tx.write_string_at(db, key, offset as usize, bytes)?;
        tx.notify(EventClass::STRING, "setrange", db, key);
        new
    };
    ctx.reply.integer(new as i64);
    Ok(())
}

fn check_length(at: u64, bytes: usize, limit: u64) -> Result<(), CommandError> {
    match at.checked_add(bytes as u64) {
        Some(end) if end <= limit => Ok(()),
        _ => Err(CommandError::err(StringTooLong)),
    }
}

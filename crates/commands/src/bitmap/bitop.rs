//! Several bitmaps combined into another: BITOP.

use super::kernel::{Operation, combine};
use ladon_engine::types::long_string::LongString;
use ladon_engine::types::string::INLINE_BYTES_MAX;
use ladon_engine::{EventClass, Key, Object};
use ladon_kernel::command::args::is;
use ladon_kernel::command::error::{CommandError, CommandResult};
use ladon_kernel::ctx::Ctx;

const OPERATIONS: [(&str, Operation); 8] = [
    ("AND", Operation::And),
    ("OR", Operation::Or),
    ("XOR", Operation::Xor),
    ("NOT", Operation::Not),
    ("DIFF", Operation::Diff),
    ("DIFF1", Operation::Diff1),
    ("ANDOR", Operation::AndOr),
    ("ONE", Operation::One),
];

pub(super) fn bitop(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let (name, operation) =
        OPERATIONS.into_iter().find(|(name, _)| is(args[1], name)).ok_or(CommandError::Syntax)?;
    match (operation, args.len() - 3) {
        (Operation::Not, 2..) => {
            return Err(CommandError::text(
                "ERR BITOP NOT must be called with a single source key.",
            ));
        }
        (Operation::Diff | Operation::Diff1 | Operation::AndOr, 1) => {
            return Err(CommandError::err(format_args!(
                "BITOP {name} must be called with at least two source keys."
            )));
        }
        _ => {}
    }
    let db = ctx.db();
    if let Some(length) = ctx.put_computed(db, args[2])? {
        if length > 0 {
            let target = ctx.key(args[2]);
            ctx.tx().notify(EventClass::STRING, "set", db, target);
        }
        ctx.reply.integer(length as i64);
        return Ok(());
    }
    let large = ctx.large_store();
    let tx = ctx.tx();
    let keys: Vec<Key<'_>> = args[3..].iter().map(|name| tx.key(name)).collect();
    let sources = tx.read_strings(db, &keys)?;
    let sources: Vec<&[u8]> = sources.iter().map(|s| s.as_deref().unwrap_or_default()).collect();
    let total = sources.iter().map(|source| source.len()).sum();
    let is_object = sources.iter().any(|source| source.len() > INLINE_BYTES_MAX);
    if is_object && large.is_total_string(total) {
        drop(sources);
        let frozen: Vec<LongString> =
            keys.iter().map(|&key| tx.freeze_string(db, key).unwrap_or_default()).collect();
        ctx.store_aside(&keys, (db, args[2], 0), move |_| {
            let sources: Vec<&[u8]> = frozen.iter().map(|source| &source[..]).collect();
            Ok(Object::String(combine(operation, &sources).into()))
        });
        return Ok(());
    }
    let result = combine(operation, &sources);
    let target = tx.key(args[2]);
    if result.is_empty() {
        if tx.delete(db, target) {
            tx.notify(EventClass::GENERIC, "del", db, target);
        }
    } else {
        tx.put_grown_string(db, target, &result, 0);
        tx.notify(EventClass::STRING, "set", db, target);
    }
    ctx.reply.integer(result.len() as i64);
    Ok(())
}

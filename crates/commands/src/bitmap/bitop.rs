//! Several bitmaps combined into another: BITOP.

use super::kernel::{Operation, combine};
use crate::args::is;
use crate::ctx::Ctx;
use crate::error::{CommandError, CommandResult};
use ladon_engine::Key;

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
    let tx = ctx.tx();
    let keys: Vec<Key<'_>> = args[3..].iter().map(|name| tx.key(name)).collect();
    let sources = tx.read_strings(db, &keys)?;
    let sources: Vec<&[u8]> = sources.iter().map(|s| s.as_deref().unwrap_or_default()).collect();
    let result = combine(operation, &sources);
    let target = tx.key(args[2]);
    if result.is_empty() {
        tx.delete(db, target);
    } else {
        tx.put_grown_string(db, target, &result, 0);
    }
    ctx.reply.integer(result.len() as i64);
    Ok(())
}

//! `PFMERGE`.

use super::count::Merged;
use crate::shared::hyperloglog::sparse::Cursor;
use crate::shared::hyperloglog::{self, Encoding, STALE_AT};
use ladon_engine::EventClass;
use ladon_engine::types::string;
use ladon_kernel::command::error::{CommandError, CommandResult};
use ladon_kernel::ctx::Ctx;

pub(super) fn pfmerge(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let db = ctx.db();
    let sparse_bytes_max = ctx.node.settings.hll_sparse_max_bytes();
    let tx = ctx.tx();
    let names = &args[1..];
    let mut merged = Merged::new(names.len());
    for name in names {
        let key = tx.key(name);
        merged.add(tx, db, key)?;
    }
    // The target counts as a source, so it was checked.
    let target = tx.key(args[1]);
    let old = match tx.get(db, target) {
        Some(entry) => {
            Some(string::bytes(entry.value()).ok_or(CommandError::WrongType)?.into_owned())
        }
        None => None,
    };
    let mut bytes = old.clone().unwrap_or_else(hyperloglog::empty);
    if merged.any_is_dense && hyperloglog::encoding(&bytes)? == Encoding::Sparse {
        hyperloglog::make_dense(&mut bytes)?;
    }
    let mut cursor = Cursor::start();
    for position in merged.registers.nonzero() {
        hyperloglog::raise(&mut bytes, position, sparse_bytes_max, &mut cursor)?;
    }
    hyperloglog::invalidate(&mut bytes);
    match old {
        None => tx.put_grown_string(db, target, &bytes, 0),
        // As in Redis, clients that watch the key see a change anyway.
        Some(old) if old == bytes => {
            tx.write_string_at(db, target, STALE_AT, &bytes[STALE_AT..=STALE_AT])?;
        }
        Some(_) => tx.replace_string(db, target, &bytes)?,
    }
    tx.notify(EventClass::STRING, "pfadd", db, target);
    ctx.reply.ok();
    Ok(())
}

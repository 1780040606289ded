//! `DUMP`: a value as bytes that `RESTORE` reads, here, on Redis and on Valkey.
//!
//! A payload is written in the oldest version of RDB since Redis 7.0 that has all of the value. A
//! large one is made aside from a frozen value, and sent from its own memory.

use crate::shared::made_bulk::MadeBulk;
use ladon_engine::{EntryRef, ValueRef};
use ladon_kernel::command::error::{CommandError, CommandResult};
use ladon_kernel::ctx::Ctx;
use ladon_kernel::long::aside::is_much;
use ladon_transfer::payload;

pub(super) fn dump(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let (db, key, large) = (ctx.db(), ctx.first_key(args), ctx.large_aside());
    let (tx, reply) = ctx.tx_and_reply();
    match tx.read(db, key) {
        None => reply.null(),
        Some(entry) if !is_much(large, entry) => reply.bulk(made(entry)?),
        Some(_) => {
            let Some(frozen) = tx.freeze_object(db, key) else {
                unreachable!("what is large is an object, and was just found")
            };
            ctx.reply_aside(move |_| Box::new(MadeBulk::new(payload(ValueRef::Object(&frozen)))));
        }
    }
    Ok(())
}

fn made(entry: EntryRef<'_>) -> Result<Vec<u8>, CommandError> {
    payload(entry.value()).map_err(CommandError::err)
}

//! `DEBUG RELOAD` and `DEBUG LOADAOF`: does the data survive its form in the files?
//!
//! A running node does not reread its files; recovery's own tests do. Here every value is encoded
//! as in a checkpoint and decoded again, in place, while all locks are held.

use crate::admin::persistence::save_for_good;
use ladon_engine::Locks;
use ladon_kernel::command::args::is;
use ladon_kernel::command::error::{CommandError, CommandResult};
use ladon_kernel::ctx::Ctx;

pub(super) fn reload(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let mut save = true;
    for word in &args[2..] {
        if is(word, "nosave") {
            save = false;
        } else if is(word, "merge") || is(word, "noflush") {
            return Err(CommandError::err(
                "DEBUG RELOAD MERGE and NOFLUSH are not supported by Ladon: \
                 there is no other data to merge with",
            ));
        } else {
            return Err(CommandError::err(
                "DEBUG RELOAD only supports the MERGE, NOFLUSH and NOSAVE options.",
            ));
        }
    }
    if save {
        if ctx.in_exec {
            // The checkpoint would wait for the locks that the transaction holds.
            return Err(CommandError::err("DEBUG RELOAD can only save outside a transaction"));
        }
        save_for_good(ctx).map_err(CommandError::err)?;
    }
    rebuild(ctx)?;
    ctx.reply.ok();
    Ok(())
}

pub(super) fn loadaof(ctx: &mut Ctx<'_>, _args: &[&[u8]]) -> CommandResult {
    let end = ctx.node.durability.reserved();
    ctx.node.durability.want_durable(end);
    ctx.depend_on(end);
    rebuild(ctx)?;
    ctx.reply.ok();
    Ok(())
}

fn rebuild(ctx: &mut Ctx<'_>) -> CommandResult {
    let databases = ctx.keyspace().databases();
    ctx.on(Locks::All, |tx| {
        for db in 0..databases {
            tx.rebuild(db);
        }
    })
}

//! HDEL.

use crate::kernel::ctx::Ctx;
use crate::kernel::error::CommandResult;

pub(super) fn hdel(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let (db, key) = (ctx.db(), ctx.first_key(args));
    let removed = ctx.tx().edit_hash(db, key, |edit| edit.remove_all(&args[2..]))?;
    ctx.reply.integer(removed.unwrap_or(0) as i64);
    Ok(())
}

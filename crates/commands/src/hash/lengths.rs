//! HLEN, HEXISTS, HSTRLEN.

use ladon_engine::types::hash::HashValue;
use ladon_kernel::command::error::CommandResult;
use ladon_kernel::ctx::Ctx;

pub(super) fn hlen(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let (db, key) = (ctx.db(), ctx.first_key(args));
    let count = ctx.tx().read_value(db, key)?.map_or(0, HashValue::len);
    ctx.reply.integer(count as i64);
    Ok(())
}

pub(super) fn hexists(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let exists = value_bytes(ctx, args)?.is_some();
    ctx.reply.integer(i64::from(exists));
    Ok(())
}

pub(super) fn hstrlen(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let bytes = value_bytes(ctx, args)?.unwrap_or(0);
    ctx.reply.integer(bytes as i64);
    Ok(())
}

/// Length of the field's value, if there is such a field.
fn value_bytes(
    ctx: &mut Ctx<'_>,
    args: &[&[u8]],
) -> Result<Option<usize>, ladon_kernel::command::error::CommandError> {
    let (db, key) = (ctx.db(), ctx.first_key(args));
    let hasher = ctx.keyspace().hasher();
    let hash = ctx.tx().read_value::<HashValue>(db, key)?;
    Ok(hash.and_then(|hash| hash.get(hasher, args[2])).map(<[u8]>::len))
}

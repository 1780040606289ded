//! One bit: SETBIT, GETBIT.

use super::bit_offset;
use ladon_engine::EventClass;
use ladon_engine::types::string;
use ladon_kernel::command::error::{CommandError, CommandResult};
use ladon_kernel::ctx::Ctx;

pub(super) fn setbit(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let offset = bit_offset(args[2], ctx.node.settings.proto_max_bulk_len())?;
    let on = match args[3] {
        b"0" => false,
        b"1" => true,
        _ => return Err(CommandError::text("ERR bit is not an integer or out of range")),
    };
    let (db, key) = (ctx.db(), ctx.first_key(args));
    let (at, mask) = ((offset / 8) as usize, 0x80 >> (offset % 8));
    let mut was_on = false;
    let before = ctx.tx().change_count();
    ctx.tx().edit_string(db, key, at + 1, |string| {
        let byte = &mut string[at];
        was_on = *byte & mask != 0;
        if was_on == on {
            return 0..0;
        }
        *byte ^= mask;
        at..at + 1
    })?;
    if ctx.tx().change_count() != before {
        ctx.tx().notify(EventClass::STRING, "setbit", db, key);
    }
    ctx.reply.integer(i64::from(was_on));
    Ok(())
}

pub(super) fn getbit(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let offset = bit_offset(args[2], ctx.node.settings.proto_max_bulk_len())?;
    let (db, key) = (ctx.db(), ctx.first_key(args));
    let mut on = false;
    if let Some(entry) = ctx.tx().read(db, key) {
        let bytes = string::bytes(entry.value()).ok_or(CommandError::WrongType)?;
        let byte = bytes.get((offset / 8) as usize).copied().unwrap_or(0);
        on = byte & 0x80 >> (offset % 8) != 0;
    }
    ctx.reply.integer(i64::from(on));
    Ok(())
}

//! Random members of a set: SPOP and SRANDMEMBER.

use crate::set::reply_member;
use crate::shared::element_random::{self, Wanted};
use ladon_engine::EventClass;
use ladon_engine::types::set::SetValue;
use ladon_kernel::command::args;
use ladon_kernel::command::error::{CommandError, CommandResult};
use ladon_kernel::ctx::Ctx;

pub(crate) fn spop(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    if args.len() > 3 {
        return Err(CommandError::Syntax);
    }
    let (db, key) = (ctx.db(), ctx.first_key(args));
    let (tx, reply, rng) = ctx.tx_reply_and_rng();
    let random = || rng.next_u64();
    let Some(count) = args.get(2) else {
        if tx.set_pop(db, key, 1, random, |member| reply_member(reply, member))? {
            tx.notify_removal(EventClass::SET, "spop", db, key);
        } else {
            reply.null();
        }
        return Ok(());
    };
    let count = args::positive(count)? as usize;
    let Some(set) = tx.get_value::<SetValue>(db, key)? else {
        reply.set(0);
        return Ok(());
    };
    let count = count.min(set.len());
    reply.set(count);
    if count > 0 {
        tx.set_pop(db, key, count, random, |member| reply_member(reply, member))?;
        tx.notify_removal(EventClass::SET, "spop", db, key);
    }
    Ok(())
}

pub(crate) fn srandmember(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let (wanted, _) = Wanted::parse(&args[2..], None)?;
    let at = (ctx.db(), ctx.first_key(args));
    element_random::answer::<SetValue>(ctx, at, wanted, false)
}

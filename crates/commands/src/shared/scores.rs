//! The scores of several members of a sorted set.

use ladon_engine::types::sorted_set::SortedSet;
use ladon_kernel::command::error::CommandResult;
use ladon_kernel::ctx::Ctx;
use ladon_resp::Reply;

/// Replies with an array of what `write` makes of the score of each member, which are the arguments
/// from 2 on; `None` for one that is not in the set.
pub(crate) fn reply_for_each(
    ctx: &mut Ctx<'_>,
    args: &[&[u8]],
    write: impl Fn(&mut Reply<'_>, Option<f64>),
) -> CommandResult {
    let (db, key) = (ctx.db(), ctx.first_key(args));
    let hasher = ctx.keyspace().hasher();
    let (tx, reply) = ctx.tx_and_reply();
    let set = tx.read_value::<SortedSet>(db, key)?;
    reply.array(args.len() - 2);
    for member in &args[2..] {
        write(reply, set.and_then(|set| set.score(hasher, member)));
    }
    Ok(())
}

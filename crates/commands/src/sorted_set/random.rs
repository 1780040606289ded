//! Random members: ZRANDMEMBER.

use crate::shared::element_random::{self, Wanted};
use ladon_engine::types::sorted_set::SortedSet;
use ladon_kernel::command::error::CommandResult;
use ladon_kernel::ctx::Ctx;

pub(super) fn zrandmember(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let (wanted, with_scores) = Wanted::parse(&args[2..], Some("WITHSCORES"))?;
    let at = (ctx.db(), ctx.first_key(args));
    element_random::answer::<SortedSet>(ctx, at, wanted, with_scores)
}

//! Fields of a hash by chance: HRANDFIELD.

use crate::shared::element_random::{self, Wanted};
use ladon_engine::types::hash::HashValue;
use ladon_kernel::command::error::CommandResult;
use ladon_kernel::ctx::Ctx;

pub(super) fn hrandfield(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let (wanted, with_values) = Wanted::parse(&args[2..], Some("WITHVALUES"))?;
    let at = (ctx.db(), ctx.first_key(args));
    element_random::answer::<HashValue>(ctx, at, wanted, with_values)
}

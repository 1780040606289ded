//! DEL and UNLINK.

use crate::kernel::ctx::Ctx;
use crate::kernel::error::CommandResult;

/// Both: what would take long to drop is dropped elsewhere either way.
pub(super) fn del(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    super::look::count(ctx, args, |tx, db, key| tx.delete(db, key))
}

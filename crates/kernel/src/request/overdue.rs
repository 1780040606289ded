//! Many elements of a value that expired at one moment.
//!
//! A look at a value removes what has expired in it. If that is more than a turn has time for, the
//! request removes some and runs again, so that other clients are served in between. Commands in
//! `EXEC`, and what a script asks for without declaring it, cannot wait: they remove all of it.

use crate::command::error::CommandResult;
use crate::command::spec::CommandSpec;
use crate::ctx::{Ctx, Data};
use crate::request::outcome::Flow;
use ladon_engine::Key;

/// As many as are removed in some 200 microseconds, the time of a turn.
const REMOVED_MAX: usize = 250;

/// If a look at one of the request's keys would remove too many elements that have expired: removes
/// some, and returns that the request has to run again.
#[cold]
pub(crate) fn remove_some(ctx: &mut Ctx<'_>, spec: &CommandSpec, args: &[&[u8]]) -> bool {
    let (node, db, mut first) = (ctx.node, ctx.db(), ctx.first_key);
    let Data::Held(tx) = &mut ctx.data else { return false };
    spec.keys.positions(args).any(|at| {
        let bytes = args[at];
        let hash = first.take().unwrap_or_else(|| node.keyspace.hash(bytes));
        tx.expire_ahead(db, Key { bytes, hash }, REMOVED_MAX)
    })
}

/// Takes the place of the command.
pub(crate) fn run_again(ctx: &mut Ctx<'_>, _: &[&[u8]]) -> CommandResult {
    ctx.flow = Flow::Again;
    Ok(())
}

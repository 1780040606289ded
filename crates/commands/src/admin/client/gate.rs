//! `CLIENT GATE`: how far a change must have got before this connection sees it.
//!
//! Ladon's own command. A connection that needs more or less certainty than the server's default
//! asks for it. From the next command on, its replies wait for that gate, whichever connection made
//! the change that they show.

use ladon_kernel::command::args::is;
use ladon_kernel::command::error::{CommandError, CommandResult, shown};
use ladon_kernel::ctx::Ctx;
use ladon_record::Gate;

pub(super) fn gate(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    match args[2..] {
        [] => {
            let gate = ctx.session.gate.unwrap_or_else(|| ctx.node.settings.gate());
            ctx.reply.bulk(gate.name());
        }
        [name] => {
            let gate = named(name)?;
            if gate == Some(Gate::Quorum) && !ctx.node.settings.cluster_enabled() {
                return Err(CommandError::text(
                    "ERR the gate quorum is for nodes of a cluster (cluster-enabled)",
                ));
            }
            ctx.session.gate = gate;
            ctx.reply.ok();
        }
        _ => return Err(CommandError::Syntax),
    }
    Ok(())
}

/// `None` is the server's default at any given time.
fn named(name: &[u8]) -> Result<Option<Gate>, CommandError> {
    if is(name, "default") {
        return Ok(None);
    }
    Gate::ALL.into_iter().find(|gate| is(name, gate.name())).map(Some).ok_or_else(|| {
        CommandError::err(format_args!(
            "unknown gate '{}', use none, write, everysec, fsync, quorum or default",
            shown(name)
        ))
    })
}

//! WAIT and WAITAOF: wait until a connection's changes are replicated or on the disk.
//!
//! The replicas are the other members of the node's cluster; without one there are none, and a wait
//! for any ends at its timeout. What a member acknowledges is on its disk. For this node, `WAITAOF`
//! reports the log's durable position, whatever the gate.

use ladon_kernel::client::session::{Blocked, BlockedKind, LogWait};
use ladon_kernel::command::args;
use ladon_kernel::command::error::{CommandError, CommandResult};
use ladon_kernel::command::spec::{Code, LockNeed};
use ladon_kernel::ctx::Ctx;
use ladon_kernel::request::outcome::Flow;
use ladon_record::Lsn;
use std::sync::Arc;

pub(crate) const COMMANDS: &[Code] = &[
    Code::with_locks("wait", LockNeed::None, wait),
    Code::with_locks("waitaof", LockNeed::None, waitaof),
];

fn wait(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let replicas = args::integer(args[1])?;
    let deadline_ms = args::timeout(args[2], ctx.now_ms)?;
    has_replicas(ctx, "WAIT cannot be used with replica instances")?;
    let written = ctx.session.last_write;
    let have = ctx.node.durability.others_have(written) as i64;
    if replicas <= have || ctx.in_exec {
        ctx.reply.integer(have);
        return Ok(());
    }
    let finish = BlockedKind::Wait;
    ctx.flow = Flow::Block(Blocked::Log(Box::new(LogWait {
        written,
        durable: Lsn::ZERO,
        local: false,
        replicas,
        deadline_ms,
        finish,
        claim: Arc::default(),
    })));
    Ok(())
}

fn waitaof(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let local = args::integer_between(args[1], 0, 1)?;
    let replicas = args::positive(args[2])?;
    let deadline_ms = args::timeout(args[3], ctx.now_ms)?;
    has_replicas(ctx, "WAITAOF cannot be used with replica instances")?;
    let durable = ctx.session.last_write;
    let have = ctx.node.durability.others_have(durable) as i64;
    let is_durable = ctx.node.durability.durable() >= durable;
    let enough = replicas <= have && (local == 0 || is_durable);
    if enough || ctx.in_exec {
        ctx.reply.array(2);
        ctx.reply.integer(i64::from(is_durable));
        ctx.reply.integer(have);
        return Ok(());
    }
    let finish = BlockedKind::WaitAof;
    ctx.flow = Flow::Block(Blocked::Log(Box::new(LogWait {
        written: durable,
        durable,
        local: local != 0,
        replicas,
        deadline_ms,
        finish,
        claim: Arc::default(),
    })));
    Ok(())
}

/// Only the leader knows what the others have.
fn has_replicas(ctx: &Ctx<'_>, why: &str) -> CommandResult {
    match ctx.node.role.get().is_replica() {
        true => Err(CommandError::err(why)),
        false => Ok(()),
    }
}

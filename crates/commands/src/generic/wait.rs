//! WAIT and WAITAOF: wait until a connection's changes are replicated or on the disk.
//!
//! There are no replicas yet, so a wait for any ends at its timeout. For this node, `WAITAOF`
//! reports the log's durable position, whatever the gate.

use ladon_kernel::client::session::{Blocked, BlockedKind, LogWait};
use ladon_kernel::command::args;
use ladon_kernel::command::error::CommandResult;
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
    if replicas <= 0 || ctx.in_exec {
        ctx.reply.integer(0);
        return Ok(());
    }
    let finish = BlockedKind::Wait;
    ctx.flow = Flow::Block(Blocked::Log(Box::new(LogWait {
        durable: Lsn::ZERO,
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
    let durable = ctx.session.last_write;
    let is_durable = ctx.node.durability.durable() >= durable;
    let enough = replicas == 0 && (local == 0 || is_durable);
    if enough || ctx.in_exec {
        ctx.reply.array(2);
        ctx.reply.integer(i64::from(is_durable));
        ctx.reply.integer(0);
        return Ok(());
    }
    let finish = BlockedKind::WaitAof;
    ctx.flow = Flow::Block(Blocked::Log(Box::new(LogWait {
        durable,
        replicas,
        deadline_ms,
        finish,
        claim: Arc::default(),
    })));
    Ok(())
}

//! The connection itself: PING, ECHO, SELECT and the like.

mod auth;
mod hello;

use crate::shared::databases;
use ladon_kernel::client::session::ReplyMode;
use ladon_kernel::command::accessed::Databases;
use ladon_kernel::command::error::{CommandError, CommandResult};
use ladon_kernel::command::flags::Flags;
use ladon_kernel::command::spec::{Code, LockNeed};
use ladon_kernel::ctx::Ctx;
use ladon_kernel::pubsub::joining;
use ladon_kernel::request::outcome::Flow;
use ladon_kernel::request::watched;
use ladon_kernel::tracking;
use ladon_resp::Proto;
use std::sync::atomic::Ordering::Relaxed;

pub(crate) const COMMANDS: &[Code] = &[
    Code::with_locks("ping", LockNeed::None, ping).with(Flags::WHILE_SUBSCRIBED),
    Code::with_locks("echo", LockNeed::None, echo),
    Code::with_locks("select", LockNeed::None, select)
        .on_databases(Databases::Named(|args| databases::at(args, &[1]))),
    Code::with_locks("quit", LockNeed::None, quit)
        .with(Flags::NOT_QUEUED.or(Flags::WHILE_SUBSCRIBED)),
    Code::with_locks("reset", LockNeed::Own, reset)
        .with(Flags::NOT_QUEUED.or(Flags::WHILE_SUBSCRIBED)),
    Code::with_locks("auth", LockNeed::None, auth::auth),
    Code::with_locks("hello", LockNeed::None, hello::hello),
];

fn ping(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    if args.len() <= 2 && ctx.session.is_subscribed() && ctx.session.proto == Proto::Resp2 {
        ctx.reply.array(2);
        ctx.reply.bulk("pong");
        ctx.reply.bulk(args.get(1).copied().unwrap_or_default());
        return Ok(());
    }
    match args {
        // `simple` looks for line ends in it, which takes longer than the rest of a PING.
        [_] => ctx.reply.raw(b"+PONG\r\n"),
        [_, message] => ctx.reply.bulk(message),
        _ => return Err(CommandError::err("wrong number of arguments for 'ping' command")),
    }
    Ok(())
}

fn echo(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    ctx.reply.bulk(args[1]);
    Ok(())
}

fn select(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    ctx.session.db = ctx.database_number(args[1])?;
    ctx.reply.ok();
    Ok(())
}

fn quit(ctx: &mut Ctx<'_>, _args: &[&[u8]]) -> CommandResult {
    ctx.reply.ok();
    ctx.flow = Flow::Close;
    Ok(())
}

/// Resets everything as on a new connection, except the name of the client library.
fn reset(ctx: &mut Ctx<'_>, _args: &[&[u8]]) -> CommandResult {
    watched::abandon(ctx);
    joining::abandon(ctx.node, ctx.local, ctx.session);
    tracking::joining::turn_off(ctx.node, ctx.local, ctx.session);
    let session = &mut *ctx.session;
    if session.monitor {
        session.monitor = false;
        session.info.monitor.store(false, Relaxed);
        ctx.node.clients.remove_monitor(session.info.id);
    }
    session.db = 0;
    session.proto = Proto::Resp2;
    ctx.reply.set_proto(Proto::Resp2);
    session.log_out(ctx.node);
    session.info.set_name(&session.info.name, b"");
    // A command that CLIENT REPLY SKIP has silenced stays silent, this one included.
    if session.reply_mode != ReplyMode::Skip {
        session.reply_mode = ReplyMode::On;
    }
    session.gate = None;
    session.no_touch = false;
    session.info.no_touch.store(false, Relaxed);
    session.info.no_evict.store(false, Relaxed);
    ctx.reply.simple("RESET");
    Ok(())
}

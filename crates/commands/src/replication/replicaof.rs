//! `REPLICAOF`, and its old name: the server follows another one, or nobody. `FAILOVER`: one of its
//! replicas takes over, and the server follows that one.

use ladon_kernel::command::args::{integer, integer_or, is};
use ladon_kernel::command::error::{CommandError, CommandResult, shown};
use ladon_kernel::command::spec::{Code, LockNeed};
use ladon_kernel::ctx::Ctx;
use ladon_kernel::long::large::Large;
use ladon_kernel::long::slices::{Headed, Slices};
use ladon_kernel::replication::Place;
use ladon_kernel::request::outcome::JobKind;
use ladon_kernel::upstream::FailoverOrder;
use ladon_resp::Reply;
use ladon_settings::Primary;
use std::time::Duration;

pub(crate) const COMMANDS: &[Code] = &[
    Code::with_locks("replicaof", LockNeed::None, replicaof),
    Code::with_locks("slaveof", LockNeed::None, replicaof),
    Code::with_locks("failover", LockNeed::None, failover),
];

const NO_REPLICAS: CommandError = CommandError::text("ERR FAILOVER requires connected replicas.");

fn replicaof(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let primary = primary(args)?;
    let Some(upstream) = ctx.node.upstream.clone() else { return in_cluster(ctx, primary) };
    if primary.is_none() && upstream.view().is_none() {
        ctx.reply.ok();
        return Ok(());
    }
    if ctx.large_aside() == Large::NEVER {
        return Err(CommandError::text("ERR not inside a transaction"));
    }
    ctx.reply_later(JobKind::Errand, move |_| done(upstream.follow(primary)));
    Ok(())
}

/// The answer to an order.
pub(super) fn done(done: Result<(), String>) -> Box<dyn Slices> {
    let answer = move |reply: &mut Reply<'_>| match done {
        Ok(()) => reply.ok(),
        Err(why) => reply.error(format!("ERR {why}").replace(['\r', '\n'], " ")),
    };
    Box::new(Headed::new(answer, ()))
}

fn failover(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let upstream = ctx.node.upstream.clone();
    if ctx.node.cluster.is_some() {
        return Err(CommandError::text(
            "ERR FAILOVER not allowed in cluster mode: 'ladon cluster failover' lets another member lead",
        ));
    }
    if let [_, word] = args
        && is(word, "abort")
    {
        let upstream = upstream.ok_or(NO_REPLICAS)?;
        if ctx.large_aside() == Large::NEVER {
            return Err(CommandError::text("ERR not inside a transaction"));
        }
        ctx.reply_later(JobKind::Errand, move |_| done(upstream.abort_failover()));
        return Ok(());
    }
    let order = order(&args[1..])?;
    upstream.ok_or(NO_REPLICAS)?.fail_over(order).map_err(CommandError::err)?;
    ctx.reply.ok();
    Ok(())
}

/// `[TO host port] [FORCE] [TIMEOUT milliseconds]`, in any order.
fn order(mut words: &[&[u8]]) -> Result<FailoverOrder, CommandError> {
    let mut order = FailoverOrder::default();
    while let [word, rest @ ..] = words {
        words = match rest {
            [host, port, rest @ ..] if is(word, "to") && order.target.is_none() => {
                let host = String::from_utf8_lossy(host).into_owned();
                // A port that there is not is that of no replica.
                let port = u16::try_from(integer(port)?).unwrap_or(0);
                order.target = Some(Place { host, port });
                rest
            }
            [ms, rest @ ..] if is(word, "timeout") && order.timeout.is_none() => {
                let ms = u64::try_from(integer(ms)?).ok().filter(|&ms| ms > 0);
                let text = "ERR FAILOVER timeout must be greater than 0";
                order.timeout = Some(Duration::from_millis(ms.ok_or(CommandError::text(text))?));
                rest
            }
            rest if is(word, "force") && !order.force => {
                order.force = true;
                rest
            }
            _ => return Err(CommandError::Syntax),
        };
    }
    Ok(order)
}

/// The server to follow; `None` for nobody.
fn primary(args: &[&[u8]]) -> Result<Option<Place>, CommandError> {
    if is(args[1], "no") && is(args[2], "one") {
        return Ok(None);
    }
    let port = integer_or(args[2], 0..=65535, "ERR Invalid master port")?;
    let host = String::from_utf8_lossy(args[1]);
    let wrong = || {
        let host = shown(args[1]);
        CommandError::err(format_args!("'{host}' and {port} are no host and port of a server"))
    };
    let Primary { host, port } = Primary::of(&format!("{host} {port}")).ok_or_else(wrong)?;
    Ok(Some(Place { host, port }))
}

/// In a cluster, its leader says who follows; elsewhere, nobody does.
fn in_cluster(ctx: &mut Ctx<'_>, primary: Option<Place>) -> CommandResult {
    if ctx.node.cluster.is_none() {
        return match primary {
            Some(_) => Err(CommandError::text("ERR this server can follow nobody")),
            None => {
                ctx.reply.ok();
                Ok(())
            }
        };
    }
    if primary.is_some() {
        return Err(CommandError::text(
            "ERR a node of a cluster follows its leader: 'ladon cluster add-node MEMBER THIS \
             --replica' makes a node that does",
        ));
    }
    if !ctx.node.role.is_free() {
        return Err(CommandError::text(
            "ERR this node follows the leader of its cluster: 'ladon cluster failover' lets it \
             lead, 'ladon cluster remove-node' lets it go",
        ));
    }
    ctx.reply.ok();
    Ok(())
}

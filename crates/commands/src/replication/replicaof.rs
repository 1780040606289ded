//! `REPLICAOF`, and its old name: the server follows another one, or nobody.

use ladon_kernel::command::args::{integer_or, is};
use ladon_kernel::command::error::{CommandError, CommandResult, shown};
use ladon_kernel::command::spec::{Code, LockNeed};
use ladon_kernel::ctx::Ctx;
use ladon_kernel::long::large::Large;
use ladon_kernel::long::slices::Headed;
use ladon_kernel::replication::Place;
use ladon_kernel::request::outcome::JobKind;
use ladon_kernel::upstream::Upstream;
use ladon_resp::Reply;
use ladon_settings::Primary;
use std::sync::Arc;

pub(crate) const COMMANDS: &[Code] = &[
    Code::with_locks("replicaof", LockNeed::None, replicaof),
    Code::with_locks("slaveof", LockNeed::None, replicaof),
];

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
    ctx.reply_later(JobKind::Errand, move |_| obey(&upstream, primary));
    Ok(())
}

fn obey(
    upstream: &Arc<dyn Upstream>,
    primary: Option<Place>,
) -> Box<dyn ladon_kernel::long::slices::Slices> {
    let done = upstream.follow(primary);
    let answer = move |reply: &mut Reply<'_>| match done {
        Ok(()) => reply.ok(),
        Err(why) => reply.error(format!("ERR {why}").replace(['\r', '\n'], " ")),
    };
    Box::new(Headed::new(answer, ()))
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

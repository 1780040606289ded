//! Small questions to the server: `TIME`, `ROLE` and `LOLWUT`.

use ladon_kernel::command::args::{self, is};
use ladon_kernel::command::error::CommandResult;
use ladon_kernel::command::spec::{Code, LockNeed};
use ladon_kernel::ctx::Ctx;

use ladon_kernel::node::{LADON_VERSION, REDIS_VERSION};
use ladon_kernel::replication::Place;

pub(crate) const COMMANDS: &[Code] = &[
    Code::with_locks("time", LockNeed::None, time),
    Code::with_locks("role", LockNeed::None, role),
    Code::with_locks("lolwut", LockNeed::None, lolwut),
];

fn time(ctx: &mut Ctx<'_>, _args: &[&[u8]]) -> CommandResult {
    let clock = || ctx.node.clock.unix_us();
    let now_us = match &mut ctx.local.script {
        // Time does not pass for a script.
        Some(script) if script.time_us != 0 => script.time_us,
        Some(script) => {
            script.time_us = clock();
            script.time_us
        }
        None => clock(),
    };
    ctx.reply.array(2);
    ctx.reply.bulk_int((now_us / 1_000_000) as i64);
    ctx.reply.bulk_int((now_us % 1_000_000) as i64);
    Ok(())
}

/// A node without a cluster is a master without replicas.
fn role(ctx: &mut Ctx<'_>, _args: &[&[u8]]) -> CommandResult {
    let replication = ctx.node.replication();
    let reply = &mut ctx.reply;
    let Some(replication) = replication else {
        reply.array(3);
        reply.bulk("master");
        reply.integer(ctx.node.durability.reserved().0 as i64);
        reply.array(0);
        return Ok(());
    };
    if !replication.is_master {
        let link = replication.link.as_ref();
        let known = link.map(|link| link.primary.clone());
        let Place { host, port } = known.or_else(|| replication.master.clone()).unwrap_or_default();
        let is_up = replication.master.is_some();
        let state = link.map_or(if is_up { "connected" } else { "connect" }, |it| it.state.name());
        reply.array(5);
        reply.bulk("slave");
        reply.bulk(host);
        reply.integer(port.into());
        reply.bulk(state);
        reply.integer(replication.view.applied.0 as i64);
        return Ok(());
    }
    reply.array(3);
    reply.bulk("master");
    reply.integer(replication.offset.0 as i64);
    reply.array(replication.replicas.len());
    for replica in &replication.replicas {
        reply.array(3);
        reply.bulk(&replica.place.host);
        reply.bulk(replica.place.port.to_string());
        reply.bulk(replica.has.unwrap_or_default().min(replication.offset).to_string());
    }
    Ok(())
}

const DRAGON: &str = r"
         o   o   o     <-- one of a hundred
          \  |  /
       o\  \ | /  /o
          `-.'|'.-'
       o---.__|__.---o
             /^\
     ___.---'   '---.___
    /  .-~~~-.  .-~~-.  \~~~~-.__
    \_/       \/      \_/        `>
";

/// Redis' drawing depends on the requested version; Ladon has one dragon for all.
fn lolwut(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    if let [_, version, number, ..] = args
        && is(version, "version")
    {
        args::integer(number)?;
    }
    let text = format!("{DRAGON}\nLadon ver. {LADON_VERSION} (Redis ver. {REDIS_VERSION})\n");
    ctx.reply.verbatim(*b"txt", text);
    Ok(())
}

//! `CLIENT LIST` and `CLIENT INFO`.

use super::{Class, class};
use ladon_kernel::client::clients::ClientInfo;
use ladon_kernel::client::line;
use ladon_kernel::command::args::is;
use ladon_kernel::command::error::{CommandError, CommandResult};
use ladon_kernel::ctx::Ctx;
use ladon_resp::parse_i64;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

pub(super) fn info(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let shown = vec![Arc::clone(&ctx.session.info)];
    reply(ctx, args, &shown);
    Ok(())
}

pub(super) fn list(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let clients = &ctx.node.clients;
    let shown = match args {
        [_, _] => clients.list(),
        [_, _, filter, kind] if is(filter, "TYPE") => {
            let class = class(kind)?;
            let mut found = clients.list();
            found.retain(|info| Class::of(info) == class);
            found
        }
        [_, _, filter, ids @ ..] if is(filter, "ID") && !ids.is_empty() => {
            let mut found = Vec::new();
            for id in ids {
                let id = parse_i64(id).ok_or(CommandError::text("ERR Invalid client ID"))?;
                found.extend(u64::try_from(id).ok().and_then(|id| clients.find(id)));
            }
            found
        }
        _ => return Err(CommandError::Syntax),
    };
    reply(ctx, args, &shown);
    Ok(())
}

fn reply(ctx: &mut Ctx<'_>, args: &[&[u8]], shown: &[Arc<ClientInfo>]) {
    line::refresh(ctx, args);
    let mut text = String::new();
    // Hide disconnecting clients, which are gone as far as clients can see.
    for info in shown.iter().filter(|info| !info.is_gone()) {
        line::write(ctx.node, ctx.now_ms, info, &mut text);
        text.push('\n');
    }
    ctx.session.info.argv_bytes.store(0, Relaxed);
    ctx.session.info.query_bytes.store(0, Relaxed);
    ctx.reply.verbatim(*b"txt", text);
}

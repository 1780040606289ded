//! `CLIENT KILL`.

use super::{Class, class};
use ladon_kernel::client::clients::ClientInfo;
use ladon_kernel::command::args::{self, is};
use ladon_kernel::command::error::{CommandError, CommandResult, shown};
use ladon_kernel::ctx::Ctx;
use ladon_kernel::message::Message;
use ladon_kernel::request::outcome::Flow;
use std::sync::atomic::Ordering::Relaxed;

/// Which connections to kill: all given conditions must hold.
#[derive(Default)]
struct Filter<'a> {
    id: Option<u64>,
    addr: Option<&'a [u8]>,
    laddr: Option<&'a [u8]>,
    user: Option<&'a [u8]>,
    class: Option<Class>,
    /// Connected this many seconds ago or earlier (Redis 7.4).
    max_age: Option<u64>,
    skip_me: bool,
}

pub(super) fn kill(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    if let [_, _, addr] = args {
        // The old form, which may match the connection itself.
        if kill_all(ctx, &Filter { addr: Some(addr), ..Filter::default() }) == 0 {
            return Err(CommandError::text("ERR No such client"));
        }
        ctx.reply.ok();
    } else {
        let killed = kill_all(ctx, &Filter::read(ctx, &args[2..])?);
        ctx.reply.integer(killed);
    }
    Ok(())
}

/// Kills the connections that match the filter; returns how many.
fn kill_all(ctx: &mut Ctx<'_>, filter: &Filter<'_>) -> i64 {
    let own = ctx.session.info.id;
    let mut killed = 0;
    let mut threads = Vec::new();
    for info in ctx.node.clients.list() {
        if !filter.fits(&info, ctx.now_ms) || filter.skip_me && info.id == own {
            continue;
        }
        if info.id == own {
            ctx.flow = Flow::Close;
            killed += 1;
        } else if !info.killed.swap(true, Relaxed) {
            if let Some(claim) = &*info.claim.lock() {
                // From here on, no thread can serve its wait.
                claim.take();
            }
            threads.push(info.thread);
            // A connection that is already closing is not counted, but need not have read its last
            // reply first.
            killed += i64::from(!info.leaving.load(Relaxed));
        }
    }
    threads.sort_unstable();
    threads.dedup();
    for thread in threads {
        ctx.node.threads[thread].send(Message::Kill);
    }
    killed
}

impl<'a> Filter<'a> {
    fn read(ctx: &Ctx<'_>, args: &[&'a [u8]]) -> Result<Filter<'a>, CommandError> {
        let mut filter = Filter { skip_me: true, ..Filter::default() };
        let mut args = args.iter().copied();
        while let Some(option) = args.next() {
            let Some(value) = args.next() else { return Err(CommandError::Syntax) };
            if is(option, "ID") {
                let text = "ERR client-id should be greater than 0";
                filter.id = Some(args::integer_or(value, 1.., text)? as u64);
            } else if is(option, "TYPE") {
                filter.class = Some(class(value)?);
            } else if is(option, "MAXAGE") {
                args::integer_or(value, .., "ERR maxage is not an integer or out of range")?;
                let text = "ERR maxage should be greater than 0";
                filter.max_age = Some(args::integer_or(value, 1.., text)? as u64);
            } else if is(option, "ADDR") {
                filter.addr = Some(value);
            } else if is(option, "LADDR") {
                filter.laddr = Some(value);
            } else if is(option, "USER") {
                if ctx.node.accounts.users().get(value).is_none() {
                    return Err(CommandError::err(format_args!("No such user '{}'", shown(value))));
                }
                filter.user = Some(value);
            } else if is(option, "SKIPME") && (is(value, "yes") || is(value, "no")) {
                filter.skip_me = is(value, "yes");
            } else {
                return Err(CommandError::Syntax);
            }
        }
        Ok(filter)
    }

    fn fits(&self, info: &ClientInfo, now_ms: u64) -> bool {
        let age = now_ms.saturating_sub(info.created_ms) / 1000;
        self.id.is_none_or(|id| info.id == id)
            && self.max_age.is_none_or(|seconds| age >= seconds)
            && self.addr.is_none_or(|addr| info.addr.as_bytes() == addr)
            && self.user.is_none_or(|user| *info.user() == *user)
            && self.laddr.is_none_or(|laddr| info.laddr.as_bytes() == laddr)
            && self.class.is_none_or(|class| class == Class::of(info))
    }
}

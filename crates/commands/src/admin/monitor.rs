//! `MONITOR`: showing a connection what all others have executed.

use crate::kernel::clients::Monitor;
use crate::kernel::ctx::{Ctx, Local};
use crate::kernel::error::{CommandError, CommandResult};
use crate::kernel::node::Node;
use crate::kernel::secrets;
use crate::kernel::session::Session;
use crate::kernel::spec::{CommandSpec, Flags, LockNeed};
use ladon_model::Lsn;
use std::sync::atomic::Ordering::Relaxed;

const FLAGS: Flags = Flags::ADMIN.or(Flags::NOSCRIPT).or(Flags::LOADING).or(Flags::STALE);

pub(crate) const COMMANDS: &[CommandSpec] =
    &[CommandSpec::without_keys("monitor", 1, FLAGS, LockNeed::None, monitor)];

fn monitor(ctx: &mut Ctx<'_>, _args: &[&[u8]]) -> CommandResult {
    if ctx.in_exec {
        // What the transaction shows would stand in the middle of its own reply.
        return Err(CommandError::text("ERR MONITOR isn't allowed for DENY BLOCKING client"));
    }
    ctx.session.monitor = true;
    ctx.session.info.monitor.store(true, Relaxed);
    let (client, thread) = (ctx.session.info.id, ctx.local.thread);
    ctx.node.clients.add_monitor(Monitor { client, thread, slot: ctx.session.info.slot });
    ctx.reply.ok();
    Ok(())
}

/// Notes what a client had executed, for everybody who monitors. What administers the server is not
/// shown, and no password. [`show`] follows once it is committed.
#[cold]
pub(crate) fn note(
    node: &Node,
    local: &mut Local,
    session: &Session,
    spec: &CommandSpec,
    args: &[&[u8]],
) {
    if spec.flags.has(Flags::SKIP_MONITOR) || spec.flags.has(Flags::ADMIN) {
        return;
    }
    let now_us = node.clock.unix_us();
    let unix = if session.info.unix { "unix:" } else { "" };
    let mut line = format!(
        "+{}.{:06} [{} {unix}{}]",
        now_us / 1_000_000,
        now_us % 1_000_000,
        session.db,
        session.info.addr
    );
    for arg in secrets::shown(args) {
        line.push(' ');
        quote(arg, &mut line);
    }
    line.push_str("\r\n");
    local.monitored.push(line.into_bytes().into());
}

/// Shows what was noted, which depends on `depends`.
#[cold]
pub(crate) fn show(node: &Node, local: &mut Local, depends: Lsn) {
    node.feed_monitors(&local.monitored, depends);
    local.monitored.clear();
}

/// Writes bytes as a quoted string, whatever they are.
pub(crate) fn quote(bytes: &[u8], line: &mut String) {
    line.push('"');
    for &byte in bytes {
        match byte {
            b'\\' | b'"' => line.extend(['\\', char::from(byte)]),
            b'\n' => line.push_str("\\n"),
            b'\r' => line.push_str("\\r"),
            b'\t' => line.push_str("\\t"),
            0x07 => line.push_str("\\a"),
            0x08 => line.push_str("\\b"),
            0x20..=0x7e => line.push(char::from(byte)),
            _ => line.push_str(&format!("\\x{byte:02x}")),
        }
    }
    line.push('"');
}

#[cfg(test)]
mod tests {
    use super::quote;

    #[test]
    fn any_bytes_can_be_shown() {
        let mut line = String::new();
        quote(b"a\"b\\\n\r\t\x07\x08\x00\xff ", &mut line);
        assert_eq!(line, r#""a\"b\\\n\r\t\a\b\x00\xff ""#);
    }
}

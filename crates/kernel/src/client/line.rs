//! A connection in one line, as `CLIENT LIST` and `CLIENT INFO` show it.

use super::clients::ClientInfo;
use super::session::Multi;
use crate::ctx::Ctx;
use crate::node::Node;
use crate::pubsub::published::Kind;
use std::sync::atomic::Ordering::Relaxed;

/// Up to this size Redis keeps replies in a separate buffer (`obl`), beyond it in a list (`oll`).
const REPLY_BUFFER_BYTES: usize = 16 * 1024;

/// Updates what others may see of this connection, for a line in the middle of a batch.
pub fn refresh(ctx: &Ctx<'_>, args: &[&[u8]]) {
    let session = &*ctx.session;
    let info = &*session.info;
    info.last_active_ms.store(ctx.now_ms, Relaxed);
    info.db.store(session.db, Relaxed);
    info.resp.store(session.proto.number(), Relaxed);
    if !ctx.in_exec {
        // EXEC published it before it took the queue.
        Multi::publish(session.multi.as_deref(), info);
    }
    // Replies to earlier requests of the same batch are still here. The client has read what was
    // sent before, or is about to.
    info.output_bytes.store(ctx.reply.position(), Relaxed);
    info.watched.store(session.watched.len() as u32, Relaxed);
    info.argv_bytes.store(args.iter().map(|arg| arg.len()).sum(), Relaxed);
    // The request stays in the buffer until it has run.
    info.query_bytes.fetch_max(request_bytes(args), Relaxed);
}

/// Length of a request in RESP.
fn request_bytes(args: &[&[u8]]) -> usize {
    let header = |length: usize| length.checked_ilog10().unwrap_or(0) as usize + 1 + 3;
    header(args.len()) + args.iter().map(|arg| header(arg.len()) + arg.len() + 2).sum::<usize>()
}

/// Appends the line, without its end.
pub fn write(node: &Node, now_ms: u64, info: &ClientInfo, out: &mut String) {
    use std::fmt::Write;
    let age = now_ms.saturating_sub(info.created_ms) / 1000;
    let idle = now_ms.saturating_sub(info.last_active_ms.load(Relaxed)) / 1000;
    let load = |field: &std::sync::atomic::AtomicUsize| field.load(Relaxed);
    let (query, query_capacity) = (load(&info.query_bytes), load(&info.query_capacity));
    let (argv, multi_bytes) = (load(&info.argv_bytes), load(&info.multi_bytes));
    let output = load(&info.output_bytes);
    let listed = output > REPLY_BUFFER_BYTES;
    let command = info.last_command().map_or("NULL", |id| &node.table.entry(id).full_name);
    let total = info.bytes();
    let text =
        |field: &parking_lot::Mutex<Vec<u8>>| String::from_utf8_lossy(&field.lock()).into_owned();
    let subscriptions = |kind: Kind| info.subscriptions[kind as usize].load(Relaxed);
    // Writing to a string cannot fail.
    let _ = write!(
        out,
        "id={} addr={} laddr={} fd={} name={} age={age} idle={idle} flags={} db={} sub={} psub={} \
         ssub={} multi={} qbuf={query} qbuf-free={} argv-mem={argv} multi-mem={multi_bytes} \
         rbs={} rbp={} obl={} oll={} omem={} tot-mem={total} events={} cmd={command} \
         user={} redir={} resp={} lib-name={} lib-ver={}",
        info.id,
        info.addr,
        info.laddr,
        info.fd,
        text(&info.name),
        flags(info),
        info.db.load(Relaxed),
        subscriptions(Kind::Channel),
        subscriptions(Kind::Pattern),
        subscriptions(Kind::Shard),
        info.multi.load(Relaxed),
        query_capacity.saturating_sub(query),
        load(&info.output_capacity),
        load(&info.output_peak),
        if listed { 0 } else { output },
        if listed { output.div_ceil(REPLY_BUFFER_BYTES) } else { 0 },
        if listed { output } else { 0 },
        if info.writing.load(Relaxed) { "rw" } else { "r" },
        String::from_utf8_lossy(&info.user()),
        if info.tracked.load(Relaxed) { info.redirect.load(Relaxed) as i64 } else { -1 },
        info.resp.load(Relaxed).max(2),
        text(&info.lib_name),
        text(&info.lib_ver),
    );
}

fn flags(info: &ClientInfo) -> String {
    let watched = info.watch_flag.lock();
    let dirty = watched.as_ref().is_some_and(|flag| flag.is_touched());
    let flags: String = [
        (info.is_replica.load(Relaxed), 'S'),
        (info.monitor.load(Relaxed), 'O'),
        (info.is_subscribed(), 'P'),
        (info.multi.load(Relaxed) >= 0, 'x'),
        (info.blocked.load(Relaxed), 'b'),
        (info.tracked.load(Relaxed), 't'),
        (info.redirect_broken.load(Relaxed), 'R'),
        (info.tracked_by_prefix.load(Relaxed), 'B'),
        (dirty, 'd'),
        (info.unix, 'U'),
        (info.no_evict.load(Relaxed), 'e'),
        (info.no_touch.load(Relaxed), 'T'),
    ]
    .into_iter()
    .filter_map(|(holds, flag)| holds.then_some(flag))
    .collect();
    if flags.is_empty() { "N".to_owned() } else { flags }
}

#[cfg(test)]
mod tests {
    use super::request_bytes;

    #[test]
    fn a_request_is_as_long_as_on_the_wire() {
        for args in [&[&b"client"[..], b"list"][..], &[b""], &[&[0; 1000], b"0123456789"]] {
            let mut wire = Vec::new();
            ladon_resp::client::write_request(&mut wire, args);
            assert_eq!(request_bytes(args), wire.len());
        }
    }
}

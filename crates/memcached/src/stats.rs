//! `stats`: what Ladon has to say in memcached's names.
//!
//! Requests are counted where they come by memcached's protocols; items, bytes, connections, and what
//! has expired or was evicted, are the whole server's. What memcached counts and Ladon does not is
//! left out.

use crate::MEMCACHED_VERSION;
use crate::output::Output;
use crate::running::{Ended, Running};
use ladon_kernel::node::Node;
use ladon_kernel::statistics::counter::Counter;
use ladon_kernel::statistics::item_counts::ItemCounts;
use ladon_kernel::statistics::key_prefixes::PrefixCounts;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// A name and its value.
pub(crate) type Fact = (String, String);

/// What there is no such thing of.
pub(crate) enum NoStats {
    /// memcached knows it no more than this.
    Unknown,
    /// memcached has it, and Ladon does not.
    Refused(&'static str),
}

/// Runs `stats`.
pub(crate) fn text(
    running: &mut Running<'_, '_>,
    of: &[u8],
    out: &mut Output<'_>,
) -> Result<(), Ended> {
    if of == b"reset" {
        reset(running)?;
        out.line("RESET");
        return Ok(());
    }
    if let Some(of) = of.strip_prefix(b"detail") {
        return detail(running, of, out);
    }
    match facts(running, of)? {
        Ok(facts) => {
            for (name, value) in facts {
                out.line(&format!("STAT {name} {value}"));
            }
            out.line("END");
        }
        Err(NoStats::Unknown) => out.line("ERROR"),
        Err(NoStats::Refused(why)) => out.line(why),
    }
    Ok(())
}

/// Sets the counters back to zero.
pub(crate) fn reset(running: &mut Running<'_, '_>) -> Result<(), Ended> {
    running.run(&[b"config", b"resetstat"], None, |ctx| {
        ctx.node.reset_stats();
        ctx.node.key_prefixes.reset();
    })
}

/// What `stats detail` is asked to do.
enum Detail {
    /// To count, or to stop.
    Turn(bool),
    /// To show the counts.
    Dump,
}

const DETAIL_USAGE: &str = "CLIENT_ERROR usage: stats detail on|off|dump";

impl Detail {
    /// What the words behind `detail` say; others may follow the first.
    fn of(words: &[u8]) -> Option<Detail> {
        let mut words = words.split(|&byte| byte == b' ').filter(|word| !word.is_empty());
        Some(match words.next()? {
            b"on" => Detail::Turn(true),
            b"off" => Detail::Turn(false),
            b"dump" => Detail::Dump,
            _ => return None,
        })
    }
}

fn detail(running: &mut Running<'_, '_>, words: &[u8], out: &mut Output<'_>) -> Result<(), Ended> {
    match Detail::of(words) {
        None => out.line(DETAIL_USAGE),
        Some(Detail::Turn(on)) => {
            turn_detail(running, on)?;
            out.line("OK");
        }
        Some(Detail::Dump) => {
            out.raw(detail_dump(running)?);
            out.line("END");
        }
    }
    Ok(())
}

/// Counts requests by the prefix of their keys from now on, or no more.
fn turn_detail(running: &mut Running<'_, '_>, on: bool) -> Result<(), Ended> {
    let word = if on { b"on" as &[u8] } else { b"off" };
    let args = [b"config" as &[u8], b"set", b"stats-detail", word];
    running.run(&args, None, |ctx| ctx.node.key_prefixes.turn(on))
}

fn detail_dump(running: &mut Running<'_, '_>) -> Result<String, Ended> {
    let counts = running.run(&[b"info"], None, |ctx| ctx.node.key_prefixes.counts())?;
    let mut lines = String::new();
    let mut line = |prefix: &str, of: PrefixCounts| {
        let PrefixCounts { gets, hits, sets, deletes } = of;
        lines += &format!("PREFIX {prefix} get {gets} hit {hits} set {sets} del {deletes}\r\n");
    };
    for (prefix, counts) in counts.known {
        line(&String::from_utf8_lossy(&prefix), counts);
    }
    if counts.others != PrefixCounts::default() {
        line(OTHER_PREFIXES, counts.others);
    }
    Ok(lines)
}

/// As which prefix those are shown that are too many.
const OTHER_PREFIXES: &str = "(others)";

/// What `stats` with this argument says.
pub(crate) fn facts(
    running: &mut Running<'_, '_>,
    of: &[u8],
) -> Result<Result<Vec<Fact>, NoStats>, Ended> {
    let word = of.split(|&byte| byte == b' ').next().unwrap_or_default();
    Ok(Ok(match word {
        b"" => general(running)?,
        b"settings" => running.run(&[b"config", b"get", b"*"], None, |ctx| settings(ctx.node))?,
        b"conns" => {
            let own = running.client.info.id;
            running.run(&[b"client", b"list"], None, |ctx| conns(ctx.node, own, ctx.now_ms))?
        }
        b"items" | b"slabs" | b"sizes" => {
            let keys = count_keys(running)?;
            let node = running.thread.node;
            match word {
                b"items" => items(node, keys),
                b"slabs" => slabs(node, keys),
                _ => vec![("sizes_status".to_owned(), "disabled".to_owned())],
            }
        }
        b"detail" => match Detail::of(&of[word.len()..]) {
            None => return Ok(Err(NoStats::Refused(DETAIL_USAGE))),
            Some(Detail::Dump) => {
                vec![("detailed".to_owned(), detail_dump(running)? + "END\r\n")]
            }
            Some(Detail::Turn(on)) => {
                turn_detail(running, on)?;
                Vec::new()
            }
        },
        b"cachedump" => {
            let why = "SERVER_ERROR stats cachedump: over the text protocol only";
            return Ok(Err(NoStats::Refused(why)));
        }
        _ => return Ok(Err(NoStats::Unknown)),
    }))
}

fn fact(name: &str, value: impl ToString) -> Fact {
    (name.to_owned(), value.to_string())
}

fn count_keys(running: &mut Running<'_, '_>) -> Result<usize, Ended> {
    running.run(&[b"dbsize"], None, |ctx| {
        let db = ctx.db();
        ctx.tx().len(db)
    })
}

fn general(running: &mut Running<'_, '_>) -> Result<Vec<Fact>, Ended> {
    let now_ms = running.thread.now_ms;
    running.run(&[b"info"], None, |_| ())?;
    let keys = count_keys(running)?;
    let node = running.thread.node;
    let settings = &node.settings;
    let process = node.process.facts();
    let seconds = |time: Duration| format!("{}.{:06}", time.as_secs(), time.subsec_micros());
    let mut facts = vec![
        fact("pid", std::process::id()),
        fact("uptime", now_ms.saturating_sub(node.started_ms) / 1000),
        fact("time", now_ms / 1000),
        fact("version", MEMCACHED_VERSION),
        fact("ladon_version", ladon_kernel::node::LADON_VERSION),
        fact("pointer_size", usize::BITS),
        fact("rusage_user", seconds(process.cpu_user)),
        fact("rusage_system", seconds(process.cpu_system)),
        fact("max_connections", settings.maxclients()),
        fact("curr_connections", node.clients.count()),
        fact("total_connections", node.total(|it| it.connections_received.get())),
        fact("rejected_connections", node.rejected_connections.load(Relaxed)),
    ];
    facts.extend(
        ItemCounts::ALL
            .map(|(name, counter)| fact(name, node.total(|it| counter(&it.items).get()))),
    );
    let expired = node.total(|it| it.expired_keys.get());
    facts.extend([
        fact("idle_kicks", node.total(|it| it.idle_kicks.get())),
        fact("bytes_read", node.total(|it| it.net_input_bytes.get())),
        fact("bytes_written", node.total(|it| it.net_output_bytes.get())),
        fact("limit_maxbytes", settings.maxmemory()),
        fact("accepting_conns", 1),
        // Connections that are too many are accepted, and told so.
        fact("listen_disabled_num", 0),
        fact("time_in_listen_disabled_us", 0),
        fact("threads", settings.io_threads()),
        fact("bytes", node.data_memory()),
        fact("curr_items", keys),
        fact("evictions", node.total(|it| it.evicted_keys.get())),
        fact("reclaimed", expired),
        fact(
            "crawler_reclaimed",
            expired.saturating_sub(node.total(|it| it.items.get_expired.get())),
        ),
        fact("log_watchers", node.item_watchers.count()),
    ]);
    Ok(facts)
}

fn settings(node: &Node) -> Vec<Fact> {
    let settings = &node.settings;
    let evicts = settings.maxmemory_policy().name() != "noeviction";
    vec![
        fact("maxbytes", settings.maxmemory()),
        fact("maxconns", settings.maxclients()),
        fact("num_threads", settings.io_threads()),
        fact("item_size_max", settings.proto_max_bulk_len()),
        fact("evictions", if evicts { "on" } else { "off" }),
        fact("cas_enabled", "yes"),
        fact("auth_enabled_sasl", if node.requires_login() { "yes" } else { "no" }),
        fact("auth_enabled_ascii", if node.requires_login() { "yes" } else { "no" }),
        fact("tcp_backlog", settings.tcp_backlog()),
        fact("flush_enabled", "yes"),
        fact("binding_protocol", "auto-negotiate"),
        fact("detail_enabled", if node.key_prefixes.is_on() { "yes" } else { "no" }),
        fact("idle_timeout", settings.timeout()),
        // What has expired is removed all the time.
        fact("lru_crawler", "yes"),
        fact("shutdown_command", "no"),
    ]
}

/// `own` is the client that asks.
fn conns(node: &Node, own: u64, now_ms: u64) -> Vec<Fact> {
    /// More connections would make a reply that nobody reads.
    const SHOWN_MAX: usize = 4096;
    let clients = node.clients.list();
    let shown = clients.iter().take(SHOWN_MAX);
    let facts = shown.flat_map(|client| {
        let idle = now_ms.saturating_sub(client.last_active_ms.load(Relaxed)) / 1000;
        // Redis' lists put a port behind the path of a unix socket.
        let address = |address: &str| match client.unix {
            true => format!("unix:{}", address.strip_suffix(":0").unwrap_or(address)),
            false => format!("tcp:{address}"),
        };
        let state = match client.query_bytes.load(Relaxed) {
            _ if client.id == own => "conn_parse_cmd",
            0 => "conn_read",
            _ => "conn_nread",
        };
        [
            (format!("{}:addr", client.fd), address(&client.addr)),
            (format!("{}:listen_addr", client.fd), address(&client.laddr)),
            (format!("{}:state", client.fd), state.to_owned()),
            (format!("{}:secs_since_last_cmd", client.fd), idle.to_string()),
        ]
    });
    facts.collect()
}

/// All items are of one class: memory is not kept in slabs of one size of item.
pub(crate) const CLASS: usize = 1;

fn items(node: &Node, keys: usize) -> Vec<Fact> {
    if keys == 0 {
        return Vec::new();
    }
    let total = |counter: fn(&ItemCounts) -> &Counter| node.total(|it| counter(&it.items).get());
    let of_class = |name: &str, value: u64| fact(&format!("items:{CLASS}:{name}"), value);
    vec![
        of_class("number", keys as u64),
        of_class("mem_requested", node.data_memory()),
        of_class("evicted", node.total(|it| it.evicted_keys.get())),
        of_class("reclaimed", node.total(|it| it.expired_keys.get())),
        of_class("outofmemory", total(|it| &it.store_no_memory)),
    ]
}

/// The counters that memcached has for each class.
const OF_CLASS: [&str; 8] = [
    "get_hits",
    "cmd_set",
    "delete_hits",
    "incr_hits",
    "decr_hits",
    "cas_hits",
    "cas_badval",
    "touch_hits",
];

fn slabs(node: &Node, keys: usize) -> Vec<Fact> {
    let mut facts = Vec::new();
    let memory = node.data_memory();
    if keys != 0 {
        facts.push(fact(&format!("{CLASS}:used_chunks"), keys));
        let of_class = ItemCounts::ALL.into_iter().filter(|(name, _)| OF_CLASS.contains(name));
        facts.extend(of_class.map(|(name, counter)| {
            fact(&format!("{CLASS}:{name}"), node.total(|it| counter(&it.items).get()))
        }));
    }
    facts.push(fact("active_slabs", usize::from(keys != 0)));
    facts.push(fact("total_malloced", memory + node.keyspace.slack_bytes()));
    facts
}

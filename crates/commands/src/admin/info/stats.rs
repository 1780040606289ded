//! The sections `Stats` and `Debug`.

use super::text::Text;
use ladon_kernel::ctx::Ctx;
use ladon_kernel::pubsub::published::Kind;
use ladon_kernel::statistics::stats::ThreadStats;
use std::sync::atomic::Ordering::Relaxed;

pub(super) fn write(ctx: &mut Ctx<'_>, text: &mut Text) {
    let node = ctx.node;
    let total = |counter: fn(&ThreadStats) -> u64| node.total(counter);
    let rates = node.rates();
    let kilobytes = |bytes: u64| format!("{:.2}", bytes as f64 / 1024.0);
    text.section("Stats");
    text.field("total_connections_received", total(|s| s.connections_received.get()));
    text.field("total_commands_processed", total(|s| s.commands_processed.get()));
    text.field("instantaneous_ops_per_sec", rates.commands);
    text.field("total_net_input_bytes", total(|s| s.net_input_bytes.get()));
    text.field("total_net_output_bytes", total(|s| s.net_output_bytes.get()));
    text.none_of(&["total_net_repl_input_bytes", "total_net_repl_output_bytes"]);
    text.field("instantaneous_input_kbps", kilobytes(rates.input_bytes));
    text.field("instantaneous_output_kbps", kilobytes(rates.output_bytes));
    text.field("instantaneous_input_repl_kbps", "0.00");
    text.field("instantaneous_output_repl_kbps", "0.00");
    text.field("rejected_connections", node.rejected_connections.load(Relaxed));
    text.none_of(&["sync_full", "sync_partial_ok", "sync_partial_err"]);
    text.field("expired_keys", total(|s| s.expired_keys.get()));
    text.field("expired_subkeys", total(|s| s.expired_subkeys.get()));
    // Expired keys are known exactly here, so none waits for another cycle.
    text.field("expired_stale_perc", "0.00");
    text.none_of(&["expired_time_cap_reached_count"]);
    text.field("evicted_keys", total(|s| s.evicted_keys.get()));
    text.field("evicted_clients", node.evicted_clients.load(Relaxed));
    let exceeded = node.exceeded.times_ms(ctx.now_ms);
    text.field("total_eviction_exceeded_time", exceeded.total);
    text.field("current_eviction_exceeded_time", exceeded.current);
    text.field("keyspace_hits", total(|s| s.keyspace_hits.get()));
    text.field("keyspace_misses", total(|s| s.keyspace_misses.get()));
    for (name, kind) in [
        ("pubsub_channels", Kind::Channel),
        ("pubsub_patterns", Kind::Pattern),
        ("pubsubshard_channels", Kind::Shard),
    ] {
        text.field(name, node.pubsub.names(kind));
    }
    text.none_of(&["latest_fork_usec", "total_forks"]);
    let peers = node.peers.as_ref();
    text.field("migrate_cached_sockets", peers.map_or(0, |peers| peers.idle_connections()));
    text.none_of(&["slave_expires_tracked_keys"]);
    text.field("tracking_total_keys", node.tracking.keys());
    text.field("tracking_total_items", node.tracking.items());
    text.field("tracking_total_prefixes", node.tracking.prefixes());
    text.none_of(&["unexpected_error_replies"]);
    text.field("total_error_replies", total(|s| s.error_replies.get()));
    text.field("total_reads_processed", total(|s| s.reads_processed.get()));
    text.field("total_writes_processed", total(|s| s.writes_processed.get()));
    // Sums up all threads but the first.
    let beyond = |counter: fn(&ThreadStats) -> u64| {
        node.stats.iter().skip(1).map(|stats| counter(stats)).sum::<u64>()
    };
    text.field("io_threaded_reads_processed", beyond(|s| s.reads_processed.get()));
    text.field("io_threaded_writes_processed", beyond(|s| s.writes_processed.get()));
    text.field("eventloop_cycles", total(|s| s.eventloop_cycles.get()));
    text.field("eventloop_duration_sum", total(|s| s.eventloop_nanoseconds.get()) / 1000);
    text.field("eventloop_duration_cmd_sum", total(|s| s.commands_nanoseconds.get()) / 1000);
    // Average per thread, because Redis' figure is that of one loop.
    let threads = node.stats.len().max(1) as u64;
    text.field("instantaneous_eventloop_cycles_per_sec", rates.cycles / threads);
    let cycle_us = rates.cycle_nanoseconds.checked_div(rates.cycles).unwrap_or(0) / 1000;
    text.field("instantaneous_eventloop_duration_usec", cycle_us);
    let denials = node.accounts.denials.lock().denials();
    text.field("acl_access_denied_auth", denials.auth);
    text.field("acl_access_denied_cmd", denials.command);
    text.field("acl_access_denied_key", denials.key);
    text.field("acl_access_denied_channel", denials.channel);
    text.field("acl_access_denied_db", denials.database);
}

pub(super) fn write_debug(ctx: &mut Ctx<'_>, text: &mut Text) {
    text.section("Debug");
    let longest = ctx.node.stats.iter().map(|s| s.eventloop_nanoseconds_max.get()).max();
    text.field("eventloop_duration_max", longest.unwrap_or(0) / 1000);
    let most = ctx.node.stats.iter().map(|s| s.eventloop_commands_max.get()).max();
    text.field("eventloop_cmd_per_cycle_max", most.unwrap_or(0));
}

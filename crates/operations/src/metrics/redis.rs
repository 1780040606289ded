//! The metrics under the names of redis_exporter, for dashboards and alerts that know those. What
//! Ladon has no counterpart for is absent: slots, modules, forks.

use super::census::Census;
use super::out::{Out, seconds};
use ladon_kernel::node::{Node, REDIS_VERSION};
use ladon_kernel::pubsub::published::Kind;
use ladon_kernel::replication::{Place, Replica};
use ladon_kernel::statistics::stats::{CommandStats, ThreadStats};
use ladon_record::Gate;
use std::collections::BTreeMap;
use std::fmt::Error;
use std::sync::atomic::Ordering::Relaxed;

type Done = Result<(), Error>;

pub(super) fn encode(node: &Node, census: &Census, out: &mut Out<'_>) -> Done {
    server(node, out)?;
    clients(node, census, out)?;
    memory(node, out)?;
    persistence(node, out)?;
    stats(node, out)?;
    commands(node, out)?;
    keyspace(census, out)
}

fn server(node: &Node, out: &mut Out<'_>) -> Done {
    let facts = node.process.facts();
    let port = node.settings.port().to_string();
    let info = [
        ("redis_version", REDIS_VERSION),
        ("redis_mode", "standalone"),
        ("role", if node.role.get().is_replica() { "slave" } else { "master" }),
        ("os", facts.os.as_str()),
        ("tcp_port", port.as_str()),
        ("maxmemory_policy", node.settings.maxmemory_policy().name()),
    ];
    out.gauge("redis_up", "The server answers.", 1u64)?;
    out.gauges("redis_instance_info", "Information about the server.", [(info, 1u64)])?;
    let now_ms = node.clock.unix_ms();
    let uptime = now_ms.saturating_sub(node.started_ms) / 1000;
    out.gauge("redis_uptime_in_seconds", "Since the start.", uptime)?;
    out.gauge("redis_start_time_seconds", "Unix time of the start.", node.started_ms / 1000)?;
    out.gauge("redis_process_id", "The process' number.", u64::from(facts.process_id))?;
    let (sys, user) = (facts.cpu_system.as_secs_f64(), facts.cpu_user.as_secs_f64());
    out.counter("redis_cpu_sys_seconds", "CPU time in the kernel.", sys)?;
    out.counter("redis_cpu_user_seconds", "CPU time in the program.", user)?;
    let slow = node.command_logs.slow.len();
    out.gauge("redis_slowlog_length", "Entries of the slow log.", slow)
}

fn clients(node: &Node, census: &Census, out: &mut Out<'_>) -> Done {
    let clients = census.clients;
    out.gauge("redis_connected_clients", "Connections.", clients.connected)?;
    out.gauge("redis_blocked_clients", "Connections that wait.", clients.blocked)?;
    out.gauge("redis_tracking_clients", "Tracking connections.", node.tracking.clients())?;
    let help = "Longest input buffer.";
    out.gauge("redis_client_recent_max_input_buffer_bytes", help, clients.query_bytes_max)?;
    let help = "Longest output buffer.";
    out.gauge("redis_client_recent_max_output_buffer_bytes", help, clients.output_bytes_max)?;
    out.gauge("redis_config_maxclients", "maxclients.", node.settings.maxclients())
}

fn memory(node: &Node, out: &mut Out<'_>) -> Done {
    let facts = node.process.facts();
    let used = node.used_memory();
    let fixed = node.keyspace.fixed_bytes();
    out.gauge("redis_memory_used_bytes", "What maxmemory limits.", used)?;
    out.gauge("redis_memory_used_peak_bytes", "The highest so far.", node.used_memory_peak())?;
    out.gauge("redis_memory_used_overhead_bytes", "What is not data.", node.overhead_memory())?;
    out.gauge("redis_memory_used_startup_bytes", "Of an empty server.", fixed)?;
    let data = node.data_memory().saturating_sub(fixed);
    out.gauge("redis_memory_used_dataset_bytes", "Data.", data)?;
    out.gauge("redis_memory_used_lua_bytes", "Lua's memory.", node.scripts.vm_bytes())?;
    let cached = node.scripts.cache.bytes();
    out.gauge("redis_memory_used_scripts_bytes", "Cached scripts.", cached)?;
    let count = node.scripts.cache.count();
    out.gauge("redis_number_of_cached_scripts", "Cached scripts.", count)?;
    out.gauge("redis_memory_max_bytes", "maxmemory.", node.settings.maxmemory())?;
    out.gauge("redis_config_maxmemory", "maxmemory.", node.settings.maxmemory())?;
    let help = "Memory of clients.";
    out.gauge("redis_mem_clients_normal", help, node.clients_memory())?;
    if let Some(resident) = facts.resident_bytes {
        out.gauge("redis_memory_used_rss_bytes", "Memory in RAM.", resident)?;
        let ratio = resident as f64 / used.max(1) as f64;
        out.gauge("redis_mem_fragmentation_ratio", "RSS by used memory.", ratio)?;
        let bytes = resident as i64 - used as i64;
        out.gauge("redis_mem_fragmentation_bytes", "RSS beyond used memory.", bytes)?;
    }
    let objects = node.lazy_free.pending.load(Relaxed);
    out.gauge("redis_lazyfree_pending_objects", "Values to free.", objects)
}

fn persistence(node: &Node, out: &mut Out<'_>) -> Done {
    let status = node.durability.status();
    let loading = u64::from(node.loading.is_some());
    out.gauge("redis_loading_dump_file", "1 while data is being loaded.", loading)?;
    let help = "Changes since the last checkpoint.";
    out.gauge("redis_rdb_changes_since_last_save", help, status.changes_since_checkpoint)?;
    let running = u64::from(status.checkpoint_in_progress);
    out.gauge("redis_rdb_bgsave_in_progress", "A checkpoint is being made.", running)?;
    let help = "When the last checkpoint was made.";
    out.gauge("redis_rdb_last_save_timestamp_seconds", help, status.last_checkpoint_unix)?;
    let last_ok = u64::from(status.last_checkpoint_ok);
    out.gauge("redis_rdb_last_bgsave_status", "0 if it failed.", last_ok)?;
    let last = status.last_checkpoint_seconds.map_or(-1, |seconds| seconds as i64);
    out.gauge("redis_rdb_last_bgsave_duration_sec", "How long it took.", last)?;
    let started = status.checkpoint_started_unix.filter(|_| status.checkpoint_in_progress);
    let now = node.clock.unix_ms() / 1000;
    let current = started.map_or(-1, |started| now.saturating_sub(started) as i64);
    let help = "How long the present one has taken.";
    out.gauge("redis_rdb_current_bgsave_duration_sec", help, current)?;
    let enabled = node.settings.gate() != Gate::None;
    out.gauge("redis_aof_enabled", "0 at gate none.", u64::from(enabled))?;
    out.gauge("redis_aof_rewrite_in_progress", "A checkpoint is being made.", running)?;
    let ok = u64::from(status.log_ok);
    out.gauge("redis_aof_last_write_status", "0 while the log takes no writes.", ok)?;
    out.gauge("redis_aof_last_bgrewrite_status", "As redis_rdb_last_bgsave_status.", last_ok)?;
    let size = status.log_bytes_since_checkpoint;
    out.gauge("redis_aof_current_size_bytes", "The log since the last checkpoint.", size)?;
    let base = status.last_checkpoint_bytes;
    out.gauge("redis_aof_base_size_bytes", "The last checkpoint.", base)
}

fn stats(node: &Node, out: &mut Out<'_>) -> Done {
    let total = |counter: fn(&ThreadStats) -> u64| node.total(counter);
    for (name, help, count) in [
        ("redis_commands_processed", "Commands.", total(|it| it.commands_processed.get())),
        ("redis_connections_received", "Connections.", total(|it| it.connections_received.get())),
        ("redis_keyspace_hits", "Keys found.", total(|it| it.keyspace_hits.get())),
        ("redis_keyspace_misses", "Keys not found.", total(|it| it.keyspace_misses.get())),
        ("redis_expired_keys", "Keys expired.", total(|it| it.expired_keys.get())),
        ("redis_evicted_keys", "Keys evicted.", total(|it| it.evicted_keys.get())),
        ("redis_net_input_bytes", "Bytes received.", total(|it| it.net_input_bytes.get())),
        ("redis_net_output_bytes", "Bytes sent.", total(|it| it.net_output_bytes.get())),
    ] {
        out.counter(name, help, count)?;
    }
    let rejected = node.rejected_connections.load(Relaxed);
    out.counter("redis_rejected_connections", "Connections refused.", rejected)?;
    // These are gauges there, too.
    for (name, help, count) in [
        ("redis_total_reads_processed", "Reads.", total(|it| it.reads_processed.get())),
        ("redis_total_writes_processed", "Writes.", total(|it| it.writes_processed.get())),
        ("redis_total_error_replies", "Error replies.", total(|it| it.error_replies.get())),
        ("redis_tracking_total_keys", "Keys tracked.", node.tracking.keys() as u64),
        ("redis_tracking_total_items", "Readers tracked.", node.tracking.items() as u64),
        ("redis_tracking_total_prefixes", "Prefixes tracked.", node.tracking.prefixes() as u64),
    ] {
        out.gauge(name, help, count)?;
    }
    let channels = node.pubsub.names(Kind::Channel);
    out.gauge("redis_pubsub_channels", "Channels with subscribers.", channels)?;
    let patterns = node.pubsub.names(Kind::Pattern);
    out.gauge("redis_pubsub_patterns", "Patterns with subscribers.", patterns)?;
    replication(node, out)?;
    let mut errors: BTreeMap<String, u64> = BTreeMap::new();
    for stats in node.stats.iter() {
        for (code, count) in &*stats.errors.lock() {
            *errors.entry(code.clone()).or_default() += count;
        }
    }
    let errors = errors.iter().map(|(code, &count)| ([("err", code.as_str())], count));
    out.counters("redis_errors", "Error replies.", errors)
}

fn replication(node: &Node, out: &mut Out<'_>) -> Done {
    let Some(replication) = node.replication() else {
        return out.gauge("redis_connected_slaves", "Replicas.", 0u64);
    };
    out.gauge("redis_connected_slaves", "Replicas.", replication.replicas.len())?;
    let end = replication.offset.0;
    out.gauge("redis_master_repl_offset", "The end of the log.", end)?;
    let labels = |place: &Place| [("ip", place.host.clone()), ("port", place.port.to_string())];
    let of = |replica: &Replica| (labels(&replica.place), replica.has.unwrap_or_default().0);
    let help = "What a replica has of the log.";
    out.gauges("redis_connected_slave_offset_bytes", help, replication.replicas.iter().map(of))?;
    let lag =
        |replica: &Replica| (labels(&replica.place), replica.silent.unwrap_or_default().as_secs());
    let help = "How long a replica was silent.";
    out.gauges("redis_connected_slave_lag_seconds", help, replication.replicas.iter().map(lag))?;
    if replication.is_master {
        return Ok(());
    }
    let is_up = u64::from(replication.master.is_some());
    out.gauge("redis_master_link_up", "1 while a replica hears its master.", is_up)?;
    out.gauge("redis_slave_repl_offset", "What a replica has applied.", replication.view.applied.0)
}

fn commands(node: &Node, out: &mut Out<'_>) -> Done {
    let sums = |of: fn(&CommandStats) -> u64| {
        node.table.iter().filter_map(move |(id, entry)| {
            let stats = || node.stats.iter().map(|stats| stats.command(id));
            let is_used = stats().any(|it| it.calls.get() + it.rejected.get() > 0);
            is_used.then(|| ([("cmd", entry.full_name.as_str())], stats().map(of).sum::<u64>()))
        })
    };
    out.counters("redis_commands", "Calls.", sums(|it| it.calls.get()))?;
    let rejected = sums(|it| it.rejected.get());
    out.counters("redis_commands_rejected_calls", "Refused before they ran.", rejected)?;
    let failed = sums(|it| it.failed.get());
    out.counters("redis_commands_failed_calls", "Ran and failed.", failed)?;
    let spent = sums(|it| it.nanoseconds.get()).map(|(labels, sum)| (labels, seconds(sum)));
    out.counters("redis_commands_duration_seconds", "Time of all calls.", spent)
}

fn keyspace(census: &Census, out: &mut Out<'_>) -> Done {
    let databases = census.databases();
    let label = |db: usize| [("db", format!("db{db}"))];
    let keys = databases.iter().map(|(db, keys)| (label(*db), keys.keys));
    out.gauges("redis_db_keys", "Keys, by database.", keys)?;
    let expiring = databases.iter().map(|(db, keys)| (label(*db), keys.expiring));
    out.gauges("redis_db_keys_expiring", "Keys with an expiry.", expiring)?;
    let with_expiry = databases.iter().filter(|(_, keys)| keys.expiring > 0);
    let ttl = with_expiry.map(|(db, keys)| (label(*db), keys.mean_ttl_seconds()));
    out.gauges("redis_db_avg_ttl_seconds", "Mean remaining time.", ttl)
}

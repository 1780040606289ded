//! The metrics under Ladon's own names: base units, no rates, no averages.

use super::census::Census;
use super::out::{Out, seconds};
use ladon_kernel::command::command_id::CommandId;
use ladon_kernel::node::{LADON_VERSION, Node, REDIS_VERSION};
use ladon_kernel::pubsub::published::Kind;
use ladon_kernel::replication::Replication;
use ladon_kernel::statistics::histogram::HistogramSum;
use ladon_kernel::statistics::stats::{CommandStats, ThreadStats};
use ladon_settings::Id;
use std::collections::BTreeMap;
use std::fmt::Error;
use std::sync::atomic::Ordering::Relaxed;

type Done = Result<(), Error>;

pub(super) fn encode(node: &Node, census: &Census, out: &mut Out<'_>) -> Done {
    server(node, out)?;
    process(node, out)?;
    commands(node, out)?;
    keys(node, census, out)?;
    clients(node, census, out)?;
    memory(node, out)?;
    log(node, out)?;
    checkpoints(node, out)?;
    group(node, out)?;
    threads(node, out)?;
    spaces(census, out)
}

fn server(node: &Node, out: &mut Out<'_>) -> Done {
    let labels = [
        ("version", LADON_VERSION),
        ("redis_version", REDIS_VERSION),
        ("io_backend", node.io_backend.as_str()),
    ];
    out.gauges("ladon_build_info", "Version and kind of the server.", [(labels, 1u64)])?;
    let started = node.started_ms as f64 / 1000.0;
    out.gauge("ladon_start_time_seconds", "When the server started, Unix time.", started)?;
    let (done, total) = node.loading.as_ref().map_or((0, 0), |loading| loading.bytes());
    let loading = u64::from(node.loading.is_some());
    out.gauge("ladon_loading", "1 while the data is being loaded.", loading)?;
    out.gauge("ladon_loading_read_bytes", "Bytes loaded so far.", done)?;
    out.gauge("ladon_loading_size_bytes", "Bytes to load.", total)?;
    let status = node.durability.status();
    let help = "How long the last start took to recover the data.";
    out.gauge("ladon_recovery_duration_seconds", help, status.last_recovery_seconds)?;
    let help = "Keys that the last start recovered.";
    out.gauge("ladon_recovery_keys", help, status.last_recovery_keys)
}

/// The names that every exporter has for its process.
fn process(node: &Node, out: &mut Out<'_>) -> Done {
    let facts = node.process.facts();
    let cpu = (facts.cpu_user + facts.cpu_system).as_secs_f64();
    out.counter("process_cpu_seconds", "CPU time of the process.", cpu)?;
    let help = "Files and connections that the process may have open.";
    if let Some(files) = facts.open_files_max {
        out.gauge("process_max_fds", help, files)?;
    }
    if let Some(resident) = facts.resident_bytes {
        out.gauge("process_resident_memory_bytes", "Memory in RAM.", resident)?;
    }
    Ok(())
}

/// Sum over all threads, of each command that was ever sent.
fn of_commands(node: &Node, of: impl Fn(&CommandStats) -> u64) -> Vec<([(&str, &str); 1], u64)> {
    let sum = |id: CommandId| node.stats.iter().map(|stats| of(stats.command(id))).sum();
    let all = node.table.iter().map(|(id, entry)| (entry.full_name.as_str(), sum(id)));
    let used = all.filter(|&(_, count)| count > 0);
    used.map(|(name, count)| ([("command", name)], count)).collect()
}

fn commands(node: &Node, out: &mut Out<'_>) -> Done {
    let calls = of_commands(node, |command| command.calls.get());
    out.counters("ladon_commands", "Commands that ran, also those that failed.", calls)?;
    let failed = of_commands(node, |command| command.failed.get());
    out.counters("ladon_commands_failed", "Commands that ran and failed.", failed)?;
    let rejected = of_commands(node, |command| command.rejected.get());
    let help = "Commands that were refused before they ran.";
    out.counters("ladon_commands_rejected", help, rejected)?;
    if node.settings.latency_tracking() {
        let latencies = node.table.iter().filter_map(|(id, entry)| {
            let latency = node.latency(id);
            let spent = node.stats.iter().map(|stats| stats.command(id).nanoseconds.get()).sum();
            (latency.count() > 0).then_some((entry.full_name.as_str(), latency, spent))
        });
        let help = "How long commands took, without waiting for the gate.";
        out.all_durations("ladon_command_duration_seconds", help, "command", latencies)?;
    }
    let mut errors: BTreeMap<String, u64> = BTreeMap::new();
    for stats in node.stats.iter() {
        for (code, count) in &*stats.errors.lock() {
            *errors.entry(code.clone()).or_default() += count;
        }
    }
    let errors = errors.iter().map(|(code, &count)| ([("code", code.as_str())], count));
    out.counters("ladon_error_replies", "Error replies, by their first word.", errors)
}

fn keys(node: &Node, census: &Census, out: &mut Out<'_>) -> Done {
    let databases = census.databases();
    let each = |of: fn(&super::census::Keys) -> u64| {
        databases.iter().map(move |(db, keys)| ([("db", format!("db{db}"))], of(keys)))
    };
    out.gauges("ladon_keys", "Keys, by database.", each(|keys| keys.keys))?;
    out.gauges("ladon_keys_expiring", "Keys with an expiry.", each(|keys| keys.expiring))?;
    let total = |counter: fn(&ThreadStats) -> u64| node.total(counter);
    let hits = total(|stats| stats.keyspace_hits.get());
    out.counter("ladon_key_hits", "Lookups of keys that were there.", hits)?;
    let misses = total(|stats| stats.keyspace_misses.get());
    out.counter("ladon_key_misses", "Lookups of keys that were not there.", misses)?;
    let expired = total(|stats| stats.expired_keys.get());
    out.counter("ladon_keys_expired", "Keys removed because their time was over.", expired)?;
    let fields = total(|stats| stats.expired_subkeys.get());
    let help = "Fields and members removed because their time was over.";
    out.counter("ladon_fields_expired", help, fields)?;
    let evicted = total(|stats| stats.evicted_keys.get());
    out.counter("ladon_keys_evicted", "Keys removed because of maxmemory.", evicted)
}

fn clients(node: &Node, census: &Census, out: &mut Out<'_>) -> Done {
    let clients = census.clients;
    out.gauge("ladon_clients", "Connections.", clients.connected)?;
    out.gauge("ladon_clients_limit", "maxclients.", node.settings.maxclients())?;
    let help = "Connections that wait for a key or for the log.";
    out.gauge("ladon_clients_blocked", help, clients.blocked)?;
    out.gauge("ladon_clients_subscribed", "Connections with subscriptions.", clients.subscribed)?;
    out.gauge("ladon_clients_watching", "Connections that watch keys.", clients.watching)?;
    let help = "Bytes of the longest output that a client has not read.";
    out.gauge("ladon_client_output_largest_bytes", help, clients.output_bytes_max)?;
    let total = |counter: fn(&ThreadStats) -> u64| node.total(counter);
    let received = total(|stats| stats.connections_received.get());
    out.counter("ladon_connections", "Connections accepted.", received)?;
    let refused = node.rejected_connections.load(Relaxed);
    let help = "Connections refused: maxclients, or protected mode.";
    out.counter("ladon_connections_rejected", help, refused)?;
    let evicted = node.evicted_clients.load(Relaxed);
    out.counter("ladon_clients_evicted", "Clients closed because of maxmemory-clients.", evicted)?;
    let input = total(|stats| stats.net_input_bytes.get());
    out.counter("ladon_network_received_bytes", "Bytes of requests.", input)?;
    let output = total(|stats| stats.net_output_bytes.get());
    out.counter("ladon_network_sent_bytes", "Bytes of replies.", output)?;
    let names = |kind| node.pubsub.names(kind);
    let channels = [
        ([("kind", "channel")], names(Kind::Channel)),
        ([("kind", "pattern")], names(Kind::Pattern)),
        ([("kind", "shard")], names(Kind::Shard)),
    ];
    out.gauges("ladon_pubsub_names", "Channels and patterns with subscribers.", channels)?;
    let help = "Messages published and not delivered yet, by weight.";
    out.gauge("ladon_pubsub_undelivered", help, node.pubsub.undelivered())
}

fn memory(node: &Node, out: &mut Out<'_>) -> Done {
    node.look_at_transactions();
    let used = node.used_memory();
    out.gauge("ladon_memory_used_bytes", "What maxmemory limits.", used)?;
    let help = "Highest ladon_memory_used_bytes so far.";
    out.gauge("ladon_memory_peak_bytes", help, node.used_memory_peak())?;
    let help = "maxmemory; 0 for no limit.";
    out.gauge("ladon_memory_limit_bytes", help, node.settings.maxmemory())?;
    let kinds = memory_kinds(node).map(|(kind, bytes)| ([("kind", kind)], bytes));
    out.gauges("ladon_memory_bytes", "Memory by what it is for.", kinds)
}

/// Memory by what it is for.
pub(crate) fn memory_kinds(node: &Node) -> [(&'static str, u64); 13] {
    let keyspace = &node.keyspace;
    [
        ("keys", keyspace.used_bytes()),
        ("spaces", keyspace.spaces.bytes()),
        ("tables", keyspace.fixed_bytes()),
        ("transactions", keyspace.spaces.transaction_bytes()),
        ("slack", keyspace.slack_bytes()),
        ("idle_slabs", keyspace.idle_slab_bytes()),
        ("freeing", node.lazy_free.pending_bytes()),
        ("clients", node.clients_memory()),
        ("tracking", node.tracking.bytes() as u64),
        ("functions", keyspace.library_bytes()),
        ("scripts", node.scripts.cache.bytes() as u64),
        ("lua", node.scripts.vm_bytes()),
        ("log", node.durability.status().log_backlog_bytes),
    ]
}

fn log(node: &Node, out: &mut Out<'_>) -> Done {
    let (durability, status) = (&node.durability, node.durability.status());
    let gate = [([("gate", node.settings.value(Id::gate))], 1u64)];
    out.gauges("ladon_gate_info", "The default gate.", gate)?;
    let mut waits = HistogramSum::default();
    node.stats.iter().for_each(|stats| waits.add(&stats.gate_waits.counts));
    let waited = node.total(|stats| stats.gate_waits.nanoseconds.get());
    let help = "How long replies waited for the gate, those that had to wait.";
    out.durations("ladon_gate_wait_seconds", help, (&waits, waited))?;
    let positions = [
        ([("position", "reserved")], durability.reserved().0),
        ([("position", "written")], durability.written().0),
        ([("position", "durable")], durability.durable().0),
    ];
    let help = "Bytes of changes since the log began: made, written, on the disk.";
    out.gauges("ladon_log_position_bytes", help, positions)?;
    out.gauge("ladon_log_size_bytes", "The log that is kept.", status.log_bytes)?;
    let help = "The log that the next start has to replay.";
    out.gauge("ladon_log_replay_bytes", help, status.log_bytes_since_checkpoint)?;
    let accepts = u64::from(durability.accepts_writes());
    out.gauge("ladon_log_accepts_writes", "0 while writes are refused.", accepts)?;
    let (syncs, synced) = node.sync_times.sum();
    out.durations(
        "ladon_sync_duration_seconds",
        "How long the disk took to sync.",
        (&syncs, synced),
    )
}

fn checkpoints(node: &Node, out: &mut Out<'_>) -> Done {
    let status = node.durability.status();
    out.counter("ladon_checkpoints", "Checkpoints made.", status.checkpoints_made)?;
    let help = "1 while a checkpoint is being made.";
    let running = u64::from(status.checkpoint_in_progress);
    out.gauge("ladon_checkpoint_running", help, running)?;
    let help = "How much of it is done, 0 to 1.";
    out.gauge("ladon_checkpoint_progress_ratio", help, status.checkpoint_progress)?;
    let ok = u64::from(status.last_checkpoint_ok);
    out.gauge("ladon_checkpoint_last_ok", "0 if the last checkpoint failed.", ok)?;
    let help = "When the newest checkpoint was made, Unix time.";
    out.gauge("ladon_checkpoint_time_seconds", help, status.last_checkpoint_unix)?;
    if let Some(took) = status.last_checkpoint_seconds {
        out.gauge("ladon_checkpoint_duration_seconds", "How long the last one took.", took)?;
    }
    let help = "Keys in the newest checkpoint.";
    out.gauge("ladon_checkpoint_keys", help, status.last_checkpoint_keys)?;
    let help = "Bytes of the newest checkpoint.";
    out.gauge("ladon_checkpoint_size_bytes", help, status.last_checkpoint_bytes)?;
    let help = "Changes since the newest checkpoint.";
    out.gauge("ladon_checkpoint_changes", help, status.changes_since_checkpoint)
}

/// Nodes of clusters only.
fn group(node: &Node, out: &mut Out<'_>) -> Done {
    let member = node.replication().filter(|_| node.cluster.is_some());
    let Some(Replication { view, offset, .. }) = member else { return Ok(()) };
    let role = [([("role", node.role.get().name())], 1u64)];
    out.gauges("ladon_group_role_info", "The node's role in its group.", role)?;
    out.gauge("ladon_group_term", "The term of the group's leader.", view.term)?;
    let positions = [
        ([("position", "end")], offset.0),
        ([("position", "committed")], view.committed.0),
        ([("position", "applied")], view.applied.0),
    ];
    let help = "The group's log: its end here, what is committed, what the data has.";
    out.gauges("ladon_group_position_bytes", help, positions)?;
    let lags = view.members.iter().filter_map(|member| {
        let lag = offset.0.saturating_sub(member.has?.0);
        (member.id != view.member).then(|| ([("member", member.id.to_string())], lag))
    });
    let help = "Bytes of the log that a member lacks; the leader knows.";
    out.gauges("ladon_group_lag_bytes", help, lags)?;
    let help = "How often data was read anew, because another leader's log lacks its end.";
    out.counter("ladon_group_rewinds", help, view.rewinds)?;
    let help = "Bytes of log that were taken back so.";
    out.counter("ladon_group_taken_back_bytes", help, view.taken_back_bytes)
}

fn threads(node: &Node, out: &mut Out<'_>) -> Done {
    let each = |of: fn(&ThreadStats) -> u64| {
        let stats = node.stats.iter().enumerate();
        stats.map(move |(thread, stats)| ([("thread", thread)], of(stats)))
    };
    let in_seconds = |of: fn(&ThreadStats) -> u64| {
        each(of).map(|(labels, nanoseconds)| (labels, seconds(nanoseconds)))
    };
    let busy = in_seconds(|stats| stats.eventloop_nanoseconds.get());
    let help = "Time of an IO thread's turns, without waiting.";
    out.counters("ladon_io_thread_busy_seconds", help, busy)?;
    let commands = in_seconds(|stats| stats.commands_nanoseconds.get());
    let help = "Time of an IO thread's commands.";
    out.counters("ladon_io_thread_command_seconds", help, commands)?;
    let turns = each(|stats| stats.eventloop_cycles.get());
    out.counters("ladon_io_thread_turns", "Turns of an IO thread.", turns)?;
    let commands = each(|stats| stats.commands_processed.get());
    out.counters("ladon_io_thread_commands", "Commands of an IO thread.", commands)?;
    let longest = in_seconds(|stats| stats.eventloop_nanoseconds_max.get());
    let help = "The longest turn since the start or CONFIG RESETSTAT.";
    out.gauges("ladon_io_thread_longest_turn_seconds", help, longest)
}

fn spaces(census: &Census, out: &mut Out<'_>) -> Done {
    let each = || census.spaces().map(|(_, space)| ([("space", space.name.as_str())], space));
    let tuples = each().map(|(labels, space)| (labels, space.tuples));
    out.gauges("ladon_space_tuples", "Tuples of a space.", tuples)?;
    let bytes = each().map(|(labels, space)| (labels, space.bytes));
    let help = "Memory of a space: tuples and indexes.";
    out.gauges("ladon_space_memory_bytes", help, bytes)
}

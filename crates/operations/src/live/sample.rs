//! One sample: differences of counters to the sample before, and what stands now.
//!
//! Counters are read as they are; nothing is locked that an IO thread waits for, nothing is counted.

use super::json_object::Object;
use crate::metrics::memory_kinds;
use ladon_kernel::command::command_id::CommandId;
use ladon_kernel::node::Node;
use ladon_kernel::statistics::histogram::HistogramSum;
use ladon_kernel::statistics::stats::ThreadStats;
use std::collections::HashMap;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// The time between samples.
pub(crate) const EVERY: Duration = Duration::from_secs(1);

/// Commands of a sample: those with most calls.
const COMMANDS_MAX: usize = 12;

/// Asking the system about the process reads files, so it is done once in so many samples.
const PROCESS_EVERY: u32 = 5;

const PERCENTILES: [f64; 3] = [50.0, 99.0, 99.9];

/// What only grows, over all threads.
#[derive(Clone, Default)]
struct Totals {
    received: u64,
    sent: u64,
    hits: u64,
    misses: u64,
    expired: u64,
    evicted: u64,
    connections: u64,
    errors: u64,
    log: u64,
    busy: Vec<u64>,
}

impl Totals {
    fn of(node: &Node) -> Totals {
        let total = |counter: fn(&ThreadStats) -> u64| node.total(counter);
        Totals {
            received: total(|stats| stats.net_input_bytes.get()),
            sent: total(|stats| stats.net_output_bytes.get()),
            hits: total(|stats| stats.keyspace_hits.get()),
            misses: total(|stats| stats.keyspace_misses.get()),
            expired: total(|stats| stats.expired_keys.get()),
            evicted: total(|stats| stats.evicted_keys.get()),
            connections: total(|stats| stats.connections_received.get()),
            errors: total(|stats| stats.error_replies.get()),
            log: node.durability.reserved().0,
            busy: node.stats.iter().map(|stats| stats.eventloop_nanoseconds.get()).collect(),
        }
    }
}

/// A command's counters at the sample before.
#[derive(Default)]
struct Before {
    calls: u64,
    latency: HistogramSum,
}

struct Command {
    id: CommandId,
    calls: u64,
    latency: HistogramSum,
}

/// Makes samples.
#[derive(Default)]
pub(crate) struct Sampler {
    at: Option<Instant>,
    totals: Totals,
    /// Of commands that were ever called.
    commands: HashMap<u16, Before>,
    gate_waits: HistogramSum,
    syncs: HistogramSum,
    count: u32,
    resident_bytes: u64,
    cpu: Duration,
    cpu_at: Option<Instant>,
    /// Of one core.
    cpu_permille: u64,
}

impl Sampler {
    /// The sample of this moment; `None` for the first one, which has nothing to compare with.
    pub(crate) fn sample(&mut self, node: &Node) -> Option<String> {
        let now = Instant::now();
        let before = self.at.replace(now);
        let totals = std::mem::replace(&mut self.totals, Totals::of(node));
        let commands = self.take_commands(node);
        let waited = advance(&mut self.gate_waits, of_threads(node));
        let synced = advance(&mut self.syncs, node.sync_times.sum().0);
        if self.count.is_multiple_of(PROCESS_EVERY) {
            self.look_at_process(node, now);
        }
        self.count = self.count.wrapping_add(1);
        let elapsed = now - before?;
        let mut out = Object::new();
        out.number("t", node.clock.unix_ms());
        self.write_rates(&totals, elapsed, &mut out);
        write_commands(node, commands, elapsed, &mut out);
        out.raw("gate", &latencies(&waited, elapsed)).raw("sync", &latencies(&synced, elapsed));
        self.write_levels(node, &mut out);
        write_log(node, &mut out);
        Some(out.end())
    }

    /// What commands did since the sample before.
    fn take_commands(&mut self, node: &Node) -> Vec<Command> {
        let mut commands = Vec::new();
        for (id, _) in node.table.iter() {
            let calls: u64 = node.total(|stats| stats.command(id).calls.get());
            if calls == 0 {
                continue;
            }
            let before = self.commands.entry(id.0).or_default();
            let since = calls.saturating_sub(before.calls);
            let has_changed = calls != std::mem::replace(&mut before.calls, calls);
            if !has_changed {
                continue;
            }
            let latency = advance(&mut before.latency, node.latency(id));
            if since > 0 {
                commands.push(Command { id, calls: since, latency });
            }
        }
        commands
    }

    fn look_at_process(&mut self, node: &Node, now: Instant) {
        let facts = node.process.facts();
        self.resident_bytes = facts.resident_bytes.unwrap_or(0);
        let cpu = facts.cpu_user + facts.cpu_system;
        if let Some(at) = self.cpu_at.replace(now) {
            let share = cpu.saturating_sub(self.cpu).as_secs_f64() / (now - at).as_secs_f64();
            self.cpu_permille = (share * 1000.0) as u64;
        }
        self.cpu = cpu;
    }

    fn write_rates(&self, before: &Totals, elapsed: Duration, out: &mut Object) {
        let now = &self.totals;
        let rate = |now: u64, before: u64| per_second(now.saturating_sub(before), elapsed);
        out.number("in", rate(now.received, before.received))
            .number("out", rate(now.sent, before.sent))
            .number("hits", rate(now.hits, before.hits))
            .number("misses", rate(now.misses, before.misses))
            .number("expired", rate(now.expired, before.expired))
            .number("evicted", rate(now.evicted, before.evicted))
            .number("conns", rate(now.connections, before.connections))
            .number("errors", rate(now.errors, before.errors))
            .number("log_rate", rate(now.log, before.log));
        let busy = now.busy.iter().zip(&before.busy).map(|(now, before)| {
            let busy = now.saturating_sub(*before) as f64 / elapsed.as_nanos() as f64;
            ((busy * 1000.0) as u64).min(1000)
        });
        out.numbers("threads", busy);
    }

    fn write_levels(&self, node: &Node, out: &mut Object) {
        let mut kinds = Object::new();
        for (kind, bytes) in memory_kinds(node) {
            kinds.number(kind, bytes);
        }
        out.raw("mem", &kinds.end())
            .number("used", node.used_memory())
            .number("rss", self.resident_bytes)
            .number("cpu", self.cpu_permille)
            .number("clients", node.clients.count() as u64)
            .number("rejected", node.rejected_connections.load(Relaxed))
            .number("maxmemory", node.settings.maxmemory());
    }
}

/// What was counted since `before`, which becomes `now`.
fn advance(before: &mut HistogramSum, now: HistogramSum) -> HistogramSum {
    let since = now.since(before);
    *before = now;
    since
}

/// How long replies waited for the gate, over all threads.
fn of_threads(node: &Node) -> HistogramSum {
    let mut sum = HistogramSum::default();
    node.stats.iter().for_each(|stats| sum.add(&stats.gate_waits.counts));
    sum
}

fn write_commands(node: &Node, mut commands: Vec<Command>, elapsed: Duration, out: &mut Object) {
    let calls: u64 = commands.iter().map(|command| command.calls).sum();
    let mut all = HistogramSum::default();
    commands.iter().for_each(|command| all.add_sum(&command.latency));
    out.number("rps", per_second(calls, elapsed)).raw("lat", &latencies(&all, elapsed));
    commands.sort_by_key(|command| std::cmp::Reverse(command.calls));
    commands.truncate(COMMANDS_MAX);
    let each = commands.iter().map(|command| {
        let name = serde_json::Value::from(node.table.entry(command.id).full_name.as_str());
        let rate = per_second(command.calls, elapsed);
        format!("[{name},{rate},{}]", latencies(&command.latency, elapsed))
    });
    let each: Vec<String> = each.collect();
    out.raw("cmds", &format!("[{}]", each.join(",")));
}

/// Number a second, and percentiles in nanoseconds.
fn latencies(counts: &HistogramSum, elapsed: Duration) -> String {
    let [p50, p99, p999] = PERCENTILES.map(|percent| counts.percentile(percent));
    format!("[{},{p50},{p99},{p999}]", per_second(counts.count(), elapsed))
}

fn write_log(node: &Node, out: &mut Object) {
    let (durability, status) = (&node.durability, node.durability.status());
    let reserved = durability.reserved().0;
    let behind = |position: u64| reserved.saturating_sub(position);
    let mut log = Object::new();
    log.number("unwritten", behind(durability.written().0))
        .number("unsynced", behind(durability.durable().0))
        .number("kept", status.log_bytes)
        .number("replay", status.log_bytes_since_checkpoint)
        .flag("ok", status.log_ok);
    out.raw("log", &log.end());
    let mut checkpoint = Object::new();
    checkpoint
        .flag("running", status.checkpoint_in_progress)
        .number("permille", (status.checkpoint_progress * 1000.0) as u64)
        .flag("ok", status.last_checkpoint_ok)
        .number("made", status.checkpoints_made)
        .number("at", status.last_checkpoint_unix)
        .number("keys", status.last_checkpoint_keys)
        .number("bytes", status.last_checkpoint_bytes)
        .number("changes", status.changes_since_checkpoint);
    out.raw("checkpoint", &checkpoint.end());
}

fn per_second(count: u64, elapsed: Duration) -> u64 {
    (count as f64 / elapsed.as_secs_f64().max(0.001)).round() as u64
}

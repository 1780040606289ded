//! `MEMORY`: what takes how much of it.

use crate::admin::info::{Allocated, human_bytes, ratio};
use crate::shared::help::HELP;
use crate::shared::tuple;
use ladon_engine::{PARTITIONS, ValueRef};
use ladon_kernel::command::args::{self, is};
use ladon_kernel::command::error::{CommandError, CommandResult};
use ladon_kernel::command::spec::{Code, LockNeed};
use ladon_kernel::ctx::Ctx;
use ladon_settings::EvictionPolicy;

pub(crate) const COMMANDS: &[Code] = &[Code::container(
    "memory",
    &[
        Code::on_keys("usage", usage).on_tuples(tuple_usage),
        Code::with_locks("stats", LockNeed::Own, stats),
        Code::with_locks("doctor", LockNeed::None, doctor),
        Code::with_locks("purge", LockNeed::None, purge),
        HELP,
    ],
)];

/// What a collection takes is known at any time, so that every number of samples gives the same
/// answer: the exact one, which Redis gives for `SAMPLES 0`.
fn usage(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    check_samples(&args[3..])?;
    let (db, key) = (ctx.db(), ctx.key(args[2]));
    let bytes = ctx.tx().peek(db, key).map(|entry| {
        let object = match entry.value() {
            ValueRef::Object(object) => object.bytes(),
            _ => 0,
        };
        entry.bytes() + object
    });
    match bytes {
        Some(bytes) => ctx.reply.integer(bytes as i64),
        None => ctx.reply.null(),
    }
    Ok(())
}

/// A tuple's own memory, without its share of the indexes.
fn tuple_usage(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    check_samples(&args[3..])?;
    match tuple::inspect(ctx, args[2])? {
        Some(tuple) => ctx.reply.integer(tuple.memory() as i64),
        None => ctx.reply.null(),
    }
    Ok(())
}

fn check_samples(mut rest: &[&[u8]]) -> CommandResult {
    while let [word, after @ ..] = rest {
        let [samples, after @ ..] = after else { return Err(CommandError::Syntax) };
        if !is(word, "samples") {
            return Err(CommandError::Syntax);
        }
        if args::integer(samples)? < 0 {
            return Err(CommandError::Syntax);
        }
        rest = after;
    }
    Ok(())
}

fn stats(ctx: &mut Ctx<'_>, _args: &[&[u8]]) -> CommandResult {
    let node = ctx.node;
    let keys = count_keys(ctx);
    let (used, fixed) = (node.used_memory(), node.keyspace.fixed_bytes());
    let (peak, clients) = (node.used_memory_peak(), node.clients_memory());
    let overhead = node.overhead_memory();
    let data = node.data_memory().saturating_sub(fixed);
    let backlog = node.durability.status().log_backlog_bytes;
    let allocated = Allocated::of(node);
    let numbers = [
        ("peak.allocated", peak),
        ("total.allocated", used),
        ("startup.allocated", fixed),
        ("replication.backlog", 0),
        ("clients.slaves", 0),
        ("clients.normal", clients),
        ("cluster.links", 0),
        ("aof.buffer", backlog),
        ("lua.caches", node.scripts.cache.bytes() as u64),
        ("functions.caches", node.keyspace.library_bytes()),
        ("overhead.total", overhead),
        ("keys.count", keys),
        ("keys.bytes-per-key", data.checked_div(keys).unwrap_or(0)),
        ("dataset.bytes", data),
        ("allocator.allocated", allocated.in_use),
        ("allocator.active", allocated.active),
        ("allocator.resident", allocated.resident),
        ("allocator-fragmentation.bytes", allocated.active - allocated.in_use),
    ];
    let mut doubles = vec![
        ("allocator-fragmentation.ratio", ratio(allocated.active, allocated.in_use)),
        ("dataset.percentage", 100.0 * ratio(data, used.saturating_sub(fixed))),
        ("peak.percentage", 100.0 * ratio(used, peak)),
    ];
    let resident = node.process.facts().resident_bytes;
    if let Some(resident) = resident {
        doubles.push(("rss-overhead.ratio", ratio(resident, allocated.resident)));
        doubles.push(("fragmentation", ratio(resident, used)));
    }
    ctx.reply.map(numbers.len() + doubles.len() + 2 * usize::from(resident.is_some()));
    for (name, number) in numbers {
        ctx.reply.bulk(name);
        ctx.reply.integer(number as i64);
    }
    for (name, double) in doubles {
        ctx.reply.bulk(name);
        ctx.reply.double(double);
    }
    if let Some(resident) = resident {
        ctx.reply.bulk("rss-overhead.bytes");
        ctx.reply.integer(resident as i64 - allocated.resident as i64);
        ctx.reply.bulk("fragmentation.bytes");
        ctx.reply.integer(resident as i64 - used as i64);
    }
    Ok(())
}

/// Keys of all databases.
fn count_keys(ctx: &mut Ctx<'_>) -> u64 {
    // Inside a transaction all partitions are held already.
    let rounds = if ctx.in_exec { 1 } else { PARTITIONS };
    let databases = ctx.keyspace().databases();
    (0..rounds)
        .map(|partition| {
            let keys = ctx.on_partition(partition, |tx| {
                (0..databases).map(|db| tx.summary(db).0 as u64).sum::<u64>()
            });
            keys.unwrap_or_default()
        })
        .sum()
}

fn doctor(ctx: &mut Ctx<'_>, _args: &[&[u8]]) -> CommandResult {
    let node = ctx.node;
    let (used, peak) = (node.used_memory(), node.used_memory_peak());
    let mut findings = Vec::new();
    if peak > used + used / 2 {
        findings.push(format!(
            "The data once took {}, now it takes {}: memory that is free again may still be the \
             process'. MEMORY PURGE asks the allocator to return it.",
            human_bytes(peak),
            human_bytes(used)
        ));
    }
    const SMALL_BYTES: u64 = 64 << 20;
    if let Some(resident) = node.process.facts().resident_bytes
        && used > SMALL_BYTES
        && resident > used + used / 2
    {
        findings.push(format!(
            "The process takes {} for {} of data: see mem_clients_normal in INFO for what \
             connections take, and MEMORY PURGE.",
            human_bytes(resident),
            human_bytes(used)
        ));
    }
    let limit = node.settings.maxmemory();
    if limit != 0 && used > limit / 10 * 9 {
        findings.push(format!(
            "The data takes {} of the {} that maxmemory allows; beyond it, {}.",
            human_bytes(used),
            human_bytes(limit),
            match node.settings.maxmemory_policy() {
                EvictionPolicy::NoEviction => "commands that need memory are refused",
                _ => "keys are evicted",
            }
        ));
    }
    let text = match findings.as_slice() {
        [] => "No trouble with memory was found.\n".to_owned(),
        findings => findings.iter().map(|finding| format!("- {finding}\n")).collect(),
    };
    ctx.reply.verbatim(*b"txt", text);
    Ok(())
}

fn purge(ctx: &mut Ctx<'_>, _args: &[&[u8]]) -> CommandResult {
    if !ctx.node.process.purge_memory() {
        return Err(CommandError::err(format_args!(
            "the allocator '{}' cannot be asked to return memory",
            ctx.node.process.allocator()
        )));
    }
    ctx.reply.ok();
    Ok(())
}

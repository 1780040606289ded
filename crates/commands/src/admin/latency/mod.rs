//! `LATENCY`: delays that were noticed, and how long commands took.

mod graph;

use crate::shared::help::HELP;
use graph::graph;
use ladon_kernel::command::command_id::CommandId;
use ladon_kernel::command::error::{CommandError, CommandResult, shown};
use ladon_kernel::command::spec::{Code, LockNeed};
use ladon_kernel::ctx::Ctx;
use ladon_kernel::statistics::latency_events::{Delay, History};

pub(crate) const COMMANDS: &[Code] = &[Code::container(
    "latency",
    &[
        Code::with_locks("latest", LockNeed::None, latest),
        Code::with_locks("history", LockNeed::None, history),
        Code::with_locks("reset", LockNeed::None, reset),
        Code::with_locks("graph", LockNeed::None, draw),
        Code::with_locks("doctor", LockNeed::None, doctor),
        Code::with_locks("histogram", LockNeed::None, histogram),
        HELP,
    ],
)];

fn latest(ctx: &mut Ctx<'_>, _args: &[&[u8]]) -> CommandResult {
    let all = ctx.node.latency_events.all();
    ctx.reply.array(all.len());
    for (event, history) in all {
        let last = history.delays.back();
        let last = last.copied().unwrap_or(Delay { unix_seconds: 0, milliseconds: 0 });
        ctx.reply.array(4);
        ctx.reply.bulk(event);
        ctx.reply.integer(last.unix_seconds as i64);
        ctx.reply.integer(last.milliseconds as i64);
        ctx.reply.integer(history.milliseconds_max as i64);
    }
    Ok(())
}

fn history(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let history = find(ctx, args[2]).unwrap_or_default();
    ctx.reply.array(history.delays.len());
    for delay in history.delays {
        ctx.reply.array(2);
        ctx.reply.integer(delay.unix_seconds as i64);
        ctx.reply.integer(delay.milliseconds as i64);
    }
    Ok(())
}

fn find(ctx: &Ctx<'_>, event: &[u8]) -> Option<History> {
    ctx.node.latency_events.history(str::from_utf8(event).ok()?)
}

fn reset(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let events = &ctx.node.latency_events;
    let count = match &args[2..] {
        [] => events.reset_all(),
        names => names
            .iter()
            .filter(|name| str::from_utf8(name).is_ok_and(|name| events.reset(name)))
            .count(),
    };
    ctx.reply.integer(count as i64);
    Ok(())
}

fn draw(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let event = shown(args[2]);
    let history = find(ctx, args[2]).ok_or_else(|| {
        CommandError::err(format_args!("No samples available for event '{event}'"))
    })?;
    ctx.reply.verbatim(*b"txt", graph(&event, &history, ctx.now_ms / 1000));
    Ok(())
}

fn doctor(ctx: &mut Ctx<'_>, _args: &[&[u8]]) -> CommandResult {
    let node = ctx.node;
    let mut text = String::new();
    if !node.latency_events.is_on() {
        text += "Delays are not watched for. Set latency-monitor-threshold to the milliseconds \
                 from which one is worth remembering (CONFIG SET latency-monitor-threshold 100).\n";
    }
    let all = node.latency_events.all();
    if all.is_empty() && node.latency_events.is_on() {
        text += "No delays were noticed.\n";
    }
    for (event, history) in all {
        let count = history.delays.len().max(1) as u64;
        let mean = history.delays.iter().map(|delay| delay.milliseconds).sum::<u64>() / count;
        text += &format!(
            "{event}: {count} delays remembered, {mean} ms in the mean, {} ms at most. {}\n",
            history.milliseconds_max,
            advice(&event)
        );
    }
    ctx.reply.verbatim(*b"txt", text);
    Ok(())
}

fn advice(event: &str) -> &'static str {
    match event {
        "command" => "SLOWLOG GET names the commands; those over many elements take their time.",
        "fast-command" => {
            "These are quick by nature: was the machine short of processors or swapping?"
        }
        "expire-cycle" => "Many keys expired at once: spread their times.",
        "fsync" => "The disk took long to sync; the gate (CONFIG GET gate) says who waits for it.",
        "disk-write" => "The disk or the page cache took long to take the log or a checkpoint.",
        _ => "",
    }
}

fn histogram(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let table = ctx.node.table;
    let ids: Vec<CommandId> = match &args[2..] {
        [] => table.iter().map(|(id, _)| id).collect(),
        names => names
            .iter()
            .filter_map(|name| table.find_full(name))
            .flat_map(|id| std::iter::once(id).chain(table.entry(id).subcommands.iter().copied()))
            .collect(),
    };
    let mark = ctx.reply.begin_map();
    let mut count = 0;
    for id in ids {
        let latency = ctx.node.latency(id);
        let calls = latency.count();
        if calls == 0 {
            continue;
        }
        count += 1;
        ctx.reply.bulk(&table.entry(id).full_name);
        ctx.reply.map(2);
        ctx.reply.bulk("calls");
        ctx.reply.integer(calls as i64);
        ctx.reply.bulk("histogram_usec");
        let buckets = latency.by_powers_of_two();
        ctx.reply.map(buckets.len());
        for (microseconds, up_to) in buckets {
            ctx.reply.integer(microseconds as i64);
            ctx.reply.integer(up_to as i64);
        }
    }
    ctx.reply.end_map(mark, count);
    Ok(())
}

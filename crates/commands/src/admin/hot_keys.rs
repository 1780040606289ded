//! `HOTKEYS`, as in Redis 8.6: counts which keys take most time and traffic while somebody asks.

use crate::shared::help::HELP;
use ladon_kernel::command::args::{integer_or, is};
use ladon_kernel::command::error::{CommandError, CommandResult};
use ladon_kernel::command::spec::{Code, LockNeed};
use ladon_kernel::ctx::Ctx;
use ladon_kernel::statistics::hot_keys::{Request, Session, TopKeys};
use ladon_resp::Reply;
use std::time::Duration;

pub(crate) const COMMANDS: &[Code] = &[Code::container(
    "hotkeys",
    &[
        Code::with_locks("start", LockNeed::None, start),
        Code::with_locks("stop", LockNeed::None, stop),
        Code::with_locks("get", LockNeed::None, get),
        Code::with_locks("reset", LockNeed::None, reset),
        HELP,
    ],
)];

/// Keys that `GET` shows of each metric, unless `COUNT` says otherwise.
const COUNT: usize = 10;

/// The last hash slot; without a cluster, all slots are shown as selected.
const LAST_SLOT: i64 = 16_383;

/// The options of `START`.
struct Options {
    cpu: bool,
    net: bool,
    shown: usize,
    seconds: Option<u64>,
    ratio: u64,
}

impl Options {
    fn parse(words: &[&[u8]]) -> Result<Options, CommandError> {
        let mut options = Options { cpu: false, net: false, shown: COUNT, seconds: None, ratio: 1 };
        let [metrics, number, rest @ ..] = words else {
            return Err(CommandError::text("ERR METRICS parameter is required"));
        };
        if !is(metrics, "metrics") {
            return Err(CommandError::text("ERR METRICS parameter is required"));
        }
        let mut words = options.metrics(number, rest)?;
        while let [word, rest @ ..] = words {
            let [value, rest @ ..] = rest else { return Err(CommandError::Syntax) };
            words = rest;
            if is(word, "count") {
                let error = "ERR COUNT must be between 1 and 64";
                options.shown = integer_or(value, 1..=64, error)? as usize;
            } else if is(word, "duration") {
                let error = "ERR DURATION must be between 1 and 1000000";
                options.seconds = Some(integer_or(value, 1..=1_000_000, error)? as u64);
            } else if is(word, "sample") {
                let error = "ERR SAMPLE ratio must be positive";
                options.ratio = integer_or(value, 1..=i64::from(i32::MAX), error)? as u64;
            } else if is(word, "slots") {
                return Err(CommandError::text(
                    "ERR SLOTS parameter cannot be used in non-cluster mode",
                ));
            } else {
                return Err(CommandError::Syntax);
            }
        }
        Ok(options)
    }

    /// Reads as many metrics as `number` says; returns what follows. As in Redis, names that it
    /// does not know are passed over beside one that it does.
    fn metrics<'s, 'a>(
        &mut self,
        number: &[u8],
        words: &'s [&'a [u8]],
    ) -> Result<&'s [&'a [u8]], CommandError> {
        let number = integer_or(number, 1..=2, "ERR METRICS count must be > 0 and <= 2")?;
        let given = words.len().min(number as usize);
        let (metrics, rest) = words.split_at(given);
        for metric in metrics {
            let (flag, error) = match metric {
                metric if is(metric, "cpu") => {
                    (&mut self.cpu, "ERR METRICS CPU defined more than once!")
                }
                metric if is(metric, "net") => {
                    (&mut self.net, "ERR METRICS NET defined more than once!")
                }
                _ => continue,
            };
            if std::mem::replace(flag, true) {
                return Err(CommandError::text(error));
            }
        }
        if given < number as usize {
            return Err(CommandError::text(
                "ERR METRICS count does not match number of metric types provided",
            ));
        }
        if !self.cpu && !self.net {
            return Err(CommandError::text(
                "ERR METRICS no valid metrics passed. Supported: CPU|NET",
            ));
        }
        Ok(rest)
    }
}

/// The process' time: the user's and the system's.
fn cpu(ctx: &Ctx<'_>) -> [Duration; 2] {
    let facts = ctx.node.process.facts();
    [facts.cpu_user, facts.cpu_system]
}

fn since(now: [Duration; 2], then: [Duration; 2]) -> [Duration; 2] {
    [now[0].saturating_sub(then[0]), now[1].saturating_sub(then[1])]
}

fn start(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let (hot_keys, now_ms) = (&ctx.node.hot_keys, ctx.now_ms);
    let mut session = hot_keys.session.lock();
    if session.is_some_and(|session| session.is_active(now_ms)) {
        return Err(CommandError::text("ERR hotkey tracking session already in progress"));
    }
    let Options { cpu: by_cpu, net, shown, seconds, ratio } = Options::parse(&args[2..])?;
    let until_ms = seconds.map_or(u64::MAX, |seconds| now_ms.saturating_add(seconds * 1000));
    let request = Request { cpu: by_cpu, net, ratio, until_ms };
    let cpu = cpu(ctx);
    *session = Some(Session { request, shown, started_ms: now_ms, stopped_ms: None, cpu });
    hot_keys.start(request);
    drop(session);
    ctx.reply.ok();
    Ok(())
}

fn stop(ctx: &mut Ctx<'_>, _args: &[&[u8]]) -> CommandResult {
    let (hot_keys, now_ms) = (&ctx.node.hot_keys, ctx.now_ms);
    let mut session = hot_keys.session.lock();
    let Some(session) = session.as_mut().filter(|session| session.is_active(now_ms)) else {
        ctx.reply.null();
        return Ok(());
    };
    session.stopped_ms = Some(now_ms);
    session.cpu = since(cpu(ctx), session.cpu);
    hot_keys.stop();
    ctx.reply.ok();
    Ok(())
}

fn reset(ctx: &mut Ctx<'_>, _args: &[&[u8]]) -> CommandResult {
    let (hot_keys, now_ms) = (&ctx.node.hot_keys, ctx.now_ms);
    let mut session = hot_keys.session.lock();
    if session.is_some_and(|session| session.is_active(now_ms)) {
        return Err(CommandError::text(
            "ERR hotkey tracking session in progress, stop tracking first",
        ));
    }
    *session = None;
    hot_keys.stop();
    hot_keys.clear();
    ctx.reply.ok();
    Ok(())
}

fn get(ctx: &mut Ctx<'_>, _args: &[&[u8]]) -> CommandResult {
    let (hot_keys, now_ms) = (&ctx.node.hot_keys, ctx.now_ms);
    let session = *hot_keys.session.lock();
    let (Some(session), Some(total)) = (session, hot_keys.total()) else {
        ctx.reply.null();
        return Ok(());
    };
    // It names keys, those of changes too.
    ctx.depend_on(ctx.node.durability.reserved());
    let used = match session.stopped_ms {
        Some(_) => session.cpu,
        None => since(cpu(ctx), session.cpu),
    };
    let Request { cpu, net, ratio, .. } = session.request;
    let reply = &mut ctx.reply;
    // A list of one, to which a cluster's client adds the other nodes'.
    reply.array(1);
    reply.map(7 + 3 * usize::from(cpu) + 2 * usize::from(net));
    number(reply, "tracking-active", u64::from(session.is_active(now_ms)));
    number(reply, "sample-ratio", ratio);
    reply.bulk("selected-slots");
    reply.array(1);
    reply.array(2);
    reply.integer(0);
    reply.integer(LAST_SLOT);
    number(reply, "all-commands-all-slots-us", total.all_nanoseconds / 1000);
    number(reply, "net-bytes-all-commands-all-slots", total.all_bytes);
    number(reply, "collection-start-time-unix-ms", session.started_ms);
    number(reply, "collection-duration-ms", session.end_ms(now_ms) - session.started_ms);
    if cpu {
        number(reply, "total-cpu-time-user-ms", used[0].as_millis() as u64);
        number(reply, "total-cpu-time-sys-ms", used[1].as_millis() as u64);
    }
    if net {
        number(reply, "total-net-bytes", total.all_bytes);
    }
    if cpu {
        list(reply, "by-cpu-time-us", total.cpu, session.shown, 1000);
    }
    if net {
        list(reply, "by-net-bytes", total.net, session.shown, 1);
    }
    Ok(())
}

fn number(reply: &mut Reply<'_>, name: &str, value: u64) {
    reply.bulk(name);
    reply.integer(value as i64);
}

/// Keys and their amounts in turn.
fn list(reply: &mut Reply<'_>, name: &str, keys: TopKeys, shown: usize, unit: u64) {
    let largest = keys.largest(shown);
    reply.bulk(name);
    reply.array(2 * largest.len());
    for (key, amount) in largest {
        reply.bulk(key);
        reply.integer((amount / unit) as i64);
    }
}

//! `DEBUG`: what tests of servers and clients use to look inside. Each subcommand does what it
//! says. Redis' subcommands that Ladon cannot provide are refused by name.

mod digest;
mod populate;
mod protocol;
mod reload;
mod representation;

use crate::shared::help;
use ladon_engine::Locks;
use ladon_engine::types::list::LARGE_BYTES;
use ladon_kernel::command::args::{self, is};
use ladon_kernel::command::error::{CommandError, CommandResult};
use ladon_kernel::command::spec::{Code, HandlerFn, LockNeed};
use ladon_kernel::ctx::Ctx;
use ladon_kernel::shared::hex_id;
use ladon_settings::{Access, memory_size};
use std::net::SocketAddr;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

pub(crate) const COMMANDS: &[Code] = &[Code::with_locks("debug", LockNeed::Own, debug)];

/// Name, minimum and maximum number of words (the first two included), code, usage, explanation.
type Subcommand = (&'static str, usize, usize, HandlerFn, &'static str, &'static str);

const ANY: usize = usize::MAX;

const SUBCOMMANDS: &[Subcommand] = &[
    (
        "change-repl-id",
        2,
        2,
        change_repl_id,
        "CHANGE-REPL-ID",
        "Gives the data's history a new name.",
    ),
    (
        "digest",
        2,
        2,
        digest::all,
        "DIGEST",
        "Answers a digest of all data; equal data, equal digest.",
    ),
    (
        "digest-value",
        2,
        ANY,
        digest::values,
        "DIGEST-VALUE key [key ...]",
        "Answers a digest of each value.",
    ),
    ("error", 3, 3, error, "ERROR text", "Answers an error with this text."),
    ("help", 2, 2, show_help, "HELP", "Lists the subcommands."),
    (
        "htstats",
        3,
        4,
        representation::htstats,
        "HTSTATS database",
        "Tells what a database's table holds.",
    ),
    (
        "htstats-key",
        3,
        4,
        representation::htstats_key,
        "HTSTATS-KEY key",
        "Tells what a key's value holds.",
    ),
    (
        "listpack",
        3,
        3,
        representation::listpack,
        "LISTPACK key",
        "Writes the elements of a packed value to the server's log.",
    ),
    ("loadaof", 2, 2, reload::loadaof, "LOADAOF", "As RELOAD NOSAVE, once the log is written."),
    ("log", 3, 3, log, "LOG text", "Writes a line to the server's log."),
    ("object", 3, 4, representation::object, "OBJECT key", "Tells how a key's value is kept."),
    ("populate", 3, 5, populate::populate, "POPULATE count [prefix [bytes]]", "Creates keys."),
    (
        "protocol",
        3,
        3,
        protocol::protocol,
        "PROTOCOL type",
        "Answers a reply of each type of the protocol.",
    ),
    (
        "quicklist-packed-threshold",
        3,
        3,
        packed_threshold,
        "QUICKLIST-PACKED-THRESHOLD size",
        "From how many bytes on an element of a list has a piece of its own.",
    ),
    (
        "reload",
        2,
        ANY,
        reload::reload,
        "RELOAD [NOSAVE]",
        "Makes a checkpoint, and takes all values through its format and back.",
    ),
    (
        "set-active-expire",
        3,
        3,
        set_active_expire,
        "SET-ACTIVE-EXPIRE <0 | 1>",
        "Whether expired keys leave before anybody asks.",
    ),
    ("sleep", 3, 3, sleep, "SLEEP seconds", "Lets no command touch the data for a while."),
    (
        "stringmatch-len",
        4,
        4,
        stringmatch_len,
        "STRINGMATCH-LEN pattern text",
        "Matches a pattern as KEYS does.",
    ),
];

/// Redis' subcommands that Ladon does not have: those that crash the server, and those about Redis'
/// internals.
const ABSENT: &[&str] = &[
    "aof-flush-sleep",
    "assert",
    "client-enforce-reply-list",
    "client-eviction",
    "clusterlink",
    "config-rewrite-force-all",
    "crash-and-recover",
    "delay-rdb-client-free-seconds",
    "dict-resizing",
    "drop-cluster-packet-filter",
    "leak",
    "mallctl",
    "mallctl-str",
    "oom",
    "panic",
    "pause-cron",
    "quicklist",
    "replicate",
    "replybuffer",
    "restart",
    "sdslen",
    "segfault",
    "set-disable-deny-scripts",
    "set-skip-checksum-validation",
    "stringmatch-test",
    "structsize",
    "ziplist",
];

fn debug(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    if !is_allowed(ctx) {
        return Err(CommandError::text(
            "ERR DEBUG command not allowed. If the enable-debug-command option is set to \
             \"local\", you can run it from a local connection, otherwise you need to set this \
             option in the configuration file, and then restart the server.",
        ));
    }
    // Most subcommands read or create data.
    if ctx.node.loading.is_some() && !is(args[1], "sleep") {
        return Err(CommandError::text("LOADING Ladon is loading the dataset in memory"));
    }
    for &(name, fewest, most, run, ..) in SUBCOMMANDS {
        if is(args[1], name) && (fewest..=most).contains(&args.len()) {
            return run(ctx, args);
        }
    }
    // Only in debug builds: for the test of what a panic leaves behind.
    #[cfg(debug_assertions)]
    assert!(!matches!(args, [_, what, how] if is(what, "panic") && is(how, "planted")), "planted");
    if let Some(name) = ABSENT.iter().find(|name| is(args[1], name)) {
        let name = name.to_uppercase();
        return Err(CommandError::err(format_args!("DEBUG {name} is not supported by Ladon")));
    }
    Err(CommandError::subcommand(args))
}

fn is_allowed(ctx: &Ctx<'_>) -> bool {
    match ctx.node.settings.enable_debug_command() {
        Access::No => false,
        Access::Yes => true,
        Access::Local => {
            let info = &ctx.session.info;
            info.unix
                || info
                    .addr
                    .parse::<SocketAddr>()
                    .is_ok_and(|addr| addr.ip().to_canonical().is_loopback())
        }
    }
}

fn show_help(ctx: &mut Ctx<'_>, _args: &[&[u8]]) -> CommandResult {
    let lines: Vec<(String, &str)> =
        SUBCOMMANDS.iter().map(|subcommand| (subcommand.4.to_owned(), subcommand.5)).collect();
    help::reply(ctx, "debug", &lines);
    Ok(())
}

fn change_repl_id(ctx: &mut Ctx<'_>, _args: &[&[u8]]) -> CommandResult {
    *ctx.node.replication_id.lock() = hex_id(&mut ctx.local.rng);
    ctx.reply.ok();
    Ok(())
}

fn error(_ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    Err(CommandError::Other(String::from_utf8_lossy(args[2]).into_owned().into()))
}

fn log(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    tracing::warn!("DEBUG LOG: {}", String::from_utf8_lossy(args[2]));
    ctx.reply.ok();
    Ok(())
}

fn set_active_expire(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    ctx.node.active_expire.store(args::integer(args[2])? != 0, Relaxed);
    ctx.reply.ok();
    Ok(())
}

/// Redis stops as a whole. Here this thread stops while holding its locks, and requests for data
/// wait for them.
fn sleep(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let seconds = str::from_utf8(args[2]).ok().and_then(|text| text.parse::<f64>().ok());
    let duration = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let process = &ctx.node.process;
    ctx.on(Locks::All, |_| process.sleep(duration.unwrap_or_default()))?;
    ctx.reply.ok();
    Ok(())
}

fn packed_threshold(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    const INVALID: &str = "ERR argument must be a memory value bigger than 1 and smaller than 4gb";
    let text = str::from_utf8(args[2]).ok();
    let bytes = text.and_then(memory_size::parse);
    let bytes = bytes.and_then(|bytes| usize::try_from(bytes).ok());
    let bytes = bytes.filter(|&bytes| bytes < 1 << 32).ok_or(CommandError::text(INVALID))?;
    let large = if bytes == 0 { LARGE_BYTES } else { bytes };
    ctx.keyspace().limits().list_large.store(large, Relaxed);
    ctx.reply.ok();
    Ok(())
}

fn stringmatch_len(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let matches = ladon_settings::Glob::new(args[2], false).matches(args[3]);
    ctx.reply.integer(matches.into());
    Ok(())
}

//! What other servers and `redis-cli --rdb` ask for: SYNC, PSYNC, REPLCONF.
//!
//! `SYNC` answers with a dump of all data and closes the connection: no replica is a Redis, and who
//! takes a dump for the begin of a replica's life must not wait for what never comes. Ladon's replicas
//! ask otherwise (`replica.rs`).

mod dump;
mod feed;
pub(crate) mod replica;
pub(crate) mod replicaof;

use dump::Dump;
use feed::{Feed, MARK_BYTES};
use ladon_kernel::client::session::DumpOptions;
use ladon_kernel::command::args::{integer_in, is};
use ladon_kernel::command::error::{CommandError, CommandResult, shown};
use ladon_kernel::command::spec::{Code, LockNeed};
use ladon_kernel::ctx::Ctx;
use ladon_kernel::long::large::Large;
use ladon_kernel::message::Message;
use ladon_kernel::request::admission;
use ladon_kernel::request::outcome::Flow;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

pub(crate) const COMMANDS: &[Code] = &[
    Code::with_locks("sync", LockNeed::None, sync),
    Code::with_locks("psync", LockNeed::None, psync),
    Code::with_locks("replconf", LockNeed::None, replconf),
];

const NO_REPLICATION: CommandError = CommandError::text(
    "ERR Ladon sends its log to replicas that are Ladons too: SYNC gives a dump, to redis-cli --rdb and \
     the like",
);
const NO_LENGTH: CommandError = CommandError::text(
    "ERR the dump's length is not known before its end: say REPLCONF capa eof first",
);
const NO_DUMPS: CommandError = CommandError::text("ERR this server makes no dumps");

fn sync(ctx: &mut Ctx<'_>, _args: &[&[u8]]) -> CommandResult {
    let options = ctx.session.dump;
    if options.has(DumpOptions::IS_REPLICA) {
        return Err(NO_REPLICATION);
    }
    admission::copies_data(ctx.node)?;
    if !options.has(DumpOptions::TAKES_EOF) {
        return Err(NO_LENGTH);
    }
    if ctx.large() == Large::NEVER {
        return Err(NO_DUMPS);
    }
    let background = ctx.node.background.as_ref().ok_or(NO_DUMPS)?;
    let mark = mark()?;
    let (shared, thread) = (Arc::clone(ctx.node.shared()), ctx.local.thread);
    let (feed, slices) = Feed::new(mark, move || shared.threads[thread].wake());
    let dump = Dump {
        keyspace: Arc::clone(&ctx.node.keyspace),
        shared: Arc::clone(ctx.node.shared()),
        functions_only: options.has(DumpOptions::FUNCTIONS_ONLY),
    };
    let info = Arc::clone(&ctx.session.info);
    let begun = background.begin(Box::new(move || {
        let Err(failure) = dump.write(feed) else { return };
        if failure.is_of_client() {
            return;
        }
        tracing::error!("SYNC for client id={} addr={} ended: {failure}", info.id, info.addr);
        // A reply that has begun cannot become an error.
        info.killed.store(true, Relaxed);
        dump.shared.threads[thread].send(Message::Kill);
    }));
    begun.map_err(|error| CommandError::err(format_args!("cannot make a dump: {error}")))?;
    ctx.reply_in_slices(slices);
    ctx.flow = Flow::Close;
    Ok(())
}

/// Bytes that end the dump, and that are not in it.
fn mark() -> Result<[u8; MARK_BYTES], CommandError> {
    let mut random = [0; MARK_BYTES / 2];
    getrandom::fill(&mut random).map_err(|error| CommandError::err(error.to_string()))?;
    let mut mark = [0; MARK_BYTES];
    for (two, byte) in mark.chunks_exact_mut(2).zip(random) {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        two.copy_from_slice(&[DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
    }
    Ok(mark)
}

/// A replica that is refused asks for `SYNC` on the same connection.
fn psync(ctx: &mut Ctx<'_>, _args: &[&[u8]]) -> CommandResult {
    ctx.session.dump.set(DumpOptions::IS_REPLICA, true);
    Err(NO_REPLICATION)
}

fn replconf(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    if args.len().is_multiple_of(2) {
        return Err(CommandError::Syntax);
    }
    let mut options = ctx.session.dump;
    for pair in args[1..].chunks_exact(2) {
        let (option, value) = (pair[0], pair[1]);
        if is(option, "capa") {
            // As in Redis, what is not known is ignored.
            if is(value, "eof") {
                options.set(DumpOptions::TAKES_EOF, true);
            }
        } else if is(option, "rdb-only") {
            // Every dump is no more than that.
            integer_in(value, 0, 1)?;
        } else if is(option, "rdb-filter-only") {
            let functions_only = match value {
                b"" => false,
                value if is(value, "functions") => true,
                value => {
                    return Err(CommandError::err(format_args!(
                        "Unsupported rdb-filter-only option: {}",
                        shown(value)
                    )));
                }
            };
            options.set(DumpOptions::FUNCTIONS_ONLY, functions_only);
        } else if ["listening-port", "ip-address"].iter().any(|word| is(option, word)) {
            ctx.session.dump.set(DumpOptions::IS_REPLICA, true);
            return Err(NO_REPLICATION);
        } else {
            return Err(CommandError::err(format_args!(
                "Unrecognized REPLCONF option: {}",
                shown(option)
            )));
        }
    }
    ctx.session.dump = options;
    ctx.reply.ok();
    Ok(())
}

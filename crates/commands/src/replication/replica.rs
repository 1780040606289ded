//! `LADON.REPLICA`: what a Ladon asks that follows this one.
//!
//! ```text
//! LADON.REPLICA HELLO version run-id host port    this connection is a replica's; host '-': its own
//! LADON.REPLICA POSITION run end                  1 if the log goes on there, else 0; all its runs
//! LADON.REPLICA TAKEOVER run end [FORCE]          this server, a replica, writes from now on (FAILOVER)
//! LADON.REPLICA FRAMES run from durable applied milliseconds count
//!                                                 bytes of the log from there on; waits for some
//! ```
//! The first sync is a backup (`LADON.BACKUP`). A replica that gets `-RESYNC` asks for its position
//! again.

use super::replicaof::done;
use crate::shared::help::HELP;
use crate::shared::made_bulk::MadeBulk;
use ladon_kernel::command::args::{integer_in, is};
use ladon_kernel::command::error::{CommandError, CommandResult, shown};
use ladon_kernel::command::spec::{Code, LockNeed};
use ladon_kernel::ctx::Ctx;
use ladon_kernel::long::large::Large;
use ladon_kernel::long::slices::Headed;
use ladon_kernel::replication::Place;
use ladon_kernel::request::outcome::JobKind;
use ladon_kernel::upstream::{FramesWanted, ReplicaName, Replicas};
use ladon_record::Lsn;
use ladon_resp::Reply;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// The version of what is said here.
const VERSION: &[u8] = b"1";
/// A run's identity, and that of a process.
const IDENTITY_BYTES_MAX: usize = 64;
/// A name of DNS has no more.
const HOST_BYTES_MAX: usize = 253;
/// A replica that waits for longer would not be heard of.
const WAIT_MS_MAX: i64 = 5000;
/// Most bytes of one answer.
const COUNT_MAX: i64 = 1 << 20;

const NOT_HERE: CommandError = CommandError::text("ERR replicas need a server with data");

pub(crate) const COMMANDS: &[Code] = &[Code::container(
    "ladon.replica",
    &[
        Code::with_locks("hello", LockNeed::None, hello),
        Code::with_locks("position", LockNeed::None, position),
        Code::with_locks("frames", LockNeed::None, frames),
        Code::with_locks("takeover", LockNeed::None, take_over),
        HELP,
    ],
)];

fn replicas(ctx: &Ctx<'_>) -> Result<Arc<dyn Replicas>, CommandError> {
    if ctx.large_aside() == Large::NEVER {
        return Err(NOT_HERE);
    }
    ctx.node.durability.replicas().ok_or(NOT_HERE)
}

fn text(word: &[u8], most: usize, what: &str) -> Result<String, CommandError> {
    let text = str::from_utf8(word).ok();
    let is_word = |text: &&str| {
        let is_fit = |byte: u8| byte.is_ascii_graphic();
        (1..=most).contains(&text.len()) && text.bytes().all(is_fit)
    };
    match text.filter(is_word) {
        Some(text) => Ok(text.to_owned()),
        None => Err(CommandError::err(format_args!("'{}' is no {what}", shown(word)))),
    }
}

fn position_at(word: &[u8]) -> Result<Lsn, CommandError> {
    Ok(Lsn(integer_in(word, 0, i64::MAX)? as u64))
}

fn hello(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let replicas = replicas(ctx)?;
    if args[2] != VERSION {
        return Err(CommandError::err(format_args!(
            "replicas of version {} are not known here, only of version 1",
            shown(args[2])
        )));
    }
    let run_id = text(args[3], IDENTITY_BYTES_MAX, "identity of a run")?;
    if *ctx.node.run_id.lock() == run_id {
        return Err(CommandError::text("ERR a server cannot follow itself"));
    }
    let host = match is(args[4], "-") {
        true => Place::of(&ctx.session.info.addr).host,
        false => text(args[4], HOST_BYTES_MAX, "host")?,
    };
    let port = integer_in(args[5], 0, 65535)? as u16;
    let name = ReplicaName { run_id, place: Place { host, port } };
    replicas.greet(ctx.session.info.id, &name).map_err(CommandError::err)?;
    ctx.session.info.is_replica.store(true, Relaxed);
    ctx.reply.ok();
    Ok(())
}

fn position(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let replicas = replicas(ctx)?;
    let run = text(args[2], IDENTITY_BYTES_MAX, "identity of a run")?;
    let position = replicas.position(ctx.session.info.id, &run, position_at(args[3])?);
    let position = position.map_err(CommandError::err)?;
    let reply = &mut ctx.reply;
    reply.array(2);
    reply.integer(i64::from(position.continues));
    reply.array(position.runs.len());
    for (run, begin) in position.runs {
        reply.array(2);
        reply.bulk(run);
        reply.integer(begin.0 as i64);
    }
    Ok(())
}

/// What the server says that this one follows, and that hands over to it.
fn take_over(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let upstream = ctx.node.upstream.clone().ok_or(NOT_HERE)?;
    let run = text(args[2], IDENTITY_BYTES_MAX, "identity of a run")?;
    let end = position_at(args[3])?;
    let force = match args[4..] {
        [] => false,
        [word] if is(word, "force") => true,
        _ => return Err(CommandError::Syntax),
    };
    if ctx.large_aside() == Large::NEVER {
        return Err(NOT_HERE);
    }
    ctx.reply_later(JobKind::Errand, move |_| done(upstream.take_over(&run, end, force)));
    Ok(())
}

fn frames(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let (replicas, client) = (replicas(ctx)?, ctx.session.info.id);
    let wanted = FramesWanted {
        run: text(args[2], IDENTITY_BYTES_MAX, "identity of a run")?,
        from: position_at(args[3])?,
        durable: position_at(args[4])?,
        applied: position_at(args[5])?,
        wait: Duration::from_millis(integer_in(args[6], 0, WAIT_MS_MAX)? as u64),
        bytes: integer_in(args[7], 0, COUNT_MAX)? as usize,
    };
    ctx.reply_later(JobKind::Replica, move |_| match replicas.frames(client, &wanted) {
        Ok(bytes) => Box::new(MadeBulk::new(Ok::<_, String>(bytes))),
        Err(error) => {
            let answer = move |reply: &mut Reply<'_>| reply.error(error.to_string());
            Box::new(Headed::new(answer, ()))
        }
    });
    Ok(())
}

//! The one place where a command's handler runs: for a request, for each command inside `EXEC` or a
//! script, and for a client that waited for a key.
//!
//! The caller has checked the request and begun its transaction. `call` runs the handler, turns an
//! error into the reply, commits, counts, and reports the command to monitoring clients.

use crate::client::monitored;
use crate::client::session::{Blocked, ReplyMode};
use crate::command::command_id::CommandId;
use crate::command::error::{self, CommandError};
use crate::command::spec::{CommandSpec, HandlerFn};
use crate::ctx::{Ctx, Data};
use crate::long::long_reply::LongReply;
use crate::node::Node;
use crate::request::outcome::{Flow, Outcome};
use crate::statistics::timing::Started;
use crate::tracking::remember;
use ladon_engine::{Locks, Scratch, Tx};
use ladon_record::{KeyHash, Lsn};
use smallvec::SmallVec;

/// A command with its arguments, the name included.
#[derive(Clone, Copy)]
pub struct Command<'a> {
    /// The row's number.
    pub id: CommandId,
    /// The command's row of the table.
    pub spec: &'static CommandSpec,
    /// The code that runs it.
    pub handler: HandlerFn,
    /// The arguments, the name first.
    pub args: &'a [&'a [u8]],
}

/// On whose behalf a command runs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Caller {
    /// A request.
    Request,
    /// `EXEC`: the transaction continues afterwards, and the slices of the reply stay in the
    /// context.
    Exec,
    /// A script: as `Exec`, with a reply that is made at once.
    Script,
    /// The thread that created a key that a client waits for.
    Waited,
}

/// Runs a command that began at `started`. The caller is a constant wherever this is inlined.
#[inline(always)]
pub fn call(ctx: &mut Ctx<'_>, command: Command<'_>, started: Started, caller: Caller) -> Outcome {
    debug_assert_eq!(
        (ctx.in_exec, ctx.in_attempt),
        match caller {
            Caller::Request => (false, false),
            Caller::Exec | Caller::Script => (true, false),
            Caller::Waited => (false, true),
        }
    );
    let in_exec = matches!(caller, Caller::Exec | Caller::Script);
    let Command { id, spec, handler, args } = command;
    let position = ctx.reply.position();
    let failure = match handler(ctx, args) {
        Ok(()) => None,
        Err(error) => Some(fail(ctx, position, &error)),
    };
    if ctx.session.tracking.is_some() {
        remember::note_reads(ctx, command);
    }
    let depends = if in_exec { Lsn::ZERO } else { ctx.commit() };
    if let Some(text) = failure {
        // Without the locks, but within `EXEC`, whose next command may ask for the count.
        count_failure(ctx, id, &text);
    }
    if caller == Caller::Request && matches!(ctx.flow, Flow::Compute | Flow::Again) {
        return retry_later(ctx, started, depends);
    }
    debug_assert!(!in_exec || matches!(ctx.flow, Flow::Continue | Flow::Close | Flow::Drop));
    let is_deferred = ctx.deferred.is_some() && !in_exec && defer(ctx, command, started);
    // A wait for a key is counted when it ends, a long reply when it is complete.
    if !is_deferred && !matches!(ctx.flow, Flow::Block(Blocked::Keys(_))) {
        let reply_bytes = ctx.reply.position().saturating_sub(position);
        let before_ns = ctx.session.aside.as_ref().map_or(0, |aside| aside.nanoseconds);
        let started = started.earlier(before_ns);
        ctx.local.stop(ctx.node, ctx.session, id, args, started, reply_bytes);
    }
    // After it ran, as in Redis: the commands of a transaction are shown before its EXEC. A command
    // that waited was shown when it began to wait.
    if caller != Caller::Waited && ctx.node.clients.has_monitors() {
        let by_script = caller == Caller::Script;
        monitored::note(ctx.node, ctx.local, ctx.session, spec, args, by_script);
    }
    if !in_exec && !ctx.local.monitored.is_empty() {
        monitored::show(ctx.node, ctx.local, depends);
    }
    if in_exec {
        return Outcome::new(depends, Flow::Continue);
    }
    Outcome { depends, flow: std::mem::take(&mut ctx.flow), deferred: ctx.deferred.take() }
}

/// The error replaces what the command has written from `position` on.
#[cold]
fn fail(ctx: &mut Ctx<'_>, position: usize, error: &CommandError) -> String {
    let text = error.to_string();
    ctx.deferred = None;
    ctx.reply.rewind(position);
    ctx.reply.error(error::bytes_of(&text));
    text
}

/// Counts a command that answered with an error.
#[cold]
pub(crate) fn count_failure(ctx: &mut Ctx<'_>, id: CommandId, text: &str) {
    debug_assert!(
        ctx.in_exec || ctx.local.script.is_some() || !matches!(ctx.data, Data::Held(_)),
        "counted under locks"
    );
    ctx.local.stats.command(id).failed.add(1);
    ctx.local.stats.count_error(text.as_bytes());
    if let Some(begun) = &mut ctx.local.undoable {
        begun.failed(id, text);
    }
}

/// Counts a command that a script must not run, or one that does not exist.
#[cold]
pub fn count_rejection(ctx: &mut Ctx<'_>, id: Option<CommandId>, text: &str) {
    if let Some(id) = id {
        ctx.local.stats.command(id).rejected.add(1);
    }
    ctx.local.stats.count_error(text.as_bytes());
    if let Some(begun) = &mut ctx.local.undoable {
        begun.rejected(id, text);
    }
}

/// The request runs again; so far it had no visible effect.
#[cold]
fn retry_later(ctx: &mut Ctx<'_>, started: Started, depends: Lsn) -> Outcome {
    debug_assert!(!ctx.must_answer(), "only a request can be retried");
    debug_assert!(
        matches!(ctx.flow, Flow::Again)
            || ctx.deferred.as_ref().is_some_and(|deferred| deferred.job.is_some()),
        "a request waits for a job that there is not"
    );
    let spent_ns = ctx.local.pause(ctx.node, started);
    let flow = std::mem::take(&mut ctx.flow);
    if matches!(flow, Flow::Compute)
        && let Some(aside) = &mut ctx.session.aside
    {
        aside.nanoseconds += spent_ns;
        aside.depends = aside.depends.max(depends);
    }
    Outcome { depends: Lsn::ZERO, flow, deferred: ctx.deferred.take() }
}

/// Turns the rest of the reply into a separate object; `false` if the client does not want it.
#[cold]
fn defer(ctx: &mut Ctx<'_>, command: Command<'_>, started: Started) -> bool {
    if ctx.session.reply_mode != ReplyMode::On {
        ctx.deferred = None;
    }
    let Some(deferred) = &mut ctx.deferred else { return false };
    let spent_ns = ctx.local.pause(ctx.node, started);
    let (slices, proto) = (deferred.slices.take(), ctx.reply.proto());
    let long = LongReply::new(slices, proto, command.id, command.args, spent_ns, ctx.now_ms);
    deferred.long_reply = Some(Box::new(long));
    true
}

/// Begins a transaction on all keys of a request; `None` if a long script holds one of them.
#[inline(never)]
pub(crate) fn begin_on_keys<'a>(
    node: &'a Node,
    spec: &CommandSpec,
    args: &[&[u8]],
    scratch: &'a mut Scratch,
    now_ms: u64,
) -> Option<Tx<'a>> {
    let positions = spec.keys.positions(args);
    let hashes: SmallVec<[KeyHash; 16]> =
        positions.map(|at| node.keyspace.hash(args[at])).collect();
    node.begin_or_busy(Locks::Keys(&hashes), scratch, now_ms)
}

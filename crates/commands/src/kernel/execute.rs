//! Running one request: the checks that every command passes, its locks, its handler, its commit.

use crate::kernel::aside;
use crate::kernel::blocking;
use crate::kernel::command_id::CommandId;
use crate::kernel::ctx::{After, Append, Ctx, Data, Local};
use crate::kernel::error::{CommandError, shown, shown_up_to};
use crate::kernel::eviction::{self, Room};
use crate::kernel::long_reply::LongReply;
use crate::kernel::monitored;
use crate::kernel::node::{Node, Paused};
use crate::kernel::session::{Blocked, Multi, ReplyMode, Session};
use crate::kernel::spec::{CommandSpec, Flags, Handler, HandlerFn, LockNeed};
use crate::kernel::watched;
use ladon_engine::{Locks, Scratch, Tx};
use ladon_model::{KeyHash, Lsn};
use ladon_resp::Reply;
use smallvec::SmallVec;
use std::sync::atomic::Ordering::Relaxed;

/// A request whose command has been looked up.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// The command; `None` if the name is unknown.
    pub id: Option<CommandId>,
    /// All arguments, the name included; at least one.
    pub args: &'a [&'a [u8]],
    /// The hash of the first key, where the batch has computed it.
    pub first_key: Option<KeyHash>,
}

/// What becomes of the connection.
#[derive(Clone, Debug)]
pub enum Flow {
    /// Go on with the next request.
    Continue,
    /// Send what is there, then close.
    Close,
    /// Close now.
    Drop,
    /// No reply yet; see [`crate::connection`]'s waiting commands.
    Block(Blocked),
    /// No reply yet: its job (`Local::job`) is to be done and the session to take in what comes of it,
    /// then the request to be offered again.
    Compute,
    /// Clients are paused: nothing was done, offer the request again later.
    Paused,
    /// Nothing was done: offer the request again in the next turn.
    Again,
}

/// What a request led to.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The reply may leave when the gate has passed this.
    pub depends: Lsn,
    /// What becomes of the connection.
    pub flow: Flow,
}

impl Outcome {
    fn reply(depends: Lsn) -> Outcome {
        Outcome { depends, flow: Flow::Continue }
    }
}

/// Runs one request and appends its reply to `out`.
#[allow(clippy::too_many_arguments, reason = "the parts of a worker are borrowed apart")]
pub fn execute(
    node: &Node,
    local: &mut Local,
    scratch: &mut Scratch,
    session: &mut Session,
    request: Request<'_>,
    now_ms: u64,
    out: &mut Vec<u8>,
    append: Append<'_>,
) -> Outcome {
    let start = out.len();
    if session.info.killed.load(Relaxed) || (request.id.is_none() && is_http(request.args[0])) {
        return Outcome { depends: Lsn::ZERO, flow: Flow::Drop };
    }
    // SKIP silences the command after it.
    if session.reply_mode == ReplyMode::SkipNext {
        session.reply_mode = ReplyMode::Skip;
    }
    let outcome = match resolve(node, request) {
        Ok((id, spec, handler)) => {
            let command = Resolved { id, spec, handler };
            run(node, local, scratch, session, request, command, now_ms, out, &mut *append)
        }
        Err(Unresolved { id, error }) => {
            let wanted = id.map(|id| (id, node.table.spec(id)));
            reject(node, local, scratch, session, wanted, &error, out, &mut *append)
        }
    };
    if out.get(start) == Some(&b'-') {
        count_error(local, &out[start..]);
    }
    if !scratch.ready.is_empty() {
        blocking::serve(node, local, scratch, now_ms, &mut *append);
    }
    if session.aside.is_some() && !matches!(outcome.flow, Flow::Paused | Flow::Compute) {
        aside::forget(node, scratch, session, append);
    }
    match session.reply_mode {
        ReplyMode::On => {}
        ReplyMode::SkipNext => out.truncate(start),
        ReplyMode::Off => out.truncate(start),
        // Its reply comes later.
        ReplyMode::Skip if matches!(outcome.flow, Flow::Block(_)) => {}
        ReplyMode::Skip if matches!(outcome.flow, Flow::Paused | Flow::Compute | Flow::Again) => {
            session.reply_mode = ReplyMode::SkipNext;
        }
        ReplyMode::Skip => {
            out.truncate(start);
            session.reply_mode = ReplyMode::On;
        }
    }
    outcome
}

#[cold]
pub(crate) fn count_error(local: &Local, reply: &[u8]) {
    let line = reply.split(|&byte| byte == b'\r').next().unwrap_or_default();
    local.stats.count_error(&line[1..]);
}

#[derive(Clone, Copy)]
struct Resolved {
    id: CommandId,
    spec: &'static CommandSpec,
    handler: HandlerFn,
}

/// A request that no code answers.
struct Unresolved {
    /// The command, if there is one.
    id: Option<CommandId>,
    error: CommandError,
}

/// Finds the code that answers a request, or the error that does.
fn resolve(
    node: &Node,
    request: Request<'_>,
) -> Result<(CommandId, &'static CommandSpec, HandlerFn), Unresolved> {
    let Some(id) = request.id else {
        return Err(Unresolved { id: None, error: unknown_command(request.args) });
    };
    let spec = node.table.spec(id);
    match (spec.handler, request.args) {
        (Handler::Run(handler), args) | (Handler::RunOrContainer(handler), args @ [_]) => {
            if !spec.accepts(args.len()) {
                return Err(wrong_arity(node, id));
            }
            Ok((id, spec, handler))
        }
        (Handler::Container | Handler::RunOrContainer(_), args) => {
            let Some(name) = args.get(1) else { return Err(wrong_arity(node, id)) };
            let Some(id) = node.table.find_subcommand(id, name) else {
                let error = CommandError::err(format_args!(
                    "unknown subcommand '{}'. Try {} HELP.",
                    shown(name),
                    spec.name.to_uppercase()
                ));
                return Err(Unresolved { id: None, error });
            };
            let spec = node.table.spec(id);
            let Handler::Run(handler) = spec.handler else {
                unreachable!("subcommands have no subcommands")
            };
            if !spec.accepts(args.len()) {
                return Err(wrong_arity(node, id));
            }
            Ok((id, spec, handler))
        }
    }
}

/// The first words of an HTTP request's lines. A browser can be made to send these to any port of
/// its own machine, with commands in what follows; such a connection ends here, as Redis does it.
#[cold]
fn is_http(name: &[u8]) -> bool {
    let http = name.eq_ignore_ascii_case(b"POST") || name.eq_ignore_ascii_case(b"Host:");
    if http {
        tracing::warn!("closed a connection that speaks HTTP: an attack from a web page, maybe");
    }
    http
}

#[cold]
fn unknown_command(args: &[&[u8]]) -> CommandError {
    let mut shown_args = String::new();
    for arg in &args[1..] {
        if shown_args.len() >= 128 {
            break;
        }
        let room = 128 - shown_args.len();
        shown_args += &format!("'{}' ", shown_up_to(arg, room));
    }
    CommandError::err(format_args!(
        "unknown command '{}', with args beginning with: {shown_args}",
        shown(args[0])
    ))
}

#[cold]
fn wrong_arity(node: &Node, id: CommandId) -> Unresolved {
    let name = &node.table.entry(id).full_name;
    let error = CommandError::err(format_args!("wrong number of arguments for '{name}' command"));
    Unresolved { id: Some(id), error }
}

#[allow(clippy::too_many_arguments, reason = "as `execute`")]
fn run<'a>(
    node: &'a Node,
    local: &'a mut Local,
    scratch: &'a mut Scratch,
    session: &'a mut Session,
    request: Request<'a>,
    command: Resolved,
    now_ms: u64,
    out: &'a mut Vec<u8>,
    append: Append<'a>,
) -> Outcome {
    let Resolved { id, spec, handler } = command;
    let mut flags = spec.flags;
    if let Some(multi) = &session.multi
        && flags.has(Flags::RUNS_QUEUE)
    {
        // It does what was queued.
        flags = flags.or(multi.flags);
    }
    let memory = if takes_memory(session, flags) {
        eviction::make_room(node, local, scratch, now_ms, append)
    } else {
        Room::Enough
    };
    if let Err(error) = admit(node, session, memory, flags) {
        return reject(node, local, scratch, session, Some((id, spec)), &error, out, append);
    }
    let paused = node.paused(now_ms);
    if let Some(paused) = paused
        && is_held_back(flags, paused)
        && session.pausing.is_none()
    {
        return Outcome { depends: Lsn::ZERO, flow: Flow::Paused };
    }
    if let Some(multi) = &mut session.multi
        && !flags.has(Flags::NOT_QUEUED)
    {
        let flow = queue(node, multi, id, flags, request.args);
        Reply::new(out, session.proto).simple("QUEUED");
        return Outcome { depends: Lsn::ZERO, flow };
    }
    session.info.set_command(id);
    let started = local.start(node, spec, request.args);
    scratch.no_touch = session.no_touch;
    // While writes are paused nothing may change, so that expired keys only look gone. A change
    // that was let in goes on, should the log fail at this very moment.
    scratch.read_only = !flags.has(Flags::WRITE) && !node.durability.accepts_writes()
        || paused.is_some() && flags.has(Flags::READONLY);
    let position = out.len();
    let reply = Reply::new(out, session.proto);
    let mut ctx = Ctx {
        node,
        session,
        local,
        reply,
        now_ms,
        after: After::Continue,
        in_exec: false,
        in_attempt: false,
        first_key: request.first_key,
        depends: Lsn::ZERO,
        data: Data::Gone,
        append,
    };
    // Each in its place at once: moving a transaction costs more than beginning it.
    match spec.locks {
        LockNeed::None | LockNeed::Own => ctx.data = Data::Free(scratch),
        LockNeed::Keys | LockNeed::KeysUnless(_) if !reaches_further(spec, request.args) => {
            match request.first_key {
                Some(hash) if spec.keys.is_one(request.args.len()) => {
                    let locks = Locks::One(hash);
                    ctx.data = Data::Held(node.keyspace.begin(locks, scratch, now_ms));
                }
                _ => {
                    let tx = begin_on_keys(node, spec, request.args, scratch, now_ms);
                    ctx.data = Data::Held(tx);
                }
            }
        }
        _ => ctx.data = Data::Held(begin_on_all(node, scratch, now_ms)),
    }
    if let Err(error) = handler(&mut ctx, request.args) {
        ctx.reply.rewind(position);
        (ctx.local.slices, ctx.local.job, ctx.local.lend) = (None, None, None);
        ctx.reply.error(error.to_string());
        ctx.local.stats.command(id).failed.add(1);
    }
    let (depends, _) = ctx.commit();
    if matches!(ctx.after, After::Compute) {
        let spent_ns = ctx.local.pause(node, started);
        if let Some(aside) = &mut ctx.session.aside {
            aside.nanoseconds += spent_ns;
            aside.depends = aside.depends.max(depends);
        }
        // Nothing was done so far that anybody could see.
        return Outcome { depends: Lsn::ZERO, flow: Flow::Compute };
    }
    if matches!(ctx.after, After::Again) {
        ctx.local.pause(node, started);
        return Outcome { depends: Lsn::ZERO, flow: Flow::Again };
    }
    if ctx.session.reply_mode != ReplyMode::On {
        // Nobody waits for the rest.
        (ctx.local.slices, ctx.local.job) = (None, None);
    }
    // Who waits for a key is counted when the wait is over, and a long reply when it is made.
    let reply_bytes = ctx.reply.position().saturating_sub(position);
    if ctx.local.slices.is_some() || ctx.local.job.is_some() {
        let slices = ctx.local.slices.take();
        let spent_ns = ctx.local.pause(node, started);
        let proto = ctx.reply.proto();
        let long = LongReply::new(slices, proto, id, request.args, spent_ns, now_ms);
        ctx.local.long_reply = Some(Box::new(long));
    } else if !matches!(ctx.after, After::Block(Blocked::Keys(_))) {
        let before_ns = ctx.session.aside.as_ref().map_or(0, |aside| aside.nanoseconds);
        let started = started.earlier(before_ns);
        ctx.local.stop(node, ctx.session, id, request.args, started, reply_bytes);
    }
    // After it ran, as in Redis: what a transaction does is shown before its EXEC.
    if node.clients.has_monitors() {
        monitored::note(node, ctx.local, ctx.session, spec, request.args);
    }
    if !ctx.local.monitored.is_empty() {
        monitored::show(node, ctx.local, depends);
    }
    let flow = match ctx.after {
        After::Continue => Flow::Continue,
        After::Close => {
            ctx.session.info.leaving.store(true, Relaxed);
            Flow::Close
        }
        After::Drop => Flow::Drop,
        After::Block(blocked) => Flow::Block(blocked),
        After::Compute => Flow::Compute,
        After::Again => Flow::Again,
    };
    Outcome { depends, flow }
}

/// Whether a command over its keys looks at keys that these arguments do not name.
#[inline]
fn reaches_further(spec: &CommandSpec, args: &[&[u8]]) -> bool {
    matches!(spec.locks, LockNeed::KeysUnless(reaches_further) if reaches_further(args))
}

/// Begins a transaction on all data.
#[inline(never)]
fn begin_on_all<'a>(node: &'a Node, scratch: &'a mut Scratch, now_ms: u64) -> Tx<'a> {
    node.keyspace.begin(Locks::All, scratch, now_ms)
}

/// Begins a transaction on all keys of a request.
#[inline(never)]
pub(crate) fn begin_on_keys<'a>(
    node: &'a Node,
    spec: &CommandSpec,
    args: &[&[u8]],
    scratch: &'a mut Scratch,
    now_ms: u64,
) -> Tx<'a> {
    let positions = spec.keys.positions(args);
    let hashes: SmallVec<[KeyHash; 16]> =
        positions.map(|at| node.keyspace.hash(args[at])).collect();
    node.keyspace.begin(Locks::Keys(&hashes), scratch, now_ms)
}

/// Keeps a command for `EXEC`. A client whose queue outgrows what it may send at once is closed,
/// as the queue is no more than requests that have not run.
#[cold]
fn queue(node: &Node, multi: &mut Multi, id: CommandId, flags: Flags, args: &[&[u8]]) -> Flow {
    multi.flags = multi.flags.or(flags);
    multi.push(id, args);
    let limit = node.settings.client_query_buffer_limit();
    if limit != 0 && multi.bytes as u64 > limit { Flow::Drop } else { Flow::Continue }
}

/// Answers a request that must not run. An open transaction will not run either; `EXEC` itself
/// ends it there and then.
#[cold]
#[allow(clippy::too_many_arguments, reason = "as `execute`")]
fn reject(
    node: &Node,
    local: &mut Local,
    scratch: &mut Scratch,
    session: &mut Session,
    wanted: Option<(CommandId, &'static CommandSpec)>,
    error: &CommandError,
    out: &mut Vec<u8>,
    append: Append<'_>,
) -> Outcome {
    if let Some((id, _)) = wanted {
        local.stats.command(id).rejected.add(1);
    }
    let mut text = error.to_string();
    if wanted.is_some_and(|(_, spec)| spec.flags.has(Flags::RUNS_QUEUE)) {
        // An error without a code of its own goes without one here.
        let reason = text.strip_prefix("ERR ").unwrap_or(&text);
        text = format!("EXECABORT Transaction discarded because of: {reason}");
        watched::abandon_outside(node, local, scratch, session, append);
    } else if let Some(multi) = &mut session.multi {
        multi.aborted = true;
    }
    Reply::new(out, session.proto).error(text);
    Outcome::reply(Lsn::ZERO)
}

/// Whether the command may make the data larger. What is queued takes memory, whatever it will do.
#[inline]
fn takes_memory(session: &Session, flags: Flags) -> bool {
    flags.has(Flags::DENYOOM) || session.multi.is_some() && !flags.has(Flags::NOT_QUEUED)
}

/// The checks before anything runs or is queued; `flags` are the command's and, for `EXEC`, those
/// of all that it will run.
#[inline]
fn admit(node: &Node, session: &Session, memory: Room, flags: Flags) -> Result<(), CommandError> {
    if !session.authenticated && !flags.has(Flags::NO_AUTH) && node.requires_login() {
        return Err(CommandError::text("NOAUTH Authentication required."));
    }
    if node.loading.is_some() && !flags.has(Flags::LOADING) {
        return Err(CommandError::text("LOADING Ladon is loading the dataset in memory"));
    }
    if session.multi.is_some() && flags.has(Flags::NO_MULTI) {
        return Err(CommandError::text("ERR Command not allowed inside a transaction"));
    }
    if memory == Room::None {
        return Err(CommandError::OutOfMemory);
    }
    if flags.has(Flags::WRITE) && !node.durability.accepts_writes() {
        let reason = node.durability.failure().unwrap_or_default();
        return Err(CommandError::Other(
            format!("MISCONF Errors writing to the log: {reason}").into(),
        ));
    }
    if flags.has(Flags::WRITE) && node.lacks_replicas() {
        return Err(CommandError::text("NOREPLICAS Not enough good replicas to write."));
    }
    Ok(())
}

fn is_held_back(flags: Flags, paused: Paused) -> bool {
    const CHANGES: u32 = Flags::WRITE.0 | Flags::MAY_REPLICATE.0;
    match paused {
        _ if flags.has(Flags::NOT_PAUSED) => false,
        Paused::All => true,
        Paused::Writes => flags.0 & CHANGES != 0,
    }
}

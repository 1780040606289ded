//! Runs one request: the checks that every command passes, then its locks and the call.

use crate::access;
use crate::blocking;
use crate::client::session::{Multi, ReplyMode, Session};
use crate::command::command_id::CommandId;
use crate::command::error::{self, CommandError, shown, shown_up_to};
use crate::command::flags::Flags;
use crate::command::spec::{CommandSpec, Handler, LockNeed};
use crate::ctx::{Ctx, Data};
use crate::local::{Local, Pump};
use crate::long::aside;
use crate::long::long_arguments::{self, Memory};
use crate::memory::eviction::{self, Room};
use crate::node::Node;
use crate::pubsub::joining;
use crate::request::admission::{self, Refusal};
use crate::request::invoke::{self, Caller, Command, begin_on_keys};
use crate::request::mounted;
use crate::request::outcome::{Flow, Outcome};
use crate::request::overdue;
use crate::request::undo;
use crate::request::watched;
use crate::scripts::shebang::ScriptFlags;
use crate::shared::Paused;
use crate::thread_parts::ThreadParts;
use crate::tracking::remember;
use ladon_engine::{Garbage, Locks, Scratch, Tx};
use ladon_identity::Context;
use ladon_platform::{lock_order, pages};
use ladon_record::{KeyHash, Lsn};
use ladon_resp::Reply;
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

/// Runs one request and appends its reply to `out`.
pub fn execute(
    thread: &mut ThreadParts<'_>,
    session: &mut Session,
    request: Request<'_>,
    out: &mut Vec<u8>,
) -> Outcome {
    let start = out.len();
    debug_assert_at_rest(thread.scratch, thread.local);
    if session.info.killed.load(Relaxed) || (request.id.is_none() && is_http(request.args[0])) {
        return Outcome::new(Lsn::ZERO, Flow::Drop);
    }
    // SKIP silences the command after it.
    if session.reply_mode == ReplyMode::SkipNext {
        session.reply_mode = ReplyMode::Skip;
    }
    let node = thread.node;
    let running = Running { thread: &mut *thread, session: &mut *session, out: &mut *out };
    let outcome = match resolve(node, request) {
        Ok(command) => running.run(command, request.first_key),
        Err(Unresolved { id, error }) => {
            running.reject(id.map(|id| (id, node.table.spec(id))), &error)
        }
    };
    if !thread.scratch.ready.is_empty() {
        blocking::serve(thread);
    }
    if session.aside.is_some() && !outcome.flow.runs_again() {
        aside::forget(thread, session);
    }
    if session.tracking.is_some() {
        remember::after_request(session, request.args[0], &outcome.flow);
    }
    debug_assert_at_rest(thread.scratch, thread.local);
    if session.reply_mode != ReplyMode::On {
        silence(thread.local, session, &outcome.flow, out, start);
    }
    thread.local.unsilenced.clear();
    outcome
}

/// Removes a reply, starting at `start`, that the client does not want. What confirms subscriptions
/// is no reply, and stays.
#[cold]
fn silence(local: &Local, session: &mut Session, flow: &Flow, out: &mut Vec<u8>, start: usize) {
    let is_later = flow.runs_again();
    match session.reply_mode {
        // The reply comes later.
        ReplyMode::Skip if matches!(flow, Flow::Block(_)) => return,
        ReplyMode::Skip if is_later => session.reply_mode = ReplyMode::SkipNext,
        ReplyMode::Skip => session.reply_mode = ReplyMode::On,
        ReplyMode::On | ReplyMode::Off | ReplyMode::SkipNext => {}
    }
    out.truncate(start);
    // A request that runs again subscribes again.
    if !is_later {
        out.extend_from_slice(&local.unsilenced);
    }
}

/// Between two requests: no lock is held, and nothing is left of the one before.
#[inline(always)]
fn debug_assert_at_rest(scratch: &Scratch, local: &Local) {
    if cfg!(debug_assertions) {
        if !local.serves_busy {
            lock_order::check(lock_order::Place::LOG_SYNC);
        }
        assert!(scratch.ready.is_empty(), "a key came, and nobody was served");
        assert!(local.monitored.is_empty(), "a command was run, and not shown");
        assert!(local.unpublished.is_empty(), "a transaction's messages were not published");
    }
}

/// A request that no code answers.
struct Unresolved {
    /// The command, if there is one.
    id: Option<CommandId>,
    error: CommandError,
}

/// The commands that only nodes of clusters have: the others know no sentinel, as Redis.
const OF_CLUSTERS: &str = "sentinel";

/// Finds the code that answers a request, or the error that does.
fn resolve<'a>(node: &Node, request: Request<'a>) -> Result<Command<'a>, Unresolved> {
    let Some(id) = request.id else {
        return Err(Unresolved { id: None, error: unknown_command(request.args) });
    };
    let spec = node.table.spec(id);
    match (spec.handler, request.args) {
        (Handler::Run(handler), args) | (Handler::RunOrContainer(handler), args @ [_]) => {
            if !spec.accepts(args.len()) {
                return Err(wrong_arity(node, id));
            }
            Ok(Command { id, spec, handler, args: request.args })
        }
        (Handler::Container, args) if spec.name == OF_CLUSTERS && node.cluster.is_none() => {
            Err(Unresolved { id: None, error: unknown_command(args) })
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
            Ok(Command { id, spec, handler, args: request.args })
        }
    }
}

/// The first words of HTTP requests and headers. A browser can be made to send these to any port of
/// its own machine, with commands in the body. As in Redis, such a connection is closed.
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

/// A request being executed, with what it needs of its thread. Passed by value, so that its parts
/// stay in registers.
struct Running<'a, 'thread> {
    thread: &'a mut ThreadParts<'thread>,
    session: &'a mut Session,
    out: &'a mut Vec<u8>,
}

/// What is left to do for a command that has run, but for its reply.
#[inline(always)]
fn has_run(ctx: &mut Ctx<'_>, flags: Flags, mut outcome: Outcome) -> Outcome {
    let at = (ctx.session.gate, ctx.local.leader_read);
    outcome.depends = admission::depends_after(ctx.node, at, flags, outcome.depends);
    if matches!(outcome.flow, Flow::Close) {
        ctx.session.info.leaving.store(true, Relaxed);
        // Who has read the last reply may ask at once who is still subscribed.
        joining::leave(ctx.node, ctx.local, ctx.session);
    }
    outcome
}

impl Running<'_, '_> {
    /// Runs, queues, refuses or holds back a command.
    #[inline(always)]
    fn run(mut self, command: Command<'_>, first_key: Option<KeyHash>) -> Outcome {
        let Command { id, spec, args, .. } = command;
        let (node, now_ms) = (self.thread.node, self.thread.now_ms);
        let mut flags = spec.flags;
        if let Some(multi) = &self.session.multi
            && flags.has(Flags::RUNS_QUEUE)
        {
            // `EXEC` does what was queued.
            flags = flags.or(multi.flags);
        }
        let mut memory = if takes_memory(self.session, flags) {
            eviction::make_room(self.thread)
        } else {
            Room::Enough
        };
        if flags.has(Flags::RUNS_SCRIPT) {
            memory = self.begins_script(flags, memory);
        }
        let known = (memory, self.thread.local.leader_read);
        let admitted = admission::request(node, self.session, (id, args), flags, known);
        if let Err(refusal) = admitted {
            return self.refuse((id, spec), args, refusal);
        }
        let paused = node.paused(now_ms);
        if spec.declared.is_some() && (paused.is_some() || self.session.multi.is_some()) {
            flags = as_declared(node, command, flags);
        }
        if let Some(flow) = self.comes_later(flags, paused) {
            return Outcome::new(Lsn::ZERO, flow);
        }
        if let Some(multi) = &mut self.session.multi
            && !flags.has(Flags::NOT_QUEUED)
        {
            let flow = queue(node, multi, id, flags, args);
            Reply::new(self.out, self.session.proto).simple("QUEUED");
            return Outcome::new(Lsn::ZERO, flow);
        }
        if flags.has(Flags::WRITE)
            && node.keyspace.spaces.has_mounts()
            && mounted::awaits_commit(node, self.session, command, now_ms)
        {
            return Outcome::new(Lsn::ZERO, Flow::AwaitsCommit);
        }
        self.session.info.set_command(id);
        let ThreadParts { local, scratch, append, pump, .. } = self.thread;
        let started = local.start(node, spec, args);
        // While writes are paused nothing may change, so expired keys are only hidden. An admitted
        // write continues even if the log fails at this very moment.
        scratch.read_only = !flags.has(Flags::WRITE) && !node.may_change()
            || paused.is_some() && flags.has(Flags::READONLY);
        scratch.no_touch = self.session.no_touch;
        let reply = Reply::new(self.out, self.session.proto);
        let mut ctx = Ctx::new(node, local, self.session, reply, now_ms, *append);
        (ctx.first_key, ctx.depends) = (first_key, admission::depends(node, flags));
        if flags.has(Flags::RUNS_SCRIPT) {
            ctx.pump = pump.as_deref_mut().map(|pump| pump as Pump<'_>);
        }
        if !begin(&mut ctx, scratch, spec, args) {
            drop(ctx);
            let busy = node.scripts.running.busy();
            return self.reject(Some((id, spec)), &busy);
        }
        let mut command = command;
        let memory = redirect(&mut ctx, &mut command);
        let outcome = invoke::call(&mut ctx, command, started, Caller::Request);
        let outcome = has_run(&mut ctx, flags, outcome);
        // Both are empty, which the compiler would otherwise check when dropping them.
        debug_assert!(ctx.deferred.is_none() && !matches!(ctx.data, Data::Held(_)));
        std::mem::forget(ctx);
        if memory == Memory::Lent {
            scratch.garbage.push(Garbage::of(pages::take_back()));
        }
        outcome
    }

    /// Whether messages that are still to be delivered, or a pause, hold the command back.
    #[inline(always)]
    fn comes_later(&self, flags: Flags, paused: Option<Paused>) -> Option<Flow> {
        if flags.0 & PUBLISHES != 0 && self.thread.node.pubsub.is_congested() {
            return Some(Flow::Again);
        }
        let is_paused = paused.is_some_and(|paused| admission::is_held_back(flags, paused));
        (is_paused && self.session.pausing.is_none()).then_some(Flow::Paused)
    }

    /// A script decides for itself what it does while memory is short, unless it is queued, or in
    /// `EXEC` beside commands that need memory.
    #[cold]
    fn begins_script(&mut self, flags: Flags, memory: Room) -> Room {
        let is_queued = self.session.multi.is_some() && !flags.has(Flags::RUNS_QUEUE);
        let is_out_of_memory = memory == Room::None;
        self.thread.local.is_out_of_memory = is_out_of_memory;
        let runs = !is_queued && !flags.has(Flags::DENYOOM);
        if runs { Room::Enough } else { memory }
    }

    /// Answers a request that was not admitted.
    #[cold]
    fn refuse(
        self,
        (id, spec): (CommandId, &'static CommandSpec),
        args: &[&[u8]],
        refusal: Refusal,
    ) -> Outcome {
        let node = self.thread.node;
        let error = match refusal {
            Refusal::UserIsGone => return Outcome::new(Lsn::ZERO, Flow::Drop),
            Refusal::AwaitsLeader => return Outcome::new(Lsn::ZERO, Flow::AwaitsLeader),
            Refusal::Denied(denied) => {
                let is_queued = self.session.multi.is_some();
                let context = if is_queued { Context::Multi } else { Context::TopLevel };
                self.session.info.set_command(id);
                let text = access::note(node, self.session, context, denied, id, args);
                CommandError::Other(format!("NOPERM {text}").into())
            }
            refusal => refusal.error(node),
        };
        self.reject(Some((id, spec)), &error)
    }

    /// Answers a request that must not run. It also aborts an open transaction; a refused `EXEC`
    /// ends it at once.
    #[cold]
    fn reject(
        self,
        wanted: Option<(CommandId, &'static CommandSpec)>,
        error: &CommandError,
    ) -> Outcome {
        if let Some((id, _)) = wanted {
            self.thread.local.stats.command(id).rejected.add(1);
        }
        let mut text = error.to_string();
        if wanted.is_some_and(|(_, spec)| spec.flags.has(Flags::RUNS_QUEUE)) {
            // Redis omits the generic code `ERR` here.
            let reason = text.strip_prefix("ERR ").unwrap_or(&text);
            text = format!("EXECABORT Transaction discarded because of: {reason}");
            watched::abandon_outside(self.thread, self.session);
        } else if let Some(multi) = &mut self.session.multi {
            multi.aborted = true;
        }
        self.thread.local.stats.count_error(text.as_bytes());
        Reply::new(self.out, self.session.proto).error(error::bytes_of(&text));
        Outcome::new(Lsn::ZERO, Flow::Continue)
    }
}

/// Puts other code in the place of the command's where it is about tuples, or has to run again.
/// Returns the memory for its long arguments.
#[inline(always)]
fn redirect(ctx: &mut Ctx<'_>, command: &mut Command<'_>) -> Memory {
    let (node, Command { spec, args, .. }) = (ctx.node, *command);
    if node.keyspace.spaces.has_mounts() {
        mounted::redirect(ctx, command);
    }
    let memory = long_arguments::memory(ctx, spec, args);
    if memory == Memory::Awaited {
        command.handler = long_arguments::wait;
    } else if node.keyspace.has_element_times() && overdue::remove_some(ctx, spec, args) {
        command.handler = overdue::run_again;
    } else if cfg!(debug_assertions) && ctx.local.rehearses {
        undo::rehearse(ctx, *command);
    }
    memory
}

/// Begins the transaction that the command needs, constructed in place, because moving one costs
/// more than beginning it. Returns `false` if a long script holds one of its locks.
#[inline(always)]
pub(crate) fn begin<'a>(
    ctx: &mut Ctx<'a>,
    scratch: &'a mut Scratch,
    spec: &CommandSpec,
    args: &[&[u8]],
) -> bool {
    let (node, now_ms) = (ctx.node, ctx.now_ms);
    match spec.locks {
        LockNeed::None | LockNeed::Own => ctx.data = Data::Free(scratch),
        LockNeed::Keys | LockNeed::KeysUnless(_) if !reaches_further(spec, args) => {
            match ctx.first_key {
                Some(hash) if spec.keys.is_one(args.len()) => {
                    let is_busy = |partition| node.scripts.running.is_held(partition);
                    let tx = node.keyspace.begin_one_or_busy(hash, scratch, now_ms, is_busy);
                    let Some(tx) = tx else { return false };
                    ctx.data = Data::Held(tx);
                }
                _ => {
                    let tx = begin_on_keys(node, spec, args, scratch, now_ms);
                    let Some(tx) = tx else { return false };
                    ctx.data = Data::Held(tx);
                }
            }
        }
        _ => {
            let Some(tx) = begin_on_all(node, scratch, now_ms) else { return false };
            ctx.data = Data::Held(tx);
        }
    }
    true
}

/// Whether a command that locks its keys also reads keys that these arguments do not name.
#[inline]
fn reaches_further(spec: &CommandSpec, args: &[&[u8]]) -> bool {
    matches!(spec.locks, LockNeed::KeysUnless(reaches_further) if reaches_further(args))
}

/// Begins a transaction on all data.
#[inline(never)]
fn begin_on_all<'a>(node: &'a Node, scratch: &'a mut Scratch, now_ms: u64) -> Option<Tx<'a>> {
    node.begin_or_busy(Locks::All, scratch, now_ms)
}

/// The flags of a command that runs a script or a function, by what that declares. `EXEC` goes by
/// what was known when the command was queued, as in Redis.
#[cold]
fn as_declared(node: &Node, command: Command<'_>, flags: Flags) -> Flags {
    let declared = command.spec.declared.and_then(|declared| declared(node, command.args));
    match declared {
        Some(declared) if declared.has(ScriptFlags::NO_WRITES) => {
            flags.without(Flags::MAY_REPLICATE).or(Flags::READONLY)
        }
        _ => flags,
    }
}

/// Queues a command for `EXEC`. A client whose queue outgrows the limit of its input buffer is
/// closed, because the queue consists of requests that have not run.
#[cold]
fn queue(node: &Node, multi: &mut Multi, id: CommandId, flags: Flags, args: &[&[u8]]) -> Flow {
    multi.flags = multi.flags.or(flags);
    multi.push(id, args);
    let limit = node.settings.client_query_buffer_limit();
    if limit != 0 && multi.bytes as u64 > limit { Flow::Drop } else { Flow::Continue }
}

/// Whether the command may enlarge the data. A queued command takes memory, whatever it will do.
#[inline]
fn takes_memory(session: &Session, flags: Flags) -> bool {
    const TAKES: u32 = Flags::DENYOOM.0 | Flags::RUNS_SCRIPT.0;
    flags.0 & TAKES != 0 || session.multi.is_some() && !flags.has(Flags::NOT_QUEUED)
}

/// Flags of commands that may publish: by themselves, or the events of their changes.
const PUBLISHES: u32 =
    Flags::PUBSUB.0 | Flags::WRITE.0 | Flags::RUNS_QUEUE.0 | Flags::RUNS_SCRIPT.0;
